# SPDX-License-Identifier: Apache-2.0
"""The conditional surprise kernel: how probable each symbol is under the model, given the others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NoReturn

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_positive, check_share
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels.base import FeatureKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class ConditionalSurpriseKernel(FeatureKernel):
    r"""Compares the mean log-probability of a symbol given the rest of its sequence, cut off below.

    Let :math:`q_i(s)` be the probability of the symbol :math:`s` at the place :math:`i`, given all other symbols: the
    weights of a :class:`~pyro_ksd.stein.HeatBathOperator` for substitutions. With
    :math:`h_i(s) = \max(\log q_i(s), \log \epsilon)`, the only Stein feature is

    .. math:: \psi(x) = \frac{1}{\ell} \sum_i \Bigl(\sum_s q_i(s)\,h_i(s) - h_i(x_i)\Bigr),

    which has the mean 0 under the model and lies between :math:`\log \epsilon` and :math:`-\log \epsilon`. It is
    positive where the data are less probable than the model's own symbols.

    :param least: :math:`\epsilon`; less probable symbols all count as equally improbable.

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

    def features(self, sequences: Sequences) -> NoReturn:
        raise ValueError(
            "the conditional surprise kernel needs the probabilities of a model: use it in a View with a "
            "HeatBathOperator, which ksd_monitor, ksd_check and stein_matrices show to the model"
        )

    def stein_features_each(self, chunk: WeightedEdits) -> list[FeatureMatrix]:
        steps = torch.atleast_2d(self._steps(chunk) * chunk.weights)
        return [FeatureMatrix(chunk.edits.sum_by_owner(own)[:, None]) for own in steps]

    def steps_along(self, chunk: WeightedEdits, witness: Witness) -> Tensor:
        return self._steps(chunk) * witness.dense().index_select(0, chunk.edits.owner)[:, 0]

    def few_changes(self, chunk: WeightedEdits) -> Tensor:
        return self._steps(chunk)[:, None]

    @property
    def feature_kind(self) -> Literal["surprise"]:
        return "surprise"

    def feature_label(self, code: int, alphabet_size: int) -> str:
        return "log-probability"

    @property
    def meaning(self) -> str:
        return "the probability of the symbols given the others"

    def _steps(self, chunk: WeightedEdits) -> Tensor:
        r""":math:`(h_i(y_i) - h_i(x_i)) / \ell` for each edit; ``[E]`` or ``[K, E]``. 0 for edits without weight."""
        if chunk.log_ratio is None:
            raise ValueError("chunk: expected edits with log-ratios, found weights only; use weighted_edits(...)")
        log_q = chunk.weights.log()  # of the symbol that comes; that of the one that goes is smaller by the log-ratio
        lowest = math.log(self.least)
        change = log_q.clamp(min=lowest) - (log_q - chunk.log_ratio).clamp(min=lowest)
        length = chunk.sequences.lengths.index_select(0, chunk.edits.owner).clamp(min=1)
        return torch.where(chunk.weights > 0, change / length, 0.0)
