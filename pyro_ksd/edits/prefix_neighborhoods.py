# SPDX-License-Identifier: Apache-2.0
r"""Neighborhoods that depend on the whole beginning of a sequence, for models of large alphabets.

A language model knows tens of thousands of symbols, but after a given prefix it holds only a few of them for likely.
Here a symbol comes, goes or is replaced only if it is among the *candidates* :math:`C(x_1 \ldots x_{t-1})` of the
prefix before it. An edit leaves the prefix before it as it is, so the way back has the same candidates, and the
neighborhoods are symmetric. They are the point-dependent neighborhoods of Baum, Kanagawa and Gretton (2023), appendix,
for any number of locations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_function, check_number
from pyro_ksd.common.random_numbers import Seed
from pyro_ksd.common.tensor_checks import shown
from pyro_ksd.edits.neighborhoods import (
    Neighborhood,
    Substitutions,
    check_locations,
    permitted,
    reach,
)
from pyro_ksd.edits.splices import Edits, SpliceBlock
from pyro_ksd.edits.symbol_relations import RandomReplacements
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences

Candidates = Callable[[Sequences, int], Tensor]
"""Takes ``N`` sequences, ``T`` wide, and a number ``top``; returns distinct codes, long ``[N, T + 1, K]`` with ``K``
up to ``top``: in row ``t``, the candidates after the first ``t`` symbols. Rows with fewer codes are padded with -1.
:meth:`pyro_ksd.models.AutoregressiveModel.candidates` is one."""


@dataclass(frozen=True, eq=False)
class _PrefixNeighborhood(Neighborhood):
    """What the neighborhoods share.

    :param candidates: see :data:`~pyro_ksd.edits.prefix_neighborhoods.Candidates`.
    :param top: how many candidates a prefix has at the most.
    :param locations: how many locations from the end are edited (``J``); ``None`` for all.
    """

    candidates: Candidates
    top: int
    locations: int | None = None

    def __post_init__(self) -> None:
        check_locations(self.locations)
        check_function("candidates", self.candidates, "sequences", "top")
        check_number("top", self.top, least=1)

    @property
    def is_costly(self) -> bool:
        return True  # a network is asked for the candidates

    @property
    def tail(self) -> Neighborhood:
        return prefix_zs(self.candidates, self.top, locations=1)

    def _choices(self, sequences: Sequences) -> Tensor:
        """The candidates after each prefix, long ``[N, T + 1, K]``."""
        check_sequences("sequences", sequences)
        codes = self.candidates(sequences, self.top)
        rows = (len(sequences), sequences.width + 1)
        is_long = isinstance(codes, Tensor) and codes.dtype == torch.long
        if not is_long or codes.ndim != 3 or codes.shape[:2] != rows or codes.shape[2] > self.top:
            raise ValueError(
                f"candidates: expected a long tensor [{rows[0]}, {rows[1]}, up to {self.top}] for {rows[0]} sequences "
                f"{sequences.width} wide, found {shown(codes)}; return one row for each prefix, "
                "also for the empty and for the whole one"
            )
        return codes

    def _positions(self, sequences: Sequences, choices: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The permitted positions whose symbol is a candidate.

        :returns: owner and position, long ``[P]`` each, the symbols there, long ``[P, 1]``, and the candidates there,
            long ``[P, K]``.
        """
        owner, position = permitted(sequences.lengths, self.locations, extra=0, width=sequences.width)
        here = sequences.tokens[owner, position, None]
        codes = choices[owner, position]
        known = (codes == here).any(1)
        return owner[known], position[known], here[known], codes[known]


class PrefixSubstitutions(_PrefixNeighborhood):
    """Replaces one symbol by another, both candidates of the prefix before them (ZS′).

    :param candidates: see :data:`~pyro_ksd.edits.prefix_neighborhoods.Candidates`.
    :param top: how many candidates a prefix has at the most.
    :param locations: how many locations from the end may change (``J``); ``None`` for all.

    >>> def up_to_one_more(x, top):  # after 0 may come 0 or 1, after 1 come 0, 1 or 2, and so on
    ...     before = torch.nn.functional.pad(x.tokens, (1, 0))[..., None]
    ...     codes = torch.arange(top)
    ...     return torch.where(codes <= before + 1, codes, -1)
    >>> data = Sequences.of([[1, 0]], alphabet=4)
    >>> PrefixSubstitutions(up_to_one_more, 4, locations=1).edits(data).apply(data).to_lists()
    [[1, 1], [1, 2]]
    """

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset({"substitution"})

    def edits(self, sequences: Sequences) -> Edits:
        owner, position, here, codes = self._positions(sequences, self._choices(sequences))
        site, choice = ((codes >= 0) & (codes != here)).nonzero().unbind(1)
        return Edits((SpliceBlock(owner[site], position[site], 1, codes[site, choice, None]),), len(sequences))

    @property
    def replaces_freely(self) -> bool:
        return True  # among the candidates of the prefix, which is the same for all of them

    def edit_bound(self, width: int, alphabet_size: int) -> int:
        return reach(width, self.locations) * (self.top - 1)


