# SPDX-License-Identifier: Apache-2.0
"""The surprise kernel: how probable sequences are under the model itself."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, NoReturn

import torch
from torch import Tensor

from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels.base import FeatureKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.container import Sequences


class LogProbabilityKernel(FeatureKernel):
    """A kernel with one feature, which is made of log-probabilities under the model: only its changes are known.

    A subclass writes :meth:`changes` and says what is told of the data.
    """

    @abstractmethod
    def changes(self, chunk: WeightedEdits) -> Tensor:
        """What each edit changes of the feature, ``[E]`` or ``[K, E]``; 0 for edits without weight."""

    def features(self, sequences: Sequences) -> NoReturn:
        raise ValueError(
            "the surprise kernel needs the log-probabilities of a model: use it in a View, which ksd_check, "
            "goodness_of_fit and stein_matrices show to the model"
        )

    def stein_features_each(self, chunk: WeightedEdits) -> list[FeatureMatrix]:
        steps = torch.atleast_2d(self.changes(chunk) * chunk.weights)
        return [FeatureMatrix(chunk.edits.sum_by_owner(own)[:, None]) for own in steps]

    def steps_along(self, chunk: WeightedEdits, witness: Witness) -> Tensor:
        return self.changes(chunk) * witness.dense().index_select(0, chunk.edits.owner)[:, 0]

    def few_changes(self, chunk: WeightedEdits) -> Tensor:
        return self.changes(chunk)[:, None]

    @property
    def feature_kind(self) -> Literal["surprise"]:
        return "surprise"

    def feature_label(self, code: int, alphabet_size: int) -> str:
        return "log-probability"


@dataclass(frozen=True, eq=False)
class SurpriseKernel(LogProbabilityKernel):
    r"""The product of the log-probabilities under the model, :math:`k(x, y) = \log p(x) \log p(y)`.

    The test function is the model's own log-probability. What an edit changes of it is the log-ratio of the edit, so

    .. math:: \psi(x) = \sum_y w(x, y)\,\bigl(\log p(y) - \log p(x)\bigr)

    needs nothing that is not at hand, for unnormalized models too. A positive mean says that the model makes sequences
    that are more probable than the data. Meant for weights that fall where an edit is very improbable, see
    :func:`~pyro_ksd.stein.tempered`.

    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.stein import ZanellaOperator, stein_matrices
    >>> from pyro_ksd.stein.views import View
    >>> view = View("surprise", ZanellaOperator(balancing="barker"), SurpriseKernel())
    >>> data = Sequences.of(["abab", "aaaa"], "abc")  # a walk that hardly ever stays where it is
    >>> [matrix] = stein_matrices(random_walk(3), data, [view])
    >>> matrix.values[:, 0] > 0
    tensor([False,  True])
    """

    def changes(self, chunk: WeightedEdits) -> Tensor:
        log_ratio = known_ratios(chunk)
        is_possible = not log_ratio.numel() or bool(log_ratio.min() > -torch.inf)  # as most edits are
        return log_ratio if is_possible else log_ratio.masked_fill(log_ratio == -torch.inf, 0.0)

    @property
    def meaning(self) -> str:
        return "the probability of the sequences"


def known_ratios(chunk: WeightedEdits) -> Tensor:
    """The log-ratios of a chunk, ``[E]`` or ``[K, E]``.

    :raises ValueError: if it has none.
    """
    if chunk.log_ratio is None:
        raise ValueError("chunk: expected edits with log-ratios, found weights only; use weighted_edits(...)")
    return chunk.log_ratio
