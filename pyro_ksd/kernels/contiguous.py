# SPDX-License-Identifier: Apache-2.0
"""The contiguous subsequence kernel: how often each n-gram occurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyro_ksd.common.option_checks import check_choice, check_number
from pyro_ksd.edits.splices import Edits, SpliceBlock
from pyro_ksd.kernels.base import FeatureKernel
from pyro_ksd.kernels.feature_places import FeaturePlaces
from pyro_ksd.kernels.ngram_codes import LONGEST_CODED, ngram_symbols
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True, eq=False)
class ContiguousKernel(FeatureKernel):
    r"""Compares the n-grams of two sequences, wherever they stand (CSK).

    With :math:`c_u(x)` the number of windows of :math:`x` equal to the n-gram :math:`u`, the features of one length
    :math:`t` are

    .. math::
        \varphi_u(x) = \sqrt{c_u(x) / \textstyle\sum_v c_v(x)} \quad (\text{form "sqrt"}), \qquad
        \varphi_u(x) = c_u(x) / \sqrt{\textstyle\sum_v c_v(x)^2} \quad (\text{form "cosine"}).

    A range of lengths averages the kernels of those lengths that fit into the sequence. Hence :math:`k(x, x) = 1`, or 0
    for a sequence shorter than the shortest n-gram.

    The cosine form is the one that Baum, Kanagawa and Gretton (2023) print, the square-root form the one that their
    figures were made with.

    :param length: the length ``t`` of the n-grams.
    :param max_length: for a range of lengths ``length .. max_length``.
    :param form: ``"sqrt"`` or ``"cosine"``.

    >>> data = Sequences.of(["hallo", "hello"])
    >>> round(ContiguousKernel(1).gram(data, data)[0, 1].item(), 12)
    0.8
    >>> round(ContiguousKernel(1, form="cosine").gram(data, data)[0, 1].item(), 12)  # 6/7
    0.857142857143
    """

    length: int = 2
    max_length: int | None = None
    form: Literal["sqrt", "cosine"] = "sqrt"

    def __post_init__(self) -> None:
        check_number("length", self.length, least=1, most=LONGEST_CODED)
        if self.max_length is not None:
            check_number("max_length", self.max_length, least=self.length, most=LONGEST_CODED)
        check_choice("form", self.form, ("sqrt", "cosine"))

    @property
    def lengths(self) -> range:
        """The lengths of the n-grams."""
        return range(self.length, (self.max_length or self.length) + 1)

    def features(self, sequences: Sequences) -> FeatureMatrix:
        parts = []
        for length in self.lengths:
            grams = _NGrams(sequences, Edits((), len(sequences)), length, self.form)
            scale = self._scale(grams.energy, sequences.lengths)
            parts.append(grams.places.matrix(grams.transformed[:-1] * grams.places.spread(scale)))
        return self._side_by_side(parts, sequences.alphabet_size)

    def stein_features_each(self, sequences: Sequences, edits: Edits, weights: Tensor) -> list[FeatureMatrix]:
        parts = [self._stein_features(sequences, edits, weights, length) for length in self.lengths]
        return [self._side_by_side(own, sequences.alphabet_size) for own in zip(*parts, strict=True)]

    def _stein_features(self, sequences: Sequences, edits: Edits, weights: Tensor, length: int) -> list[FeatureMatrix]:
        r"""The Stein features of one length, from the n-grams that each edit touches.

        With :math:`\varphi_u = T(c_u)\,s`, where the scale :math:`s` depends on the sequence alone, and with the
        changes :math:`\delta_u` of the counts,

        .. math::
            \psi_u(x) = T(c_u) \sum_y w_y (s_y - s_x) + \sum_y w_y s_y \left(T(c_u + \delta_{u,y}) - T(c_u)\right),

        where the second sum has terms only for the n-grams that the edit :math:`y` touches.
        """
        grams = _NGrams(sequences, edits, length, self.form)
        scale = self._scale(grams.energy, sequences.lengths)
        common = weights.new_zeros(len(weights), len(sequences))
        psi = weights.new_zeros(len(weights), grams.places.size + 1)
        for index, (block, own) in enumerate(zip(edits.blocks, edits.split(weights), strict=True)):
            place, change, energy = grams.changes(index)
            new = self._scale(energy, sequences.lengths.index_select(0, block.owner) + block.growth)
            growth = new - scale.index_select(0, block.owner)
            change.mul_(new)
            for shared, values, weight in zip(common, psi, own, strict=True):
                shared.index_add_(0, block.owner, growth * weight)
                values.index_add_(0, place.view(-1), (change * weight).view(-1))
        return [
            grams.places.matrix(values[:-1].addcmul_(grams.transformed[:-1], grams.places.spread(shared)))
            for shared, values in zip(common, psi, strict=True)
        ]

    def steps_along(self, sequences: Sequences, edits: Edits, witness: Witness) -> Tensor:
        sizes = [sequences.alphabet_size**length for length in self.lengths]
        offsets = [sum(sizes[:index]) for index in range(len(sizes))]
        steps = [
            self._steps_along(sequences, edits, witness, length, offset)
            for length, offset in zip(self.lengths, offsets, strict=True)
        ]
        return torch.stack(steps).sum(0)

    def _steps_along(self, sequences: Sequences, edits: Edits, witness: Witness, length: int, offset: int) -> Tensor:
        """As :meth:`_stein_features`, with the witness's coefficients in place of a sum over edits."""
        grams = _NGrams(sequences, edits, length, self.form)
        row, code = grams.places.entries()
        coefficient = pad(witness.at(row, code + offset), (0, 1))
        scale = self._scale(grams.energy, sequences.lengths)
        along = grams.transformed[:-1] * coefficient[:-1]
        common = along.new_zeros(len(sequences)).index_add_(0, row, along)
        steps = []
        for index, block in enumerate(edits.blocks):
            place, change, energy = grams.changes(index)
            new = self._scale(energy, sequences.lengths.index_select(0, block.owner) + block.growth)
            moved = change.mul_(coefficient.index_select(0, place.view(-1)).view(place.shape)).sum(0).mul_(new)
            old = scale.index_select(0, block.owner)
            steps.append(moved.addcmul_(common.index_select(0, block.owner), new - old))
        return torch.cat(steps) if steps else common[:0]

    @property
    def feature_kind(self) -> Literal["ngram"]:
        return "ngram"

    def feature_symbols(self, codes: Tensor, alphabet_size: int) -> Tensor:
        symbols = codes.new_full((len(codes), self.lengths[-1]), -1)
        offset = 0
        for length in self.lengths:
            size = alphabet_size**length
            rows = ((codes >= offset) & (codes < offset + size)).nonzero().squeeze(1)
            symbols[rows, :length] = ngram_symbols(codes[rows] - offset, length, alphabet_size)
            offset += size
        return symbols

    @property
    def meaning(self) -> str:
        if len(self.lengths) > 1:
            return f"runs of {self.length} to {self.max_length} symbols"
        return {1: "single symbols", 2: "pairs of neighbors"}.get(self.length, f"runs of {self.length} symbols")

    def _scale(self, energy: Tensor, lengths: Tensor) -> Tensor:
        """What turns ``T(c_u)`` into the feature of a sequence with the given energy ``Σ T(c_u)²`` and length."""
        if len(self.lengths) > 1:
            fitting = (lengths - (self.length - 1)).clamp(1, len(self.lengths))
            energy = energy * fitting
        return energy.rsqrt().masked_fill_(energy == 0, 0.0)

    def _side_by_side(self, parts: Sequence[FeatureMatrix], alphabet_size: int) -> FeatureMatrix:
        return FeatureMatrix.side_by_side(parts, [alphabet_size**length for length in self.lengths])


