# SPDX-License-Identifier: Apache-2.0
"""Kernels on sequences, one per module."""

from pyro_ksd.kernels.base import FeatureKernel, Kernel, PairwiseKernel
from pyro_ksd.kernels.composition import CompositionKernel
from pyro_ksd.kernels.conditional import ConditionalKernel
from pyro_ksd.kernels.conditional_surprise import ConditionalSurpriseKernel
from pyro_ksd.kernels.contiguous import ContiguousKernel
from pyro_ksd.kernels.cyclic_gaussian import CyclicGaussianKernel
from pyro_ksd.kernels.dirac import DiracKernel
from pyro_ksd.kernels.embedding import EmbeddingKernel
from pyro_ksd.kernels.end import EndKernel
from pyro_ksd.kernels.ends import EndsKernel
from pyro_ksd.kernels.frequency import FrequencyKernel
from pyro_ksd.kernels.gap_weighted import GapWeightedKernel
from pyro_ksd.kernels.hamming import HammingKernel
from pyro_ksd.kernels.imq_hamming import IMQHammingKernel
from pyro_ksd.kernels.landmarks import LandmarkKernel
from pyro_ksd.kernels.length import LengthDistribution, LengthKernel
from pyro_ksd.kernels.mirror import MirrorKernel
from pyro_ksd.kernels.position import PositionKernel
from pyro_ksd.kernels.repeats import RepeatsKernel
from pyro_ksd.kernels.skip import SkipKernel
from pyro_ksd.kernels.start import StartKernel
from pyro_ksd.kernels.surprise import SurpriseKernel

__all__ = [
    "CompositionKernel",
    "ConditionalKernel",
    "ConditionalSurpriseKernel",
    "ContiguousKernel",
    "CyclicGaussianKernel",
    "DiracKernel",
    "EmbeddingKernel",
    "EndKernel",
    "EndsKernel",
    "FeatureKernel",
    "FrequencyKernel",
    "GapWeightedKernel",
    "HammingKernel",
    "IMQHammingKernel",
    "Kernel",
    "LandmarkKernel",
    "LengthDistribution",
    "LengthKernel",
    "MirrorKernel",
    "PairwiseKernel",
    "PositionKernel",
    "RepeatsKernel",
    "SkipKernel",
    "StartKernel",
    "SurpriseKernel",
]
