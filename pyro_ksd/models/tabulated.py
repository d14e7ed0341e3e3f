# SPDX-License-Identifier: Apache-2.0
"""Models of a known order, by a table of all short sequences."""

from __future__ import annotations

import warnings
from itertools import product

import torch
from torch import Tensor

from pyro_ksd.edits import Edits
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.distribution import PAD
from pyro_ksd.models.local import FactorTable
from pyro_ksd.sequences import Sequences

_TOLERANCE = 1e-6
_NEIGHBORS = 2  # edits of each sequence on which the table is verified


class TabulatedModel:
    r"""A model of order ``k`` whose log-joint is a sum over its windows of ``k + 1`` symbols.

    If a symbol, and whether it is the last one, depends on no more than the ``k`` symbols before it, then

    .. math:: \log p(x) = \sum_i \log p(x_{i-k}, \ldots, x_i) - \log p(x_{i-k}, \ldots, x_{i-1}),

    where windows that reach over the start are cut there and an empty window counts as 0. So the log-joints of all
    sequences of up to ``k + 1`` symbols say everything, and an edit changes only ``O(k)`` terms.

    Whether the model is of that order is *verified* on the data that it is used for: on every sequence, and on some of
    its edits each time that ratios are asked for. Where the table disagrees with the model, a warning says so and the
    model itself is used from then on. A dependence so rare that none of these sequences shows it stays unseen: the
    order is the user's word.

    :param model: the model, known by its log-joint.
    :param order: ``k``.
    """

    def __init__(self, model: SequenceModel, order: int) -> None:
        if isinstance(order, bool) or not isinstance(order, int) or order < 1:
            raise ValueError(f"order: expected a number of at least 1, found {order!r}")
        self._model = model
        self._order = order
        self._table: FactorTable | None = self._tabulate()

    @property
    def alphabet_size(self) -> int:
        """The number of symbols ``S``."""
        return self._model.alphabet_size

    @property
    def is_local(self) -> bool:
        """Whether the table is still in use."""
        return self._table is not None

    def log_joint(self, sequences: Sequences) -> Tensor:
        """``log p(x)`` up to a constant, double ``[N]``, from the model itself."""
        return self._model.log_joint(sequences)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        """``log p(y) - log p(x)`` for every edit, double ``[E]``, from the table where it holds."""
        if self._table is not None:
            ratio = self._table.log_ratio(sequences, edits, None)
            if self._holds(sequences, edits, ratio):
                return ratio
            self._table = None
            warnings.warn(
                f"the model is not of order {self._order}: its table disagrees with the log-joint of the data or of "
                "their edits (a longer memory, or a length law that is not a stop at each step?); every edited "
                "sequence is evaluated instead, which takes longer. Leave out order=, or raise it",
                UserWarning,
                stacklevel=2,
            )
        return self._model.log_ratio(sequences, edits)

    def _tabulate(self) -> FactorTable:
        size, order = self.alphabet_size, self._order
        words = [word for length in range(order + 2) for word in product(range(size), repeat=length)]
        values = self._model.log_joint(Sequences.of(words, size)).tolist()
        log_joint = dict(zip(words, values, strict=True))
        nothing = log_joint[()]
        log_joint[()] = 0.0
        table = torch.full([size + 1] * (order + 1), -torch.inf, dtype=torch.double)
        for word in words[1:]:
            window = (size,) * (order + 1 - len(word)) + word
            table[window] = log_joint[word] - log_joint[word[:-1]] if log_joint[word] > -torch.inf else -torch.inf
        table[..., size] = 0.0  # the stop is part of every entry
        table[(size,) * (order + 1)] = nothing
        return FactorTable(table[None])

    def _holds(self, sequences: Sequences, edits: Edits, ratio: Tensor) -> bool:
        """Whether the table agrees with the model on the sequences and on some edits of each."""
        if self._table is None or ratio.isnan().any():
            return False
        rows = torch.zeros(len(sequences), dtype=torch.long, device=sequences.device)
        by_table = self._table.log_joint(sequences.padded(PAD), rows)
        if not _agree(by_table, self._model.log_joint(sequences)):
            return False
        picked = _some_of_each(edits)
        return _agree(ratio[picked], self._model.log_ratio(sequences, edits.select(picked)))


def _agree(a: Tensor, b: Tensor) -> bool:
    return bool(torch.isclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE).all())


def _some_of_each(edits: Edits) -> Tensor:
    """Flat positions of some edits of each sequence, spread over their kinds and places."""
    generator = torch.Generator().manual_seed(0)
    shuffled = torch.randperm(len(edits), generator=generator).to(edits.owner.device)
    order = edits.owner[shuffled].argsort(stable=True)
    owner = edits.owner[shuffled][order]
    position = torch.arange(len(owner), device=owner.device)
    first = torch.searchsorted(owner, owner)
    return shuffled[order][position - first < _NEIGHBORS].sort().values
