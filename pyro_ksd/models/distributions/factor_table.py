# SPDX-License-Identifier: Apache-2.0
"""Log-factors of models in which a symbol depends on the few symbols before it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.common.compilation import is_compiled, share_rows
from pyro_ksd.common.option_checks import check_number
from pyro_ksd.edits.flat_edits import FlatEdits
from pyro_ksd.edits.splices import Edits, SpliceBlock
from pyro_ksd.models.distributions.log_space import subtract
from pyro_ksd.models.distributions.sampling import PAD
from pyro_ksd.sequences.container import Sequences

if TYPE_CHECKING:
    from pyro_ksd.edits.compiled_factors import Factors

_PIECE = 2**15  # edits at a time: their codes stay in the cache
_MOST_BITS = 30  # of the size of tables in bytes: a gigabyte; while they are made, a few times as much is needed
_ROUNDING = 1e-9


class FactorTable:
    r"""The log-factors of a local model of order ``k``.

    .. math:: \log p(x) = \sum_{i=0}^{\ell} f(x_{i-k}, \ldots, x_i)

    where :math:`x_i` is the boundary symbol ``S`` for :math:`i < 0` and :math:`i = \ell`. The last factor is the one of
    stopping, 0 in models that have none. An edit changes only the factors around it, so ratios cost :math:`O(k)`.

    :param factors: double ``[B] + [S + 1] * (k + 1)``, the table :math:`f` of each member of a batch of models.
    """

    def __init__(self, factors: Tensor) -> None:
        self.order = factors.ndim - 2
        self.boundary = factors.shape[-1] - 1
        self._size = int((self.boundary + 1) ** (self.order + 1))
        # Windows that reach over the end by more than one boundary symbol must not count in ratios.
        impossible = ~context_is_possible(self.boundary, self.order)[..., None]
        self.values = factors.masked_fill(impossible, 0).reshape(-1).contiguous()

    def __len__(self) -> int:
        """The number of models ``B``."""
        return len(self.values) // self._size

    def of_models(self, which: slice | Tensor) -> FactorTable:
        """The tables of some of the models, by a slice or their numbers."""
        some = copy(self)
        some.values = self.values.view(-1, self._size)[which].reshape(-1).contiguous()
        return some

    def log_joint(self, tokens: Tensor, rows: Tensor) -> Tensor:
        """``[R]``, from long ``tokens`` ``[R, T]`` padded with -1 and the members of the batch, long ``[R]``."""
        base = self.boundary + 1
        width = tokens.shape[1]
        lengths = (tokens != PAD).sum(-1)
        padded = self._with_boundary(tokens, tokens == PAD, self.order, 1)
        if self._is_compiled:
            return self._compiled_joints(padded, lengths, rows)
        codes = rows[:, None].expand(-1, width + 1)
        for offset in range(self.order + 1):
            codes = codes * base + padded[:, offset : offset + width + 1]
        behind = torch.arange(width + 1) > lengths[:, None]
        return self.values[codes].masked_fill(behind, 0).sum(-1)

    def log_ratio(
        self, sequences: Sequences, edits: Edits, terms: Tensor | None = None, rows: Tensor | None = None
    ) -> Tensor:
        """``log p(y) - log p(x)`` of every edit, ``[E]``.

        :param terms: a term for each length from 0 on, ``[longest + 1]``, to be added to ``log p``.
        :param rows: the member of the batch for each sequence, long ``[N]``; the first one if left out.
        """
        flat = self._for_compiled_loops(edits)
        if flat is not None:
            return self._compiled_ratios(sequences, flat, terms, [rows])[0]
        parts = [self.values[:0]]
        for block, before, after in self._windows(sequences, edits):
            offset = None if rows is None else rows.index_select(0, block.owner) * self._size
            old = self._total(self.values, before, offset)
            new = self._total(self.values, after, offset)
            if terms is not None:
                own = sequences.lengths.index_select(0, block.owner)
                old = old + terms.index_select(0, own)
                new = new + terms.index_select(0, own + block.growth)
            parts.append(subtract(new, old))
        return torch.cat(parts)

    def log_ratios(self, sequences: Sequences, edits: Edits) -> Tensor:
        """``log p(y) - log p(x)`` of every edit under every member of the batch, ``[B, E]``."""
        flat = self._for_compiled_loops(edits)
        if flat is not None:
            members = torch.arange(len(self))[:, None].expand(-1, len(sequences))
            return self._compiled_ratios(sequences, flat, None, list(members))
        tables = self.values.view(-1, self._size)
        parts = [tables[:, :0]]
        for _, before, after in self._windows(sequences, edits):
            parts.append(torch.stack([subtract(self._total(f, after), self._total(f, before)) for f in tables]))
        return torch.cat(parts, 1)

    @property
    def _is_compiled(self) -> bool:
        """Whether compiled loops compute, in which there are no gradients."""
        return is_compiled() and not (self.values.requires_grad and torch.is_grad_enabled())

    def _for_compiled_loops(self, edits: Edits) -> FlatEdits | None:
        """The edits for compiled loops, ``None`` where torch computes."""
        return edits.flat if self._is_compiled else None

    def _factors(self, rows: Tensor | None, num_rows: int) -> Factors:
        """The factors for compiled loops, of the members of the batch for each row, long ``[N]``."""
        from pyro_ksd.edits.compiled_factors import Factors

        offsets = np.zeros(num_rows, dtype=np.int64) if rows is None else rows.numpy() * self._size
        return Factors(self.values.detach().numpy(), offsets, self.boundary + 1, self.order + 1)

    def _compiled_joints(self, padded: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        """As :meth:`log_joint`."""
        from pyro_ksd.edits.compiled_factors import log_joints

        sums = np.empty(len(padded), dtype=self.values.numpy().dtype)
        log_joints(0, len(padded), padded.numpy(), lengths.numpy(), self._factors(rows, len(padded)), sums)
        return torch.from_numpy(sums)

    def _compiled_ratios(
        self, sequences: Sequences, edits: FlatEdits, terms: Tensor | None, rows_each: Sequence[Tensor | None]
    ) -> Tensor:
        """As :meth:`log_ratio`, for each of several choices of the members, ``[K, E]``."""
        from pyro_ksd.edits.compiled_factors import log_ratios

        padded = self._with_boundary(sequences.tokens, ~sequences.mask, self.order, 1).numpy()
        lengths = np.ascontiguousarray(sequences.lengths.numpy())
        factors_each = [self._factors(rows, len(lengths)) for rows in rows_each]
        lengths_terms = np.zeros(0) if terms is None else np.ascontiguousarray(terms.detach().numpy())
        ratios = np.empty((len(rows_each), edits.num_edits))

        def loop(first: int, last: int) -> None:
            for factors, own in zip(factors_each, ratios, strict=True):
                log_ratios(first, last, padded, lengths, edits, factors, lengths_terms, own)

        share_rows(loop, edits.work)
        return torch.from_numpy(ratios)

    def _windows(self, sequences: Sequences, edits: Edits) -> Iterator[tuple[SpliceBlock, Tensor, Tensor]]:
        """Blocks of edits with the codes of the windows before and after each edit, ``[windows, E]``."""
        padded = self._with_boundary(sequences.tokens, ~sequences.mask, self.order, self.order)
        for block in edits.pieces(_PIECE):
            yield block, *block.codes(padded, self.order, self.order + 1, self.boundary + 1)

    def _total(self, factors: Tensor, codes: Tensor, offset: Tensor | None = None) -> Tensor:
        """The sum of the factors of the windows of each edit, ``[E]``.

        :param factors: of a window for each code, flat.
        :param codes: of the windows, ``[windows, E]``.
        :param offset: where the factors for each edit begin, ``[E]``; at 0 if left out.
        """
        total = factors.new_zeros(codes.shape[1])
        for position, code in enumerate(codes):
            factor = factors.index_select(0, code if offset is None else code + offset)
            if position and self.order > 1:
                # A window of boundaries alone is the stop of an empty sequence if it comes first, else lies behind it.
                factor = factor.masked_fill(code == self._size - 1, 0)
            total = total + factor
        return total

    def _with_boundary(self, tokens: Tensor, padding: Tensor, before: int, behind: int) -> Tensor:
        filled = tokens.masked_fill(padding, self.boundary)
        return torch.nn.functional.pad(filled, (before, behind), value=self.boundary)


def check_order(order: int, alphabet_size: int, num_models: int = 1) -> None:
    """Checks that an order is one, and that the tables of all contexts can be held, before they are made.

    :param num_models: how many models have such a table.

    >>> check_order(5, alphabet_size=60)
    Traceback (most recent call last):
    ValueError: order: expected at most 3 for 60 symbols, found 5, for which the table of all contexts would take ...
    """
    check_number("order", order, least=1)
    one_more = math.log2(alphabet_size + 1)
    least = math.log2(8 * num_models) + one_more  # bits of the size in bytes of a table of order 0
    most = int((_MOST_BITS - least) / one_more + _ROUNDING)
    if order <= most:
        return
    expected = f"at most {most}" if most > 0 else "none"
    tables = "the table of all contexts" if num_models == 1 else f"{num_models} tables of all contexts"
    digits = (least + order * one_more) * math.log10(2) - 9
    gigabytes = f"{10**digits:,.3g}" if digits < 6 else f"1e{int(digits)}"
    raise ValueError(
        f"order: expected {expected} for {alphabet_size} symbols, found {order}, for which {tables} would take "
        f"{gigabytes} GB, more than {2**_MOST_BITS / 1e9:.3g} GB; lower the order, or join rare symbols into one"
    )


def context_is_possible(boundary: int, order: int) -> Tensor:
    """Boolean ``[boundary + 1] * order``: whether all boundary symbols of a context come before its other symbols."""
    possible = torch.ones([boundary + 1] * order, dtype=torch.bool)
    for axis in range(order - 1):
        possible.narrow(axis, 0, boundary).narrow(axis + 1, boundary, 1).fill_(False)
    return possible