class PrefixInsertionsDeletions(_PrefixNeighborhood):
    """Inserts a candidate of the prefix before it, or deletes one (ZS″).

    :param candidates: see :data:`~pyro_ksd.edits.prefix_neighborhoods.Candidates`.
    :param top: how many candidates a prefix has at the most.
    :param locations: an inserted symbol becomes, and a deleted symbol was, among the last ``locations`` symbols;
        ``None`` for anywhere.

    >>> def up_to_one_more(x, top):
    ...     before = torch.nn.functional.pad(x.tokens, (1, 0))[..., None]
    ...     codes = torch.arange(top)
    ...     return torch.where(codes <= before + 1, codes, -1)
    >>> data = Sequences.of([[1, 0]], alphabet=4)
    >>> PrefixInsertionsDeletions(up_to_one_more, 4, locations=1).edits(data).apply(data).to_lists()
    [[1, 0, 0], [1, 0, 1], [1]]
    """

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset({"insertion", "deletion"})

    def edits(self, sequences: Sequences) -> Edits:
        choices = self._choices(sequences)
        gaps, gap = permitted(sequences.lengths, self.locations, extra=1, width=sequences.width)
        site, choice = (choices[gaps, gap] >= 0).nonzero().unbind(1)
        insertions = SpliceBlock(gaps[site], gap[site], 0, choices[gaps[site], gap[site], choice, None])
        owner, position, here, _ = self._positions(sequences, choices)
        deletions = SpliceBlock(owner, position, 1, here[:, :0])
        edits = Edits((insertions, deletions), len(sequences))
        if self.locations == 1:
            return edits
        # In a run of equal symbols several places give one sequence; which are permitted is up to the prefixes.
        return Edits.between(sequences, edits.owner, edits.apply(sequences))

    def edit_bound(self, width: int, alphabet_size: int) -> int:
        return reach(width + 1, self.locations) * self.top + reach(width, self.locations)


def sparse_zs(codes: Tensor, replacements: int, seed: Seed = 0) -> Neighborhood:
    """A few substitutions, insertions and deletions, for large alphabets.

    :param codes: long ``[K]``, the codes of the symbols that may be inserted or deleted. To choose them by the data
        that are checked would make a true model look wrong.
    :param replacements: about how many symbols may replace each symbol, see
        :class:`~pyro_ksd.edits.RandomReplacements`.
    :param seed: of the choice of replacements.

    >>> data = Sequences.of([[5, 90]], alphabet=100)
    >>> sparse_zs(torch.tensor([3, 5]), replacements=2).edits(data).apply(data).to_lists()[:4]
    [[3, 5, 90], [5, 3, 90], [5, 5, 90], [5, 90, 3]]
    """
    if not isinstance(codes, Tensor) or codes.dtype != torch.long or codes.ndim != 1 or not len(codes):
        raise ValueError(f"codes: expected a long tensor [K] of distinct codes, found {shown(codes)}")

    def always(sequences: Sequences, top: int) -> Tensor:
        return codes.expand(len(sequences), sequences.width + 1, -1)

    coming_and_going = PrefixInsertionsDeletions(always, len(codes))
    return coming_and_going | Substitutions(symbols=RandomReplacements(replacements, seed))


def prefix_zs(candidates: Candidates, top: int, locations: int | None = None) -> Neighborhood:
    """Substitutions, insertions and deletions of the candidates of prefixes (ZS).

    :param candidates: see :data:`~pyro_ksd.edits.prefix_neighborhoods.Candidates`.
    :param top: how many candidates a prefix has at the most.
    :param locations: how many locations from the end are edited (``J``); ``None`` for all.

    The paper's edits for a language model, at the last location before the end:

    >>> from pyro_ksd.models import AutoregressiveModel, TopK
    >>> from pyro_ksd.edits import BeforeEnd
    >>> likely = torch.tensor([[1, 0, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 0, 1]])
    >>> network = torch.nn.Embedding.from_pretrained(likely.double())  # a chain
    >>> model = AutoregressiveModel(network, prompt=[2], end=3, max_length=4, rules=[TopK(2)])
    >>> data = Sequences.of([[1, 0, 3]], alphabet=4)
    >>> BeforeEnd(prefix_zs(model.candidates, 2, locations=1)).edits(data).apply(data).to_lists()
    [[1, 2, 3], [1, 0, 0, 3], [1, 3]]
    """
    return PrefixSubstitutions(candidates, top, locations) | PrefixInsertionsDeletions(candidates, top, locations)