class _NGrams:
    """The n-grams of sequences, their counts, and how each edit changes them.

    :ivar places: the numbering of the n-grams in use.
    :ivar transformed: double ``[size + 1]``, ``T(c_u)`` of each place; the last place is a bin for windows that do not
        exist.
    :ivar energy: double ``[N]``, ``Σ_u T(c_u)²``.
    """

    def __init__(self, sequences: Sequences, edits: Edits, length: int, form: str) -> None:
        size = sequences.alphabet_size
        self._length = length
        self._blocks = edits.blocks
        self._sequence_lengths = sequences.lengths
        padded = pad(sequences.tokens, (length - 1, length - 1))
        self._touched = [block.codes(padded, length - 1, length, size) for block in edits.blocks]
        row, code = _windows(sequences, length)
        created = [(block.owner, after) for block, (_, after) in zip(edits.blocks, self._touched, strict=True)]
        self.places = FeaturePlaces.number([(row, code), *created], len(sequences), size**length)
        place = self.places.of(row, code)
        ones = torch.ones(len(row), dtype=torch.int32)
        self._counts = ones.new_zeros(self.places.size + 1).index_add_(0, place, ones)
        self._power = 0.5 if form == "sqrt" else 1.0
        self._values = torch.arange(int(self._counts.max()) + 1, dtype=torch.double)
        self.transformed = (self._values**self._power).index_select(0, self._counts)
        energy = (self._values ** (2 * self._power - 1)).index_select(0, self._counts.index_select(0, place))
        self.energy = energy.new_zeros(len(sequences)).index_add_(0, row, energy)

    def changes(self, index: int) -> tuple[Tensor, Tensor, Tensor]:
        """What the edits of one block change.

        :returns: the places of the at most ``K`` n-grams that each edit touches, long ``[K, E]``; the change of
            ``T(c_u)``, double ``[K, E]``, which is 0 for all but the first of equal n-grams; and the energies of the
            edited sequences, double ``[E]``.
        """
        block = self._blocks[index]
        (before, after) = self._touched[index]
        place = torch.cat([self._existing(block, before, 0), self._existing(block, after, block.growth)])
        delta = _net_changes(place, len(before), self.places.size)
        # Counts are small integers: all their changes stand in one small table.
        reach = len(place)
        counts = self._values[:, None]
        changed = (counts + torch.arange(-reach, reach + 1)).clamp(min=0)
        change = changed**self._power - counts**self._power
        gain = changed ** (2 * self._power) - counts ** (2 * self._power)
        entry = self._counts.index_select(0, place.view(-1)).mul_(2 * reach + 1).add_(reach)
        entry.add_(delta.view(-1).to(entry.dtype))
        energy = self.energy.index_select(0, block.owner)
        energy += gain.view(-1).index_select(0, entry).view(place.shape).sum(0)
        return place, change.view(-1).index_select(0, entry).view(place.shape), energy

    def _existing(self, block: SpliceBlock, codes: Tensor, growth: int) -> Tensor:
        """The places of windows ``[K, E]`` by their codes; windows that reach over an end get the bin."""
        from_start = (self._length - 1) - block.start
        to_end = self._sequence_lengths.index_select(0, block.owner) + growth - block.start
        window = torch.arange(len(codes))[:, None]
        missing = (from_start > window).logical_or_(to_end <= window)
        return self.places.of(block.owner, codes).masked_fill_(missing, self.places.size)


