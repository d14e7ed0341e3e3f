# SPDX-License-Identifier: Apache-2.0
"""The conditional surprise kernel: how probable each symbol is under the model, given the others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_positive, check_share
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels.surprise import LogProbabilityKernel, known_ratios


@dataclass(frozen=True, eq=False)
class ConditionalSurpriseKernel(LogProbabilityKernel):
    r"""Compares the mean log-probability of a symbol given the rest of its sequence, cut off below.

    Let :math:`q_i(s)` be the probability of the symbol :math:`s` at the place :math:`i`, given all other symbols: the
    weights of a :class:`~pyro_ksd.stein.HeatBathOperator` for substitutions. With
    :math:`h_i(s) = \max(\log q_i(s), \log \epsilon)`, the only Stein feature is

    .. math:: \psi(x) = \frac{1}{\ell} \sum_i \Bigl(\sum_s q_i(s)\,h_i(s) - h_i(x_i)\Bigr),

    which has the mean 0 under the model and lies between :math:`\log \epsilon` and :math:`-\log \epsilon`. It is
    positive where the data are less probable than the model's own symbols.

    :param least: :math:`\epsilon`; less probable symbols all count as equally improbable.

    >>> from pyro_ksd import Sequences
    >>> from pyro_ksd.edits import Substitutions
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import HeatBathOperator, View, stein_matrices
    >>> view = View("surprise", HeatBathOperator(Substitutions()), ConditionalSurpriseKernel())
    >>> data = Sequences.of(["abab", "aaaa"], "abc")  # a walk that hardly ever stays where it is
    >>> [matrix] = stein_matrices(random_walk(3), data, [view])
    >>> matrix.values[:, 0] > 0
    tensor([False,  True])
    """

    least: float = 1e-3

    def __post_init__(self) -> None:
        check_positive("least", self.least)
        check_share("least", self.least)

    @property
    def bound(self) -> float:
        """The largest absolute value of the Stein feature."""
        return -math.log(self.least)

    @property
    def meaning(self) -> str:
        return "the probability of the symbols given the others"

    def changes(self, chunk: WeightedEdits) -> Tensor:
        log_ratio = known_ratios(chunk)
        log_q = chunk.weights.log()  # of the symbol that comes; that of the one that goes is smaller by the log-ratio
        lowest = math.log(self.least)
        change = log_q.clamp(min=lowest) - (log_q - log_ratio).clamp(min=lowest)
        length = chunk.sequences.lengths.index_select(0, chunk.edits.owner).clamp(min=1)
        return torch.where(chunk.weights > 0, change / length, 0.0)
