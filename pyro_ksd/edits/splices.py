# SPDX-License-Identifier: Apache-2.0
"""Edits of sequences as flat tensors.

Every edit is a *splice*: take ``removed`` symbols out of a sequence at ``start`` and put ``inserted`` symbols in their
place. A substitution is the splice (1 out, 1 in), an insertion (0, 1), a deletion (1, 0), a double substitution at
distance d is (d+1, d+1), and any neighbor of any sequence is a splice too. Splices of one shape lie together in a
:class:`SpliceBlock`, so that models and kernels work on rectangular tensors without masks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.common.option_checks import check_instance
from pyro_ksd.edits.flat_edits import FlatEdits
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class SpliceBlock:
    """``E`` splices that all remove ``removed`` symbols and insert ``inserted.shape[1]`` symbols.

    :param owner: long ``[E]``, the row of the edited sequence.
    :param start: long ``[E]``, the position of the first removed symbol, or the gap of a pure insertion.
    :param removed: how many symbols go.
    :param inserted: long ``[E, W]``, the codes of the symbols that come.
    """

    owner: Tensor
    start: Tensor
    removed: int
    inserted: Tensor

    def __len__(self) -> int:
        return self.owner.shape[0]

    @property
    def growth(self) -> int:
        """By how much the sequences get longer."""
        return self.inserted.shape[1] - self.removed

    def select(self, index: Tensor) -> SpliceBlock:
        """The splices at the given (integer or boolean) index."""
        return SpliceBlock(self.owner[index], self.start[index], self.removed, self.inserted[index])

    def symbol(self, padded: Tensor, position: Tensor) -> Tensor:
        """The symbol that the edited sequences have at a position, long ``[E]``.

        :param padded: long ``[N, C]``, tokens with filler after the end, ``C > position + removed``.
        :param position: long ``[E]``.
        """
        source = torch.where(self.start > position, position, position - self.growth).clamp_(min=0)
        symbol = padded.reshape(-1).index_select(0, self.owner * padded.shape[1] + source)
        for offset, arrived in enumerate(self.inserted.unbind(1)):
            symbol = torch.where(self.start + offset == position, arrived, symbol)
        return symbol

    def codes(
        self, padded: Tensor, margin: int, width: int, base: int, *, between: bool = True
    ) -> tuple[Tensor, Tensor]:
        r"""Codes of the windows that each splice destroys and creates.

        A window of ``width`` symbols ``u`` has the code :math:`\sum_j u_j\,\mathrm{base}^{width-1-j}`. Counted by
        their last position, exactly the windows that end at ``start .. start + removed + width - 2`` are destroyed
        and those that end at ``start .. start + W + width - 2`` are created; all others stay as they are.

        :param padded: long ``[N, margin + T + margin]``, tokens with a margin of filler on both sides, filler also
            after the end of each sequence; ``margin >= width - 1``.
        :param between: whether the symbols between the first and the last one count; without them, a window of at
            least 2 symbols has the code of this pair.
        :returns: codes before ``[removed + width - 1, E]`` and after ``[W + width - 1, E]``; row ``j`` is the window
            that ends at ``start + j``.
        """
        before, after = self.symbols_around(padded, margin, width)
        return _roll(before, width, base, self.start, between), _roll(after, width, base, self.start, between)

    def symbols_around(self, padded: Tensor, margin: int, width: int) -> tuple[list[Tensor], list[Tensor]]:
        """The symbols that the windows touch that each splice destroys and creates.

        :param padded: as for :meth:`codes`.
        :returns: long ``[E]`` for each place from ``start - width + 1`` on, ``removed + 2 width - 2`` of them before
            the splice and ``W + 2 width - 2`` after it.
        """
        flat = padded.reshape(-1)
        here = self.owner * padded.shape[1] + (self.start + margin)
        left = [flat.index_select(0, here - offset) for offset in range(width - 1, 0, -1)]
        middle = [flat.index_select(0, here + offset) for offset in range(self.removed)]
        right = [flat.index_select(0, here + (self.removed + offset)) for offset in range(width - 1)]
        created = list(self.inserted.unbind(1))
        return left + middle + right, left + created + right


def _roll(symbols: list[Tensor], width: int, base: int, like: Tensor, between: bool) -> Tensor:
    """Codes of all windows of ``width`` neighboring symbols; long ``[len(symbols) - width + 1, E]``."""
    count = len(symbols) - width + 1
    codes = like.new_empty(max(count, 0), len(like))
    for row in range(count):
        code = codes[row].copy_(symbols[row])
        for symbol in symbols[row + 1 if between else row + width - 1 : row + width]:
            code.mul_(base).add_(symbol)
    return codes


@dataclass(frozen=True, eq=False)
class Edits:
    """A flat batch of edits around ``num_sequences`` sequences: block after block, ``E`` splices in all.

    >>> data = Sequences.of(["ab", "b"])
    >>> one = torch.ones(1, dtype=torch.long)
    >>> edits = Edits((SpliceBlock(owner=0 * one, start=one, removed=1, inserted=0 * one[:, None]),), 2)
    >>> edits.apply(data).to_lists()
    [['a', 'a']]
    """

    blocks: tuple[SpliceBlock, ...]
    num_sequences: int

    def __len__(self) -> int:
        return self._size

    @cached_property
    def _size(self) -> int:
        return sum(map(len, self.blocks))

    @cached_property
    def owner(self) -> Tensor:
        """Long ``[E]``: the row that each edit belongs to."""
        return torch.cat([block.owner for block in self.blocks]) if self.blocks else torch.zeros(0, dtype=torch.long)

    @cached_property
    def flat(self) -> FlatEdits | None:
        """The same edits for compiled loops; ``None`` if a block is not in the order of the rows."""
        return FlatEdits.of(
            [block.owner.numpy() for block in self.blocks],
            [block.start.numpy() for block in self.blocks],
            [block.removed for block in self.blocks],
            [block.inserted.numpy() for block in self.blocks],
            self.num_sequences,
        )

    def split(self, values: Tensor) -> Sequence[Tensor]:
        """The parts of a tensor ``[..., E]`` that belong to the blocks."""
        return torch.split(values, [len(block) for block in self.blocks], -1)

    def pieces(self, size: int) -> Iterator[SpliceBlock]:
        """The blocks in order, cut into pieces of at most ``size`` splices, which bounds the memory."""
        for block in self.blocks:
            for cut in range(0, len(block), size):
                part = slice(cut, cut + size)
                yield SpliceBlock(block.owner[part], block.start[part], block.removed, block.inserted[part])

    def sum_by_owner(self, values: Tensor) -> Tensor:
        """Sums of ``[E]`` values over the edits of each sequence: ``[num_sequences]``."""
        sums = values.new_zeros(self.num_sequences)
        if not is_compiled() or values.requires_grad or values.dtype != torch.double:
            return sums.index_add_(0, self.owner, values)
        from pyro_ksd.edits.compiled_owner_sums import sum_by_owner

        sum_by_owner(self.owner.numpy(), values.contiguous().numpy(), sums.numpy())
        return sums

    def new_lengths(self, lengths: Tensor) -> Tensor:
        """Long ``[E]``: the lengths of the edited sequences."""
        if not self.blocks:
            return lengths[:0]
        return torch.cat([lengths[block.owner] + block.growth for block in self.blocks])

    def apply(self, sequences: Sequences) -> Sequences:
        """The edited sequences themselves, one row an edit."""
        width = max([sequences.width + block.growth for block in self.blocks if len(block)], default=sequences.width)
        parts = [_splice(sequences, block, max(width, 0)) for block in self.blocks]
        tokens = torch.cat(parts) if parts else sequences.tokens[:0]
        return sequences.derived(tokens, self.new_lengths(sequences.lengths), self.owner)

    def select(self, index: Tensor) -> Edits:
        """The edits at the given flat positions, long ``[M]`` in ascending order."""
        offsets = torch.tensor([0, *(len(block) for block in self.blocks)]).cumsum(0)
        cuts = torch.searchsorted(index, offsets).tolist()
        blocks = [block.select(index[cuts[i] : cuts[i + 1]] - offsets[i]) for i, block in enumerate(self.blocks)]
        return Edits(tuple(blocks), self.num_sequences)

    def within(self, rows: Tensor) -> Edits:
        """The same edits as edits of the sequences ``rows``, long ``[M]`` in ascending order, which hold all owners."""
        blocks = [
            SpliceBlock(torch.searchsorted(rows, block.owner), block.start, block.removed, block.inserted)
            for block in self.blocks
        ]
        return Edits(tuple(blocks), len(rows))

    @staticmethod
    def identity(sequences: Sequences) -> Edits:
        """One edit a sequence that leaves it as it is."""
        rows = torch.arange(len(sequences))
        return Edits((SpliceBlock(rows, torch.zeros_like(rows), 0, rows.new_empty(len(rows), 0)),), len(sequences))

    @staticmethod
    def cat(parts: Sequence[Edits]) -> Edits:
        """All edits of the parts, which edit the same sequences."""
        return Edits(tuple(block for part in parts for block in part.blocks), parts[0].num_sequences)

    @staticmethod
    def between(sequences: Sequences, owner: Tensor, neighbors: Sequences) -> Edits:
        """The splices that turn ``sequences[owner[e]]`` into ``neighbors[e]``, distinct and without identities.

        The splice keeps the longest common prefix and, of what is left, the longest common suffix, so a pair of
        sequences has one splice and repeated neighbors are found by comparing splices.

        :param owner: long ``[E]``.
        :param neighbors: ``E`` sequences.
        """
        own = sequences[owner]
        other = neighbors
        shortest = torch.minimum(own.lengths, other.lengths)
        width = max(own.width, other.width, 1)
        columns = torch.arange(width)
        x = torch.nn.functional.pad(own.tokens, (0, width - own.width))
        y = torch.nn.functional.pad(other.tokens, (0, width - other.width))
        prefix = ((x == y) & (columns < shortest[:, None])).long().cumprod(1).sum(1)
        from_end = columns + 1
        x_back = x.gather(1, (own.lengths[:, None] - from_end).clamp(min=0))
        y_back = y.gather(1, (other.lengths[:, None] - from_end).clamp(min=0))
        suffix = ((x_back == y_back) & (columns < (shortest - prefix)[:, None])).long().cumprod(1).sum(1)
        removed = own.lengths - prefix - suffix
        grown = other.lengths - prefix - suffix
        inside = columns < grown[:, None]
        inserted = y.gather(1, (prefix[:, None] + columns).clamp(max=width - 1)).masked_fill(~inside, 0)
        rows = torch.cat([torch.stack([owner, prefix, removed, grown], 1), inserted], 1)
        rows = rows[(removed > 0) | (grown > 0)].unique(dim=0)
        blocks = []
        for shape in rows[:, 2:4].unique(dim=0):
            same = rows[(rows[:, 2:4] == shape).all(1)]
            out, into = shape.tolist()
            blocks.append(SpliceBlock(same[:, 0], same[:, 1], out, same[:, 4 : 4 + into]))
        return Edits(tuple(blocks), len(sequences))


def check_edits(edits: object, sequences: Sequences) -> None:
    """Checks that an argument holds edits around the sequences.

    >>> check_edits(None, Sequences.of(["ab"]))
    Traceback (most recent call last):
    ValueError: edits: expected the Edits around 1 sequence(s), such as zs().edits(sequences), found None
    """
    words = f"the Edits around {len(sequences)} sequence(s), such as zs().edits(sequences)"
    check_instance("edits", edits, Edits, words)
    if isinstance(edits, Edits) and edits.num_sequences != len(sequences):
        raise ValueError(f"edits: expected {words}, found those around {edits.num_sequences}")


def _splice(sequences: Sequences, block: SpliceBlock, width: int) -> Tensor:
    """The edited tokens of one block, long ``[E, width]``."""
    columns = torch.arange(width)
    start = block.start[:, None]
    arrived = block.inserted.shape[1]
    source = torch.where(columns < start, columns, columns - block.growth)
    padded = torch.nn.functional.pad(sequences.tokens, (0, 1))
    tokens = padded[block.owner[:, None], source.clamp(0, sequences.width)]
    if arrived:
        offset = columns - start
        replaced = block.inserted.gather(1, offset.clamp(0, arrived - 1))
        tokens = torch.where((offset >= 0) & (offset < arrived), replaced, tokens)
    return tokens
