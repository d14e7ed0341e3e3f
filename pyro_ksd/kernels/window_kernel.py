# SPDX-License-Identifier: Apache-2.0
"""What the kernels share that count windows of symbols: n-grams, and pairs at a distance."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyro_ksd.common.compilation import is_compiled
from pyro_ksd.edits.splices import Edits, SpliceBlock
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.kernels.base import FeatureKernel
from pyro_ksd.kernels.feature_places import FeaturePlaces
from pyro_ksd.kernels.ngram_codes import check_codes, ngram_symbols
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.container import Sequences

if TYPE_CHECKING:
    from pyro_ksd.kernels.compiled_windows import CompiledWindows


@dataclass(frozen=True)
class Shape:
    """A window of consecutive symbols, of which all count or only the first and the last.

    :param width: the number of symbols from the first to the last.
    :param between: whether the symbols between the first and the last count, too.
    """

    width: int
    between: bool = True

    @property
    def num_symbols(self) -> int:
        """How many symbols count."""
        return self.width if self.between else 2


class WindowKernel(FeatureKernel):
    r"""Compares how often windows of some shapes occur, wherever they stand.

    With :math:`c_u(x)` the number of windows of :math:`x` equal to :math:`u`, the features of one shape are
    :math:`\varphi_u = T(c_u)\,s`, where the scale :math:`s` depends on the sequence alone. By default it makes
    :math:`\sum_u \varphi_u^2 = 1`, and several shapes average the kernels of those that fit into the sequence.
    """

    @property
    @abstractmethod
    def shapes(self) -> Sequence[Shape]:
        """The shapes of the windows, in ascending order of their widths."""

    @property
    @abstractmethod
    def power(self) -> float:
        """The power of the counts, :math:`T(c) = c^\text{power}`."""

    def features(self, sequences: Sequences) -> FeatureMatrix:
        parts = []
        for shape in self.shapes:
            grams = _Windows(sequences, Edits((), len(sequences)), shape, self.power)
            scale = self._scale(grams.energy, sequences.lengths)
            parts.append(grams.places.matrix(grams.transformed[:-1] * grams.places.spread(scale)))
        return self._side_by_side(parts, sequences.alphabet_size)

    def stein_features_each(self, chunk: WeightedEdits) -> list[FeatureMatrix]:
        parts = [self._stein_features(chunk, shape) for shape in self.shapes]
        return [self._side_by_side(own, chunk.sequences.alphabet_size) for own in zip(*parts, strict=True)]

    def _stein_features(self, chunk: WeightedEdits, shape: Shape) -> list[FeatureMatrix]:
        r"""The Stein features of one shape, from the windows that each edit touches.

        With :math:`\varphi_u = T(c_u)\,s`, where the scale :math:`s` depends on the sequence alone, and with the
        changes :math:`\delta_u` of the counts,

        .. math::
            \psi_u(x) = T(c_u) \sum_y w_y (s_y - s_x) + \sum_y w_y s_y \left(T(c_u + \delta_{u,y}) - T(c_u)\right),

        where the second sum has terms only for the windows that the edit :math:`y` touches.
        """
        sequences = chunk.sequences
        edits = chunk.edits
        fast = self._compiled_windows(sequences, edits, shape)
        if fast is not None:
            return fast.stein_features(chunk)
        weights = torch.atleast_2d(chunk.weights)
        grams = _Windows(sequences, edits, shape, self.power)
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

    def steps_along(self, chunk: WeightedEdits, witness: Witness) -> Tensor:
        sizes = self._sizes(chunk.sequences.alphabet_size)
        offsets = [sum(sizes[:index]) for index in range(len(sizes))]
        steps = [
            self._steps_along(chunk.sequences, chunk.edits, witness, shape, offset)
            for shape, offset in zip(self.shapes, offsets, strict=True)
        ]
        return torch.stack(steps).sum(0)

    def _steps_along(self, sequences: Sequences, edits: Edits, witness: Witness, shape: Shape, offset: int) -> Tensor:
        """As :meth:`_stein_features`, with the witness's coefficients in place of a sum over edits."""
        fast = self._compiled_windows(sequences, edits, shape)
        if fast is not None:
            return fast.steps_along(witness, offset)
        grams = _Windows(sequences, edits, shape, self.power)
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

    def feature_symbols(self, codes: Tensor, alphabet_size: int) -> Tensor:
        symbols = codes.new_full((len(codes), max(shape.num_symbols for shape in self.shapes)), -1)
        offset = 0
        for shape, size in zip(self.shapes, self._sizes(alphabet_size), strict=True):
            rows = ((codes >= offset) & (codes < offset + size)).nonzero().squeeze(1)
            count = shape.num_symbols
            symbols[rows, :count] = ngram_symbols(codes[rows] - offset, count, alphabet_size)
            offset += size
        return symbols

    def _scale(self, energy: Tensor, lengths: Tensor) -> Tensor:
        """What turns ``T(c_u)`` into the feature of a sequence with the given energy ``Σ T(c_u)²`` and length."""
        size = self._divisors(lengths)
        if self._by_energy:
            size = size * energy
        return size.rsqrt().masked_fill_(size == 0, 0.0)

    _by_energy = True  # whether the scale depends on the energy

    def _divisors(self, lengths: Tensor) -> Tensor:
        """What else the square of the scale is divided by, double ``[N]``: here, how many shapes fit."""
        fitting = torch.stack([lengths >= shape.width for shape in self.shapes]).sum(0)
        return fitting.clamp(min=1).double()

    def _compiled_windows(self, sequences: Sequences, edits: Edits, shape: Shape) -> CompiledWindows | None:
        """The windows of one shape for compiled loops; ``None`` where torch counts them."""
        if not is_compiled() or edits.flat is None:
            return None
        from pyro_ksd.kernels.compiled_windows import CompiledWindows

        check_codes(sequences.alphabet_size, shape.num_symbols)
        divisors = self._divisors(torch.arange(sequences.width + edits.flat.most_inserted + 1))
        return CompiledWindows.of(
            sequences, edits.flat, shape.width, shape.between, self.power, divisors, self._by_energy
        )

    def _sizes(self, alphabet_size: int) -> list[int]:
        """How many features each shape has."""
        return [alphabet_size**shape.num_symbols for shape in self.shapes]

    def _side_by_side(self, parts: Sequence[FeatureMatrix], alphabet_size: int) -> FeatureMatrix:
        return FeatureMatrix.side_by_side(parts, self._sizes(alphabet_size))


