# SPDX-License-Identifier: Apache-2.0
"""Replicated data sets in numbers: how long their sequences are, and which symbols they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import DRAWN_SEQUENCES, in_chunks
from pyro_ksd.common.option_checks import check_flag, check_number
from pyro_ksd.common.random_numbers import check_generator, seeded_generator
from pyro_ksd.fit_tests.null_draws import check_different
from pyro_ksd.models.base import SequenceModel, check_alphabet_size, draw_data_sets
from pyro_ksd.models.duck_typing import required_model
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences

if TYPE_CHECKING:
    from pyro_ksd.models.posterior.posterior_models import PosteriorModels

_COUNTED = 30  # symbols at most
_MOST_ENTRIES = 20_000_000  # of all symbol counts, which then take 40 MB; and of the codes of all sequences
_LARGE = 10_000  # numbers up to here are kept in two bytes, with room for sums of a few


def check_replicates_differ(models: PosteriorModels, sequences: Sequences) -> None:
    """Checks that a posterior draw makes another data set with other random numbers.

    :param sequences: the data, as many as are drawn.
    :raises ValueError: if it makes the same one: the program sets a seed itself.
    """
    one = models.of_draws(slice(0, 1))
    check_different(*(one.draw_like(sequences, seeded_generator(seed)) for seed in range(2)))


@dataclass(frozen=True, eq=False)
class Replicates:
    """``D`` data sets of ``N`` sequences in numbers, which are kept in as few bytes as they need.

    :ivar length: ``[D, N]``, the numbers of symbols.
    :ivar distinct: ``[D, N]``, the numbers of distinct symbols.
    :ivar symbols: long ``[C]``, the codes of the symbols that are counted.
    :ivar counts: ``[D, N, C]``, how often a sequence has each of them; ``None`` if there would be too many of these
        numbers.
    :ivar tokens: ``[D, N, T]``, the codes of the symbols, -1 after the ends; ``None`` unless they were asked for.
    """

    length: Tensor
    distinct: Tensor
    symbols: Tensor
    counts: Tensor | None = None
    tokens: Tensor | None = None

    @staticmethod
    def of(sequences: Sequences, num_sets: int, counted: Tensor, *, tokens: bool = False) -> Replicates:
        """The numbers of data sets of one size that follow each other.

        :param counted: long ``[C]``, the codes of the symbols to count, see :func:`counted_symbols`.
        :param tokens: whether to keep the symbols.

        >>> both = Sequences.of(["ab", "bbb", "a", ""])
        >>> found = Replicates.of(both, 2, torch.tensor([1]))
        >>> found.length.tolist(), found.distinct.tolist(), found.counts.tolist()
        ([[2, 3], [1, 0]], [[2, 1], [1, 0]], [[[1], [3]], [[0], [0]]])
        """
        check_sequences("sequences", sequences)
        check_number("num_sets", num_sets, least=1)
        check_flag("tokens", tokens)
        shape = num_sets, len(sequences) // num_sets
        codes = sequences.narrowed().padded(-1)
        counts = None
        if len(sequences) * len(counted) <= _MOST_ENTRIES:
            counts = _counts(codes, counted, sequences.alphabet_size)
        knows_all = counts is not None and len(counted) == sequences.alphabet_size
        distinct = (counts > 0).sum(1) if counts is not None and knows_all else _distinct(codes)
        return Replicates(
            _narrowed(sequences.lengths.view(shape)),
            _narrowed(distinct.view(shape)),
            counted,
            None if counts is None else _narrowed(counts.view(*shape, len(counted))),
            _narrowed(codes.view(*shape, -1)) if tokens else None,
        )

    @staticmethod
    def cat(parts: Sequence[Replicates]) -> Replicates:
        """All data sets of the parts."""
        counts = [part.counts for part in parts if part.counts is not None]
        entries = sum(map(torch.numel, counts))
        tokens = [part.tokens for part in parts if part.tokens is not None]
        width = max((part.shape[-1] for part in tokens), default=0)
        wide = [torch.nn.functional.pad(part, (0, width - part.shape[-1]), value=-1) for part in tokens]
        return Replicates(
            torch.cat([part.length for part in parts]),
            torch.cat([part.distinct for part in parts]),
            parts[0].symbols,
            torch.cat(counts) if len(counts) == len(parts) and entries <= _MOST_ENTRIES else None,
            torch.cat(wide) if wide else None,
        )

    @property
    def parts(self) -> dict[str, Tensor]:
        """The tensors by name, to be kept in a file."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: tensor for name, tensor in named.items() if tensor is not None}


def counted_symbols(sequences: Sequences) -> Tensor:
    """The codes of the 30 most frequent symbols, or of all if there are no more, in ascending order.

    >>> counted_symbols(Sequences.of(["ab", "bbb"]))
    tensor([0, 1])
    """
    check_sequences("sequences", sequences)
    frequency = sequences.tokens[sequences.mask].bincount(minlength=sequences.alphabet_size)
    return frequency.argsort(descending=True, stable=True)[:_COUNTED].sort().values


def draw_replicates(
    model: SequenceModel,
    sequences: Sequences,
    num_sets: int,
    generator: torch.Generator,
    *,
    tokens: bool = False,
) -> Replicates:
    """The numbers of data sets that a model draws, each of the size and with the covariates of the data.

    :param num_sets: the number ``D`` of data sets.
    :param tokens: whether to keep the symbols.

    >>> from pyro_ksd.examples import random_walk
    >>> data = Sequences.of(["ab", "bcb", "c"])
    >>> draw_replicates(random_walk(3), data, 5, torch.Generator().manual_seed(0)).counts.shape
    torch.Size([5, 3, 3])
    """
    model = required_model(model)
    check_alphabet_size(model, sequences)
    check_number("num_sets", num_sets, least=1)
    check_generator(generator)
    counted = counted_symbols(sequences)
    size = len(sequences)
    parts = []
    for some in in_chunks(torch.arange(num_sets), max(1, DRAWN_SEQUENCES // max(1, size))):
        drawn = draw_data_sets(model, len(some), size, sequences.covariates, generator)
        parts.append(Replicates.of(drawn, len(some), counted, tokens=tokens))
    return Replicates.cat(parts)


def _counts(codes: Tensor, counted: Tensor, alphabet_size: int) -> Tensor:
    """How often each of the symbols occurs in each sequence, long ``[N, C]``."""
    places = torch.full((alphabet_size + 1,), len(counted))
    places[counted] = torch.arange(len(counted))
    found = torch.zeros(len(codes), len(counted) + 1, dtype=torch.long)
    found.scatter_add_(1, places[codes], torch.ones_like(codes))  # the padding, -1, has the last place
    return found[:, :-1]


def _distinct(codes: Tensor) -> Tensor:
    """The number of distinct symbols in each sequence, long ``[N]``."""
    ordered = torch.nn.functional.pad(codes.sort(1).values, (1, 0), value=-1)
    return (ordered[:, 1:] != ordered[:, :-1]).sum(1)


def _narrowed(numbers: Tensor) -> Tensor:
    """The numbers in fewer bytes. ArviZ wants signed integers, and one byte would be too little for its sums."""
    largest = int(numbers.max()) if numbers.numel() else 0
    return numbers.to(torch.int16 if largest <= _LARGE else torch.int32)
