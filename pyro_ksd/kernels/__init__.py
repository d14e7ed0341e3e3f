# SPDX-License-Identifier: Apache-2.0
"""Kernels on sequences, one per module."""

from pyro_ksd.kernels.base import FeatureKernel, Kernel, PairwiseKernel
from pyro_ksd.kernels.contiguous import ContiguousKernel
from pyro_ksd.kernels.cyclic_gaussian import CyclicGaussianKernel
from pyro_ksd.kernels.dirac import DiracKernel
from pyro_ksd.kernels.embedding import EmbeddingKernel
from pyro_ksd.kernels.gap_weighted import GapWeightedKernel
from pyro_ksd.kernels.hamming import HammingKernel
from pyro_ksd.kernels.imq_hamming import IMQHammingKernel
from pyro_ksd.kernels.length import LengthKernel
from pyro_ksd.kernels.start import StartKernel

__all__ = [
    "ContiguousKernel",
    "CyclicGaussianKernel",
    "DiracKernel",
    "EmbeddingKernel",
    "FeatureKernel",
    "GapWeightedKernel",
    "HammingKernel",
    "IMQHammingKernel",
    "Kernel",
    "LengthKernel",
    "PairwiseKernel",
    "StartKernel",
]
