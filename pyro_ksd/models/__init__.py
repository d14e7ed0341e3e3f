# SPDX-License-Identifier: Apache-2.0
"""Models of sequences: distributions, Pyro programs, and what is made of them."""

from pyro_ksd.models.autoregressive import AutoregressiveModel
from pyro_ksd.models.base import SampleableModel, SequenceModel
from pyro_ksd.models.constrained import constrain
from pyro_ksd.models.convert import as_model
from pyro_ksd.models.distribution import SequenceDistribution
from pyro_ksd.models.fitting import fit_markov
from pyro_ksd.models.hidden_markov import HiddenMarkovSequence
from pyro_ksd.models.independent import IndependentSequence
from pyro_ksd.models.loop_program import LoopProgram
from pyro_ksd.models.markov import MarkovSequence
from pyro_ksd.models.mrf import LinearChainMRF
from pyro_ksd.models.program import VectorizedProgram
from pyro_ksd.models.refit import RefitMarkov, RefitSVI
from pyro_ksd.models.sampled import with_sampler
from pyro_ksd.models.tabulated import TabulatedModel

__all__ = [
    "AutoregressiveModel",
    "HiddenMarkovSequence",
    "IndependentSequence",
    "LinearChainMRF",
    "LoopProgram",
    "MarkovSequence",
    "RefitMarkov",
    "RefitSVI",
    "SampleableModel",
    "SequenceDistribution",
    "SequenceModel",
    "TabulatedModel",
    "VectorizedProgram",
    "as_model",
    "constrain",
    "fit_markov",
    "with_sampler",
]
