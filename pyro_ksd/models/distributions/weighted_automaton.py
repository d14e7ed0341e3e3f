# SPDX-License-Identifier: Apache-2.0
"""Weighted automata: functions of sequences that are products of one matrix for each symbol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.common.compilation import is_compiled, share_rows
from pyro_ksd.edits.flat_edits import FlatEdits
from pyro_ksd.edits.splices import Edits, SpliceBlock
from pyro_ksd.models.distributions.log_space import subtract
from pyro_ksd.models.distributions.sampling import PAD
from pyro_ksd.sequences.container import Sequences

if TYPE_CHECKING:
    from pyro_ksd.models.distributions.compiled_automaton import Automata

_PIECE = 2**12  # edits at a time: their matrices stay in the cache
_LOST = 1e-10  # the share of its terms up to which a sum may consist of their rounding errors

Message = tuple[Tensor, Tensor]
"""Vectors ``[..., d]`` whose largest entry is 1 or -1, and the logarithms of their scales, ``[...]``."""


class WeightedAutomaton:
    r"""The ``B`` functions of sequences

    .. math:: f(x) = c \, a^\top A_{x_0} \cdots A_{x_{\ell-1}} b

    with a vector :math:`a`, a matrix :math:`A_s` for each symbol, a vector :math:`b` and a factor :math:`c`. Every
    probability of a model with finitely many hidden states is such a function. Entries may be negative. Logarithms are
    NaN where :math:`f` is negative, so that it is no probability, and where terms of both signs cancel so far that
    hardly anything is left but rounding errors.

    An edit leaves the product of the matrices before it and that of the matrices after it as they are, so a ratio costs
    :math:`O(d^2)` for each inserted symbol.

    :param first: :math:`a`, double ``[B, d]``.
    :param by_symbol: :math:`A`, double ``[B, S, d, d]``.
    :param last: :math:`b`, double ``[B, d]``.
    :param log_factor: :math:`\log c`, double ``[B]``; 0 if left out.

    >>> one = torch.ones(1, 1, dtype=torch.double)
    >>> halves = WeightedAutomaton(one, torch.full((1, 2, 1, 1), 0.5, dtype=torch.double), one)
    >>> halves.log_joint(torch.tensor([[0, 1], [1, -1]]), torch.tensor([0, 0])).exp()
    tensor([0.2500, 0.5000], dtype=torch.float64)
    """

    def __init__(self, first: Tensor, by_symbol: Tensor, last: Tensor, log_factor: Tensor | None = None) -> None:
        self.first = first.contiguous()
        self.by_symbol = by_symbol.contiguous()
        self.last = last.contiguous()
        self.log_factor = first.new_zeros(len(first)) if log_factor is None else log_factor
        self._of_rows = self.by_symbol.abs().amax(-1)
        self._of_columns = self.by_symbol.abs().amax(-2)

    def __len__(self) -> int:
        """The number of functions ``B``."""
        return len(self.first)

    def log_joint(self, tokens: Tensor, rows: Tensor) -> Tensor:
        """``log f``, ``[R]``, from long ``tokens`` ``[R, T]`` padded with -1 and the members of the batch, long
        ``[R]``; NaN where ``f`` is negative."""
        if is_compiled():
            from pyro_ksd.models.distributions.compiled_automaton import log_values

            lengths = (tokens != PAD).sum(1).numpy()
            values = np.empty(len(tokens))
            log_values(0, len(tokens), np.ascontiguousarray(tokens.numpy()), lengths, self._automata(rows), values)
            return torch.from_numpy(values) + self.log_factor[rows]
        vector, log_scale = self._ahead(tokens, rows)[-1]
        return _log_product(vector, self.last[rows]) + log_scale + self.log_factor[rows]

    def log_ratio(self, sequences: Sequences, edits: Edits, rows: Tensor | None = None) -> Tensor:
        """``log f(y) - log f(x)`` of every edit, ``[E]``; NaN where one of both is negative.

        :param rows: the member of the batch for each sequence, long ``[N]``; the first one if left out.
        """
        members = torch.zeros_like(sequences.lengths) if rows is None else rows
        flat = edits.flat if is_compiled() else None
        if flat is not None:
            return self._compiled_ratios(sequences, flat, members)
        tokens = sequences.padded(PAD)
        messages = self._ahead(tokens, members)
        old = _log_product(messages[-1][0], self.last[members]) + messages[-1][1]
        ahead = _stacked(messages)
        back = _stacked(self._back(tokens, members))
        parts = [self.first[0, :0]]
        for block in edits.pieces(_PIECE):
            new = self._edited(block, ahead, back, members)
            parts.append(subtract(new, old.index_select(0, block.owner)))
        return torch.cat(parts)

    def log_ratios(self, sequences: Sequences, edits: Edits) -> Tensor:
        """``log f(y) - log f(x)`` of every edit under every member of the batch, ``[B, E]``."""
        members = torch.arange(len(self))[:, None].expand(-1, len(sequences))
        return torch.stack([self.log_ratio(sequences, edits, rows) for rows in members])

    def _edited(self, block: SpliceBlock, ahead: Message, back: Message, members: Tensor) -> Tensor:
        """``log f`` of edited sequences, ``[E]``: only the inserted symbols lie between what stays."""
        own = block.owner, block.start
        message = ahead[0][own], ahead[1][own]
        rows = members.index_select(0, block.owner)
        for symbol in block.inserted.unbind(1):
            message = self._moved(message, rows, symbol)
        behind = block.owner, block.start + block.removed
        return _log_product(message[0], back[0][behind]) + message[1] + back[1][behind]

    def _ahead(self, tokens: Tensor, rows: Tensor) -> list[Message]:
        """The products of all matrices before each position, ``T + 1`` in all; they stay as they are after the end."""
        messages = [(self.first[rows], self.first.new_zeros(len(rows)))]
        for symbol in tokens.unbind(1):
            messages.append(_where(symbol != PAD, self._moved(messages[-1], rows, symbol.clamp(min=0)), messages[-1]))
        return messages

    def _back(self, tokens: Tensor, rows: Tensor) -> list[Message]:
        """The products of all matrices from each position to the end, ``T + 1`` in all."""
        messages = [(self.last[rows], self.last.new_zeros(len(rows)))]
        for symbol in reversed(tokens.unbind(1)):
            code = self._codes(rows, symbol.clamp(min=0))
            after = messages[-1][0]
            before = (self.by_symbol.flatten(0, 1)[code] @ after[..., None]).squeeze(2)
            bound = (after.abs() * self._of_columns.flatten(0, 1)[code]).sum(1)
            messages.append(_where(symbol != PAD, _rescaled(before, bound, messages[-1][1]), messages[-1]))
        return messages[::-1]

    def _moved(self, message: Message, rows: Tensor, symbol: Tensor) -> Message:
        code = self._codes(rows, symbol)
        moved = (message[0][:, None] @ self.by_symbol.flatten(0, 1)[code]).squeeze(1)
        return _rescaled(moved, (message[0].abs() * self._of_rows.flatten(0, 1)[code]).sum(1), message[1])

    def _codes(self, rows: Tensor, symbol: Tensor) -> Tensor:
        """The numbers of the matrices of all members."""
        return rows * self.by_symbol.shape[1] + symbol

    def _compiled_ratios(self, sequences: Sequences, edits: FlatEdits, rows: Tensor) -> Tensor:
        """As :meth:`log_ratio`."""
        from pyro_ksd.models.distributions.compiled_automaton import log_ratios

        tokens = np.ascontiguousarray(sequences.tokens.numpy())
        lengths = np.ascontiguousarray(sequences.lengths.numpy())
        automata = self._automata(rows)
        ratios = np.empty(edits.num_edits)

        def loop(first: int, last: int) -> None:
            log_ratios(first, last, tokens, lengths, edits, automata, ratios)

        share_rows(loop, edits.work)
        return torch.from_numpy(ratios)

    def _automata(self, rows: Tensor) -> Automata:
        from pyro_ksd.models.distributions.compiled_automaton import Automata

        members = np.ascontiguousarray(rows.numpy())
        return Automata(
            self.first.numpy(),
            self.by_symbol.numpy(),
            self.last.numpy(),
            self._of_rows.numpy(),
            self._of_columns.numpy(),
            _LOST,
            members,
        )


def _rescaled(vector: Tensor, bound: Tensor, log_scale: Tensor) -> Message:
    """A message, from the sums of the absolute values of the terms of each vector."""
    largest = vector.abs().amax(1)
    divisor = largest.where(largest > 0, torch.ones_like(largest))
    scale = divisor.log().masked_fill(largest < _LOST * bound, torch.nan)
    return vector / divisor[:, None], log_scale + scale


def _log_product(one: Tensor, other: Tensor) -> Tensor:
    terms = one * other
    total = terms.sum(1)
    return total.log().masked_fill(total < _LOST * terms.abs().sum(1), torch.nan)


def _where(inside: Tensor, one: Message, other: Message) -> Message:
    return torch.where(inside[:, None], one[0], other[0]), torch.where(inside, one[1], other[1])


def _stacked(messages: list[Message]) -> Message:
    """Messages of all positions, ``[N, T + 1, d]`` and ``[N, T + 1]``."""
    vectors, log_scales = zip(*messages, strict=True)
    return torch.stack(vectors, 1), torch.stack(log_scales, 1)
