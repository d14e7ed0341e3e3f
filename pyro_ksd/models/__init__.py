# SPDX-License-Identifier: Apache-2.0
"""Models of sequences: what the engine asks of them, and the distributions that the package ships."""

from pyro_ksd.models.base import SampleableModel, SequenceModel
from pyro_ksd.models.distribution import SequenceDistribution
from pyro_ksd.models.hidden_markov import HiddenMarkovSequence
from pyro_ksd.models.independent import IndependentSequence
from pyro_ksd.models.markov import MarkovSequence
from pyro_ksd.models.mrf import LinearChainMRF

__all__ = [
    "HiddenMarkovSequence",
    "IndependentSequence",
    "LinearChainMRF",
    "MarkovSequence",
    "SampleableModel",
    "SequenceDistribution",
    "SequenceModel",
]
