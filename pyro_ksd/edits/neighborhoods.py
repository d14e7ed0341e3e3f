# SPDX-License-Identifier: Apache-2.0
r"""Neighborhoods of sequences: the edits over which the Zanella–Stein operator sums.

A neighborhood :math:`\partial x` is a finite *set* of sequences with :math:`y \in \partial x \iff x \in \partial y`.
Locations are counted from the end of the sequence: location 1 is the last symbol. In the names of Baum, Kanagawa and
Gretton (2023), ZS is :func:`zs`, ZS′ is :class:`Substitutions` alone and ZS″ is :class:`InsertionsDeletions` alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import torch
from torch import Tensor

from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.common.option_checks import check_function, check_instance, found, is_count
from pyro_ksd.edits.splices import Edits, SpliceBlock
from pyro_ksd.edits.symbol_relations import Relation, check_symbols, num_replacements, replacements
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences


class Neighborhood(ABC):
    """A symmetric relation between sequences, given by the distinct edits around each one.

    Neighborhoods combine with ``|``.

    >>> data = Sequences.of(["ab"])
    >>> around = Substitutions() | InsertionsDeletions(locations=1)
    >>> ["".join(x) for x in around.edits(data).apply(data).to_lists()]
    ['bb', 'aa', 'aba', 'abb', 'a']
    """

    @property
    @abstractmethod
    def kinds(self) -> frozenset[str]:
        """What sorts of edits there are; neighborhoods without a common kind have no common neighbor."""

    @abstractmethod
    def edits(self, sequences: Sequences) -> Edits:
        """The distinct edits around each sequence, none of which leaves it as it is."""

    @abstractmethod
    def edit_bound(self, width: int, alphabet_size: int) -> int:
        """About how many edits, at the most, a sequence of ``width`` symbols has; for planning."""

    @property
    def is_costly(self) -> bool:
        """Whether it takes long to find the edits, so that they are better kept than found again."""
        return False

    @property
    def replaces_freely(self) -> bool:
        """Whether the substitutions at a place lead from each of some symbols to all others of them.

        Then the symbol can be drawn anew from its distribution given the rest, see
        :class:`~pyro_ksd.stein.HeatBathOperator`.
        """
        return False

    @property
    def least_changed(self) -> int | None:
        """The shortest length of which all sequences can get longer, and all longer sequences can get shorter.

        ``None`` if there is no such length.

        >>> zs().least_changed, BeforeEnd(zs()).least_changed, zs(insertable="a").least_changed
        (0, 1, None)
        """
        return None

    @property
    def tail(self) -> Neighborhood:
        """What replaces, appends and removes the last symbol of such sequences, in three blocks of that order.

        Whatever may be appended to a sequence may also replace what was appended. These are the edits of the default
        view of the length, see :class:`~pyro_ksd.stein.TailBlockOperator`.
        """
        return zs(locations=1)

    def __or__(self, other: Neighborhood) -> Neighborhood:
        check_neighborhood("other", other)
        return Union((self, other))


@dataclass(frozen=True, eq=False)
class Substitutions(Neighborhood):
    """Replaces one symbol by another (ZS′).

    Never changes the length, so it tests the model *given the length*.

    :param locations: how many locations from the end may change (``J``); ``None`` for all.
    :param symbols: which symbols may replace which: ``None`` for any, a radius ``d`` for the symbols at distance up to
        ``d`` on the ring of codes, a symmetric boolean ``[S, S]`` matrix, :class:`RandomReplacements`, or, for symbols
        that are vectors, :func:`one_channel`.

    >>> Substitutions(locations=1).edits(Sequences.of(["ab", "b"])).apply(Sequences.of(["ab", "b"])).to_lists()
    [['a', 'a'], ['a']]
    """

    locations: int | None = None
    symbols: Relation = None

    def __post_init__(self) -> None:
        check_locations(self.locations)
        check_symbols(self.symbols)

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset({"substitution"})

    def edits(self, sequences: Sequences) -> Edits:
        check_sequences("sequences", sequences)
        if is_compiled() and self.symbols is None:
            from pyro_ksd.edits.compiled_edits import substitutions

            return Edits((substitutions(sequences, self.locations),), len(sequences))
        owner, position = permitted(sequences.lengths, self.locations, extra=0, width=sequences.width)
        site, symbol = replacements(self.symbols, sequences.tokens[owner, position], sequences.alphabet_size)
        block = SpliceBlock(owner[site], position[site], 1, symbol[:, None])
        return Edits((block,), len(sequences))

    @property
    def replaces_freely(self) -> bool:
        return self.symbols is None

    def edit_bound(self, width: int, alphabet_size: int) -> int:
        return reach(width, self.locations) * num_replacements(self.symbols, alphabet_size)


@dataclass(frozen=True, eq=False)
class InsertionsDeletions(Neighborhood):
    """Inserts one symbol or deletes one (ZS″); each is the way back of the other, so they come together.

    Inserting ``a`` anywhere into a run of ``a``, or deleting any symbol of the run, gives one and the same sequence:
    only the first permitted place of each run is kept, which makes the edits distinct without comparing sequences.

    :param locations: an inserted symbol becomes, and a deleted symbol was, among the last ``locations`` symbols;
        ``None`` for anywhere.
    :param insertable: the symbols (of the data's alphabet) that may be inserted or deleted; ``None`` for all.

    >>> data = Sequences.of(["aa"], alphabet="ab")
    >>> ["".join(x) for x in InsertionsDeletions().edits(data).apply(data).to_lists()]
    ['aaa', 'baa', 'aba', 'aab', 'a']
    """

    locations: int | None = None
    insertable: Iterable[Hashable] | None = None

    def __post_init__(self) -> None:
        check_locations(self.locations)
        if self.insertable is not None:
            object.__setattr__(self, "insertable", _as_symbols(self.insertable))

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset({"insertion", "deletion"})

    @property
    def least_changed(self) -> int | None:
        return 0 if self.insertable is None else None

    def edits(self, sequences: Sequences) -> Edits:
        check_sequences("sequences", sequences)
        allowed = torch.ones(sequences.alphabet_size, dtype=torch.bool)
        if self.insertable is not None:
            allowed = torch.zeros_like(allowed)
            allowed[self._codes(sequences)] = True
        return Edits((self._insertions(sequences, allowed), self._deletions(sequences, allowed)), len(sequences))

    def _codes(self, sequences: Sequences) -> list[int]:
        """The codes of the symbols that may be inserted or deleted."""
        try:
            return sequences.encode(self.insertable or ())
        except ValueError as error:
            raise ValueError(f"insertable: {error}") from None

    def _insertions(self, sequences: Sequences, allowed: Tensor) -> SpliceBlock:
        if is_compiled():
            from pyro_ksd.edits.compiled_edits import insertions

            return insertions(sequences, allowed, self.locations)
        owner, gap = permitted(sequences.lengths, self.locations, extra=1, width=sequences.width)
        before = _symbol_before(sequences, owner, gap, self.locations, extra=1)
        symbols = torch.arange(len(allowed))
        site, symbol = (allowed & (symbols != before[:, None])).nonzero().unbind(1)
        return SpliceBlock(owner[site], gap[site], 0, symbol[:, None])

    def _deletions(self, sequences: Sequences, allowed: Tensor) -> SpliceBlock:
        if is_compiled():
            from pyro_ksd.edits.compiled_edits import deletions

            return deletions(sequences, allowed, self.locations)
        owner, position = permitted(sequences.lengths, self.locations, extra=0, width=sequences.width)
        before = _symbol_before(sequences, owner, position, self.locations, extra=0)
        here = sequences.tokens[owner, position]
        kept = allowed[here] & (here != before)
        return SpliceBlock(owner[kept], position[kept], 1, owner.new_empty(int(kept.sum()), 0))

    def edit_bound(self, width: int, alphabet_size: int) -> int:
        choices = alphabet_size if self.insertable is None else len(tuple(self.insertable))
        return reach(width + 1, self.locations) * choices + reach(width, self.locations)


@dataclass(frozen=True, eq=False)
class DoubleSubstitutions(Neighborhood):
    """Replaces the symbols at two locations, both by other ones (the paper's larger neighborhood, its appendix).

    :param locations: as in :class:`Substitutions`.
    :param symbols: as in :class:`Substitutions`.

    >>> data = Sequences.of(["aba"])
    >>> ["".join(x) for x in DoubleSubstitutions().edits(data).apply(data).to_lists()]
    ['baa', 'aab', 'bbb']
    """

    locations: int | None = None
    symbols: Relation = None

    def __post_init__(self) -> None:
        check_locations(self.locations)
        check_symbols(self.symbols)

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset({"double substitution"})

    def edits(self, sequences: Sequences) -> Edits:
        check_sequences("sequences", sequences)
        owners, positions = permitted(sequences.lengths, self.locations, extra=0, width=sequences.width)
        blocks = []
        for distance in range(1, reach(sequences.width, self.locations)):
            inside = positions + distance < sequences.lengths[owners]
            owner = owners[inside]
            start = positions[inside]
            span = sequences.tokens[owner[:, None], start[:, None] + torch.arange(distance + 1)]
            site, left = replacements(self.symbols, span[:, 0], sequences.alphabet_size)
            pair, right = replacements(self.symbols, span[site, -1], sequences.alphabet_size)
            site = site[pair]
            left = left[pair]
            inserted = torch.cat([left[:, None], span[site, 1:-1], right[:, None]], 1)
            blocks.append(SpliceBlock(owner[site], start[site], distance + 1, inserted))
        return Edits(tuple(blocks), len(sequences))

    def edit_bound(self, width: int, alphabet_size: int) -> int:
        places = reach(width, self.locations)
        return places * (places - 1) // 2 * num_replacements(self.symbols, alphabet_size) ** 2


@dataclass(frozen=True, eq=False)
class CustomNeighborhood(Neighborhood):
    """A neighborhood given as a function from a sequence to its neighbors.

    The function must be symmetric, see :func:`~pyro_ksd.edits.check_symmetric`. Repeats, and the sequence itself, are
    left out.

    :param function: takes the tuple of a sequence's symbols, gives an iterable of sequences of symbols.

    >>> swaps = CustomNeighborhood(lambda x: [x[:i] + (x[i + 1], x[i]) + x[i + 2 :] for i in range(len(x) - 1)])
    >>> data = Sequences.of(["abc"])
    >>> ["".join(x) for x in swaps.edits(data).apply(data).to_lists()]
    ['bac', 'acb']
    """

    function: Callable[[tuple[Hashable, ...]], Iterable[Iterable[Hashable]]]

    def __post_init__(self) -> None:
        check_function("function", self.function, "sequence")

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset({"substitution", "insertion", "deletion", "double substitution", "custom"})

    def edits(self, sequences: Sequences) -> Edits:
        check_sequences("sequences", sequences)
        around = [self._neighbors(tuple(sequence)) for sequence in sequences.to_lists()]
        owner = [row for row, neighbors in enumerate(around) for _ in neighbors]
        if not owner:
            return Edits.identity(sequences).select(sequences.lengths[:0])
        try:
            neighbors = Sequences.of([y for ys in around for y in ys], sequences.alphabet)
        except ValueError as error:
            raise ValueError(f"function: expected neighbors over the sequences' alphabet, found {error}") from error
        return Edits.between(sequences, torch.tensor(owner), neighbors)

    def _neighbors(self, sequence: tuple[Hashable, ...]) -> list[list[Hashable]]:
        neighbors = self.function(sequence)
        if not isinstance(neighbors, Iterable):
            raise ValueError(
                f"function: expected a list of sequences around {sequence}, found {found(neighbors)}; return [] for "
                "none"
            )
        listed = list(neighbors)
        for neighbor in listed:
            check_instance("function", neighbor, Iterable, f"a list of sequences of symbols around {sequence}")
        return list(map(list, listed))

    @property
    def is_costly(self) -> bool:
        return True

    def edit_bound(self, width: int, alphabet_size: int) -> int:
        return 2 * (width + 1) * alphabet_size


@dataclass(frozen=True, eq=False)
class _Combination(Neighborhood):
    """The neighbors of several neighborhoods together."""

    parts: tuple[Neighborhood, ...]

    def __post_init__(self) -> None:
        check_instance("parts", self.parts, tuple, "a tuple of neighborhoods")
        if not self.parts:
            raise ValueError("parts: expected at least one neighborhood, found none")
        for part in self.parts:
            check_neighborhood("parts", part)

    @property
    def kinds(self) -> frozenset[str]:
        return reduce(frozenset.union, (part.kinds for part in self.parts))

    def edit_bound(self, width: int, alphabet_size: int) -> int:
        return sum(part.edit_bound(width, alphabet_size) for part in self.parts)

    @property
    def is_costly(self) -> bool:
        return any(part.is_costly for part in self.parts)


class Union(_Combination):
    """All neighbors of several neighborhoods, each once. Written ``a | b``; its ``tail`` is that of the first.

    >>> data = Sequences.of(["ab"])
    >>> ["".join(x) for x in (Substitutions() | Substitutions(locations=1)).edits(data).apply(data).to_lists()]
    ['bb', 'aa']
    """

    @property
    def replaces_freely(self) -> bool:
        replacing = [part for part in self.parts if "substitution" in part.kinds]
        return len(replacing) == 1 and replacing[0].replaces_freely

    @property
    def least_changed(self) -> int | None:
        return min((part.least_changed for part in self.parts if part.least_changed is not None), default=None)

    def edits(self, sequences: Sequences) -> Edits:
        edits = Edits.cat([part.edits(sequences) for part in self.parts])
        if any(a.kinds & b.kinds for a, b in combinations(self.parts, 2)):
            return Edits.between(sequences, edits.owner, edits.apply(sequences))
        return edits

    @property
    def tail(self) -> Neighborhood:
        return self.parts[0].tail


class ModelsUnion(_Combination):
    """All neighbors that suit any of several models, each once; its ``tail`` are the tails of all of them.

    :param parts: the neighborhood of each model.

    >>> data = Sequences.of(["ab"])
    >>> around = ModelsUnion((Substitutions(), BeforeEnd(Substitutions())))
    >>> ["".join(x) for x in around.edits(data).apply(data).to_lists()]
    ['bb', 'aa']
    """

    def edits(self, sequences: Sequences) -> Edits:
        return Union(self.parts).edits(sequences)

    @property
    def tail(self) -> Neighborhood:
        return _Tails(tuple(part.tail for part in self.parts))


class _Tails(_Combination):
    """The tails of several models, one after the other; what several of them have in common comes several times.

    So the weights of the :class:`~pyro_ksd.stein.TailBlockOperator` add up, and each tail keeps what the operator
    needs: whatever may be appended may also replace what was appended.
    """

    def edits(self, sequences: Sequences) -> Edits:
        return Edits.cat([part.edits(sequences) for part in self.parts])

    @property
    def tail(self) -> Neighborhood:
        return self


@dataclass(frozen=True, eq=False)
class BeforeEnd(Neighborhood):
    """The edits of another neighborhood in front of the last symbol, which stays.

    For sequences that all end with one symbol, as questions do with a question mark: locations then count from the
    symbol before it. The empty sequence has no neighbors.

    >>> data = Sequences.of(["ab?"], alphabet="ab?")
    >>> ["".join(x) for x in BeforeEnd(Substitutions(locations=1)).edits(data).apply(data).to_lists()]
    ['a??', 'aa?']
    """

    neighborhood: Neighborhood

    def __post_init__(self) -> None:
        check_neighborhood("neighborhood", self.neighborhood)

    @property
    def kinds(self) -> frozenset[str]:
        return self.neighborhood.kinds

    def edits(self, sequences: Sequences) -> Edits:
        check_sequences("sequences", sequences)
        lengths = (sequences.lengths - 1).clamp(min=0)
        before = torch.arange(sequences.width) < lengths[:, None]
        # A splice in front of the last symbol is the same splice, whether that symbol is there or not.
        edits = self.neighborhood.edits(sequences.derived(sequences.tokens * before, lengths).narrowed())
        return edits.select((sequences.lengths[edits.owner] > 0).nonzero().squeeze(1))

    def edit_bound(self, width: int, alphabet_size: int) -> int:
        return self.neighborhood.edit_bound(max(width - 1, 0), alphabet_size)

    @property
    def is_costly(self) -> bool:
        return self.neighborhood.is_costly

    @property
    def replaces_freely(self) -> bool:
        return self.neighborhood.replaces_freely

    @property
    def least_changed(self) -> int | None:
        inner = self.neighborhood.least_changed
        return None if inner is None else inner + 1

    @property
    def tail(self) -> Neighborhood:
        return BeforeEnd(self.neighborhood.tail)


def zs(
    locations: int | None = None,
    symbols: Relation = None,
    insertable: Iterable[Hashable] | None = None,
) -> Neighborhood:
    """Substitutions, insertions and deletions (ZS, the paper's main neighborhood).

    :param locations: how many locations from the end are edited; ``None`` for all.
    :param symbols: which symbols may replace which, see :class:`Substitutions`.
    :param insertable: which symbols may be inserted or deleted, see :class:`InsertionsDeletions`.

    >>> data = Sequences.of(["ab"])
    >>> ["".join(x) for x in zs(locations=1).edits(data).apply(data).to_lists()]
    ['aa', 'aba', 'abb', 'a']
    """
    return Substitutions(locations, symbols) | InsertionsDeletions(locations, insertable)


def check_neighborhood(name: str, value: object) -> None:
    """Checks that an argument is a neighborhood.

    >>> check_neighborhood("neighborhood", "zs")
    Traceback (most recent call last):
    ValueError: neighborhood: expected a neighborhood, such as zs() or Substitutions(), found 'zs'
    """
    check_instance(name, value, Neighborhood, "a neighborhood, such as zs() or Substitutions()")


def check_locations(locations: int | None) -> None:
    """Checks a number of locations."""
    if locations is not None and not is_count(locations):
        raise ValueError(f"locations: expected None (everywhere) or a number of at least 1, found {found(locations)}")


def _as_symbols(symbols: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Symbols that may be inserted or deleted."""
    if not isinstance(symbols, Iterable):
        raise ValueError(f"insertable: expected None or a list of symbols, found {found(symbols)}")
    listed = tuple(symbols)
    for symbol in listed:
        if not isinstance(symbol, Hashable):
            raise ValueError(f"insertable: expected hashable symbols, found {found(symbol)}")
    return listed


def reach(places: int, locations: int | None) -> int:
    """How many of the places are permitted."""
    return places if locations is None else min(places, locations)


def permitted(lengths: Tensor, locations: int | None, extra: int, width: int) -> tuple[Tensor, Tensor]:
    """Owner and index of the last ``locations`` positions (``extra=0``) or gaps (``extra=1``), long ``[P]`` each."""
    columns = torch.arange(width + extra)
    ends = lengths[:, None] + extra
    permitted = columns < ends
    if locations is not None:
        permitted &= columns >= ends - locations
    owner, place = permitted.nonzero().unbind(1)
    return owner, place


def _symbol_before(sequences: Sequences, owner: Tensor, place: Tensor, locations: int | None, extra: int) -> Tensor:
    """The symbol before each permitted place if the place before it is permitted too, else -1; long ``[P]``."""
    padded = torch.nn.functional.pad(sequences.tokens, (1, 0), value=-1)
    before = padded[owner, place]
    if locations is None:
        return before
    first = place == sequences.lengths[owner] + extra - locations
    return before.masked_fill(first, -1)
