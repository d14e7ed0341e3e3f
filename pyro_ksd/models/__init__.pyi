# SPDX-License-Identifier: Apache-2.0
from .base import SequenceModel as SequenceModel
from .conversion import as_model as as_model
from .distributions.base import SequenceDistribution as SequenceDistribution
from .distributions.hidden_markov import HiddenMarkovSequence as HiddenMarkovSequence
from .distributions.independent import IndependentSequence as IndependentSequence
from .distributions.linear_chain_mrf import LinearChainMRF as LinearChainMRF
from .distributions.markov import MarkovSequence as MarkovSequence
from .fitting.counting import fit_markov as fit_markov
from .fitting.refits import RefitMarkov as RefitMarkov
from .fitting.refits import RefitSVI as RefitSVI
from .networks.autoregressive import AutoregressiveModel as AutoregressiveModel
from .programs.loop import LoopProgram as LoopProgram
from .programs.vectorized import VectorizedProgram as VectorizedProgram
from .wrappers.constrained import constrain as constrain
from .wrappers.ended import EndedModel as EndedModel
from .wrappers.sampler import with_sampler as with_sampler
from .wrappers.tabulated import TabulatedModel as TabulatedModel
