# SPDX-License-Identifier: Apache-2.0
"""Relations between symbols: which of them may replace which.

A relation is ``None`` for any two symbols, a radius on the ring of codes, a symmetric boolean matrix,
:class:`RandomReplacements` or :class:`ListedReplacements`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_number, is_count
from pyro_ksd.common.random_numbers import Seed, as_seed
from pyro_ksd.common.row_groups import distinct_rows
from pyro_ksd.common.tensor_checks import shown
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True)
class RandomReplacements:
    """For large alphabets: each symbol may be replaced by ``count`` others, chosen at random once and for all.

    Symbols replace each other if their distance on the ring of codes is one of some random steps, so that the relation
    is symmetric and takes no memory.

    :param count: about how many symbols may replace each symbol.
    :param seed: of the random steps.

    >>> RandomReplacements(4).steps(1000) == RandomReplacements(4).steps(1000)
    True
    """

    count: int
    seed: Seed = 0

    def __post_init__(self) -> None:
        check_number("count", self.count, least=1)
        object.__setattr__(self, "seed", as_seed(self.seed))

    def steps(self, size: int) -> list[int]:
        """The steps ``1 .. size-1`` on the ring of codes, with each step also the one back."""
        generator = torch.Generator().manual_seed(as_seed(self.seed))
        half = (torch.randperm(size // 2, generator=generator) + 1)[: (self.count + 1) // 2].tolist()
        return sorted({*half, *(size - step for step in half)} - {size})


@dataclass(frozen=True, eq=False)
class ListedReplacements:
    """A symmetric relation between the symbols of a large alphabet, most of which have few replacements.

    :param codes: long ``[S, R]``, the symbols that may replace each symbol, filled with -1.

    >>> chain = ListedReplacements(torch.tensor([[1, -1], [0, 2], [1, -1]]))  # the next symbol, or the one before
    >>> from pyro_ksd.edits import Substitutions
    >>> data = Sequences.of(["ac"], alphabet="abc")
    >>> ["".join(x) for x in Substitutions(symbols=chain).edits(data).apply(data).to_lists()]
    ['bc', 'ab']
    """

    codes: Tensor

    def __post_init__(self) -> None:
        codes = self.codes
        if not isinstance(codes, Tensor) or codes.dtype != torch.long or codes.ndim != 2 or not codes.is_cpu:
            raise ValueError(f"codes: expected a long tensor [S, R] on the CPU, found {shown(codes)}")
        size = len(codes)
        if ((codes < -1) | (codes >= size)).any():
            raise ValueError(f"codes: expected codes from 0 to {size - 1}, or -1, found {int(codes.max())}")
        symbol, column = (codes >= 0).nonzero().unbind(1)
        other = codes[symbol, column]
        there, back = ((one * size + two).sort().values for one, two in ((symbol, other), (other, symbol)))
        if not there.equal(back) or (there.diff() == 0).any() or (symbol == other).any():
            raise ValueError(
                "codes: expected other symbols, each once, in a symmetric relation, found symbols that replace "
                "themselves, come twice, or replace each other in one direction only"
            )


Relation = int | Tensor | RandomReplacements | ListedReplacements | None
"""Which symbols may replace which."""


def one_channel(sequences: Sequences) -> ListedReplacements:
    """Which symbols differ in one channel, for sequences whose symbols are vectors.

    >>> data = Sequences.of([torch.tensor([[0, 0], [0, 1], [1, 1]])])
    >>> data.symbols
    ({}, {1}, {0}, {0,1})
    >>> one_channel(data).codes
    tensor([[1, 2],
            [0, 3],
            [0, 3],
            [1, 2]])
    """
    check_sequences("sequences", sequences)
    vectors = sequences.vectors
    if vectors is None:
        raise ValueError(
            "sequences: expected symbols that are vectors, found single ones; make them from arrays [T, C] with "
            "Sequences.of"
        )
    rows = vectors.long()
    pairs = [_equal_elsewhere(rows, channel) for channel in range(rows.shape[1])]
    one, other = torch.cat(pairs, 1).unbind(0)
    return _listed(torch.cat([one, other]), torch.cat([other, one]), len(rows))


def _equal_elsewhere(vectors: Tensor, channel: int) -> Tensor:
    """The pairs of distinct vectors that are equal in all channels but one, long ``[2, M]``."""
    rest = torch.cat([vectors[:, :channel], vectors[:, channel + 1 :]], 1)
    _, group = distinct_rows(rest)
    order = group.argsort(stable=True)
    ordered = group[order]
    pairs = [order.new_empty(2, 0)]
    for step in range(1, int(group.bincount().max())):
        same = (ordered[step:] == ordered[:-step]).nonzero().squeeze(1)
        pairs.append(torch.stack([order[same], order[same + step]]))
    return torch.cat(pairs, 1)


def _listed(symbol: Tensor, replacement: Tensor, size: int) -> ListedReplacements:
    """The relation with the given pairs of symbols, long ``[M]`` each."""
    order = (symbol * size + replacement).argsort()
    owners = symbol[order]
    counts = owners.bincount(minlength=size)
    column = torch.arange(len(owners)) - (counts.cumsum(0) - counts)[owners]
    codes = torch.full((size, int(counts.max())), -1)
    codes[owners, column] = replacement[order]
    return ListedReplacements(codes)


def replacements(symbols: Relation, here: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Which symbols may replace each of the given ones.

    :param symbols: a relation between symbols.
    :param here: long ``[P]``, codes of symbols to be replaced.
    :returns: for every replacement the index ``0 .. P-1`` of what is replaced, and the code of the new symbol,
        long ``[M]`` each.
    """
    if isinstance(symbols, Tensor):
        related = _checked_relation(symbols, size)
        index, symbol = related[here].nonzero().unbind(1)
        return index, symbol
    if isinstance(symbols, ListedReplacements):
        listed = _checked_lists(symbols, size)[here]
        index, column = (listed >= 0).nonzero().unbind(1)
        return index, listed[index, column]
    steps = torch.tensor(_ring_steps(symbols, size), dtype=torch.long)
    symbol = here[:, None] + steps
    symbol -= size * (symbol >= size)
    index = torch.arange(len(here))[:, None].expand_as(symbol)
    return index.reshape(-1), symbol.view(-1)