class _Windows:
    """The windows of one shape of sequences, their counts, and how each edit changes them.

    :ivar places: the numbering of the windows in use.
    :ivar transformed: double ``[size + 1]``, ``T(c_u)`` of each place; the last place is a bin for windows that do not
        exist.
    :ivar energy: double ``[N]``, ``Σ_u T(c_u)²``.
    """

    def __init__(self, sequences: Sequences, edits: Edits, shape: Shape, power: float) -> None:
        size = sequences.alphabet_size
        check_codes(size, shape.num_symbols)
        margin = shape.width - 1
        self._shape = shape
        self._blocks = edits.blocks
        self._sequence_lengths = sequences.lengths
        padded = pad(sequences.tokens, (margin, margin))
        self._touched = [
            block.codes(padded, margin, shape.width, size, between=shape.between) for block in edits.blocks
        ]
        row, code = _windows(sequences, shape)
        created = [(block.owner, after) for block, (_, after) in zip(edits.blocks, self._touched, strict=True)]
        self.places = FeaturePlaces.number([(row, code), *created], len(sequences), size**shape.num_symbols)
        place = self.places.of(row, code)
        ones = torch.ones(len(row), dtype=torch.int32)
        self._counts = ones.new_zeros(self.places.size + 1).index_add_(0, place, ones)
        self._power = power
        self._values = torch.arange(int(self._counts.max()) + 1, dtype=torch.double)
        self.transformed = (self._values**self._power).index_select(0, self._counts)
        energy = (self._values ** (2 * self._power - 1)).index_select(0, self._counts.index_select(0, place))
        self.energy = energy.new_zeros(len(sequences)).index_add_(0, row, energy)

    def changes(self, index: int) -> tuple[Tensor, Tensor, Tensor]:
        """What the edits of one block change.

        :returns: the places of the at most ``K`` windows that each edit touches, long ``[K, E]``; the change of
            ``T(c_u)``, double ``[K, E]``, which is 0 for all but the first of equal windows; and the energies of the
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
        from_start = (self._shape.width - 1) - block.start
        to_end = self._sequence_lengths.index_select(0, block.owner) + growth - block.start
        window = torch.arange(len(codes))[:, None]
        missing = (from_start > window).logical_or_(to_end <= window)
        return self.places.of(block.owner, codes).masked_fill_(missing, self.places.size)


def _windows(sequences: Sequences, shape: Shape) -> tuple[Tensor, Tensor]:
    """Row and code of every window of the sequences, long ``[M]`` each."""
    count = sequences.width - shape.width + 1
    if count <= 0:
        none = sequences.lengths.new_empty(0)
        return none, none
    codes = sequences.tokens[:, :count].clone()
    offsets = range(1, shape.width) if shape.between else [shape.width - 1]
    for offset in offsets:
        codes.mul_(sequences.alphabet_size).add_(sequences.tokens[:, offset : offset + count])
    exists = sequences.mask[:, shape.width - 1 :]
    return exists.nonzero()[:, 0], codes[exists]


def _net_changes(place: Tensor, destroyed: int, bin_place: int) -> Tensor:
    """By how much the count of each touched window changes; ``[K, E]``.

    :param place: long ``[K, E]``; the first ``destroyed`` rows are windows that go, the others windows that come.
    :returns: the net change at the first of equal windows, 0 at the others and in the bin.
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