def _windows(sequences: Sequences, length: int) -> tuple[Tensor, Tensor]:
    """Row and code of every window of the sequences, long ``[M]`` each."""
    width = sequences.width - length + 1
    if width <= 0:
        none = sequences.lengths.new_empty(0)
        return none, none
    codes = sequences.tokens[:, :width].clone()
    for offset in range(1, length):
        codes.mul_(sequences.alphabet_size).add_(sequences.tokens[:, offset : offset + width])
    exists = sequences.mask[:, length - 1 :]
    return exists.nonzero()[:, 0], codes[exists]


def _net_changes(place: Tensor, destroyed: int, bin_place: int) -> Tensor:
    """By how much the count of each touched n-gram changes; ``[K, E]``.

    :param place: long ``[K, E]``; the first ``destroyed`` rows are windows that go, the others windows that come.
    :returns: the net change at the first of equal n-grams, 0 at the others and in the bin.
    """
    signs = [-1] * destroyed + [1] * (len(place) - destroyed)
    kind = torch.int8 if len(place) < 128 else torch.int32
    delta = torch.tensor(signs, dtype=kind)[:, None].repeat(1, place.shape[1])
    repeated = torch.zeros(place.shape, dtype=torch.bool)
    for i in range(len(place)):
        for j in range(i):
            equal = place[i] == place[j]
            delta[j].add_(equal.view(torch.int8).to(kind), alpha=signs[i])
            repeated[i].logical_or_(equal)
    return delta.masked_fill_(repeated.logical_or_(place == bin_place), 0)