def num_replacements(symbols: Relation, size: int) -> int:
    """The largest number of replacements that a symbol has."""
    if isinstance(symbols, ListedReplacements):
        return _checked_lists(symbols, size).shape[1]
    if isinstance(symbols, Tensor):
        return int(_checked_relation(symbols, size).sum(1).max())
    return len(_ring_steps(symbols, size))


def _ring_steps(radius: int | RandomReplacements | None, size: int) -> list[int]:
    """The steps ``1 .. size-1`` on the ring of codes: at most ``radius`` away, some of them, or all."""
    if radius is None:
        return list(range(1, size))
    if isinstance(radius, RandomReplacements):
        return radius.steps(size)
    return [step for step in range(1, size) if min(step, size - step) <= radius]


def _checked_lists(relation: ListedReplacements, size: int) -> Tensor:
    """The lists of replacements, long ``[S, R]``."""
    if len(relation.codes) != size:
        raise ValueError(
            f"symbols: expected replacements of the {size} symbols of the alphabet, found those of "
            f"{len(relation.codes)}; make them from the same sequences, one_channel(sequences)"
        )
    return relation.codes


def _checked_relation(relation: Tensor, size: int) -> Tensor:
    """The relation without its diagonal, boolean ``[S, S]``."""
    if relation.dtype != torch.bool or relation.shape != (size, size):
        raise ValueError(
            f"symbols: expected a boolean [{size}, {size}] matrix for an alphabet of {size} symbols, "
            f"found {relation.dtype} {list(relation.shape)}"
        )
    lopsided = relation != relation.T
    if lopsided.any():
        a, b = lopsided.nonzero()[0].tolist()
        raise ValueError(
            f"symbols: expected a symmetric relation, found that {a} and {b} replace each other in one direction "
            "only; the Stein identity needs both: use (relation | relation.T)"
        )
    return relation & ~torch.eye(size, dtype=torch.bool)


def check_symbols(symbols: object) -> None:
    """Checks which symbols may replace which, as far as it does not depend on the alphabet."""
    if symbols is None or is_count(symbols) or isinstance(symbols, RandomReplacements | ListedReplacements):
        return
    if not isinstance(symbols, Tensor) or not symbols.is_cpu:
        raise ValueError(
            f"symbols: expected None, a radius of at least 1 or a boolean matrix, found {shown(symbols)}; make a "
            "matrix a tensor on the CPU"
        )
    if symbols.dtype != torch.bool or symbols.ndim != 2 or symbols.shape[0] != symbols.shape[1]:
        raise ValueError(f"symbols: expected a boolean [S, S] matrix, found {shown(symbols)}")
