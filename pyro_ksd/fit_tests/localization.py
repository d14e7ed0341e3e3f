# SPDX-License-Identifier: Apache-2.0
r"""Where the misfit sits: the share of the statistic of each sequence, position, edit and feature.

With the leave-one-out witness :math:`f_{-i} = \frac{1}{n-1} \sum_{j \ne i} \psi_j`,

.. math:: U = \frac{1}{n} \sum_i \sum_{y \in \partial x_i} w(x_i, y)\,\bigl(f_{-i}(y) - f_{-i}(x_i)\bigr),

so every edit has a share of :math:`U`. Shares of edits add up to shares of positions, these to shares of sequences, and
these to :math:`U`. A large share of an edit says that the model would rather have the edited sequence, and that many
other sequences want to be edited in the same direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import PAIR_BYTES
from pyro_ksd.common.option_checks import check_flag, check_instance, check_number
from pyro_ksd.common.progress import progress_bar
from pyro_ksd.common.torch_threads import one_torch_thread
from pyro_ksd.edits.weighted_edits import WeightedEdits
from pyro_ksd.fit_tests.absolute import GoodnessOfFit
from pyro_ksd.fit_tests.feature_scores import scores
from pyro_ksd.fit_tests.largest_shares import (
    MOST_EDITS,
    MOST_SHOWN,
    LargestShares,
    TopEdits,
    TopSequences,
    stacked,
)
from pyro_ksd.fit_tests.removal import Pushes
from pyro_ksd.fit_tests.statistics import p_values_of_largest
from pyro_ksd.kernels.stein_matrices import FeatureMatrix, SteinMatrix
from pyro_ksd.kernels.witness import Witness
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.summation import SteinState
from pyro_ksd.stein.sums import SteinSums
from pyro_ksd.stein.views import View
from pyro_ksd.stein.visits import Chunk, Visits

MOST_FEATURES = 1000
"""How many features of a view are reported, those with the largest share."""


@dataclass(frozen=True, eq=False)
class TopFeatures:
    """The features of a view with the largest share, in descending order of it; ``K`` of them.

    :ivar code: long ``[K]``, the codes of the features.
    :ivar symbols: long ``[K, W]``, the codes of the symbols of n-grams, see
        :meth:`pyro_ksd.kernels.Kernel.feature_symbols`.
    :ivar mean: double ``[K]``, the mean Stein feature: positive if it is too frequent under the model, else too rare.
    :ivar share: double ``[K]``, of the statistic; the shares of all features add up to it.
    :ivar z: double ``[K]``, see :mod:`pyro_ksd.fit_tests.feature_scores`.
    :ivar p_value: double ``[K]``, against the largest ``|z|`` of all features in the null draws.
    """

    code: Tensor
    symbols: Tensor
    mean: Tensor
    share: Tensor
    z: Tensor
    p_value: Tensor


@dataclass(frozen=True, eq=False)
class Localization:
    """Where the misfit of one view sits.

    :ivar contribution: double ``[N]``, the share of each sequence; ``None`` for partitioned data, of which only those
        with the largest shares are known.
    :ivar shown: the sequences with the largest shares, position by position.
    :ivar edits: the edits with the largest shares.
    :ivar features: the features with the largest shares, if the view reports its features one by one.
    :ivar pushes: how strongly sequences push the features that stand out, if the view reports its features.
    """

    contribution: Tensor | None
    shown: TopSequences
    edits: TopEdits
    features: TopFeatures | None
    pushes: Pushes | None


def localize(
    result: GoodnessOfFit, *, attribution: bool = False, max_bytes: int = PAIR_BYTES, progress: bool = False
) -> list[Localization]:
    """Where the misfit sits, for each view of a test.

    :param attribution: whether to find the share of every position of every sequence, in place of those of the 1,000
        sequences with the largest shares.
    :param max_bytes: see :func:`~pyro_ksd.stein.stein_matrices`.

    >>> from pyro_ksd import Sequences, default_views
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.fit_tests import goodness_of_fit
    >>> data = Sequences.of(["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"])
    >>> found = goodness_of_fit(random_walk(3), data, default_views(), num_bootstrap=99)
    >>> places = localize(found)
    >>> torch.stack([place.contribution.sum() for place in places]).allclose(found.statistic)
    True
    >>> places[1].features.symbols[0]  # this walk never stands still, so bb is too rare under it
    tensor([1, 1])
    """
    check_instance("result", result, GoodnessOfFit, "what goodness_of_fit gave")
    check_flag("attribution", attribution)
    check_number("max_bytes", max_bytes, least=1)
    check_flag("progress", progress)
    visits = result.visits_of_all("localize")
    most = len(visits.sequences) if attribution else MOST_SHOWN
    return localize_views(visits, result.states, result.null.extreme, most, max_bytes, progress=progress)


def localize_views(
    visits: Visits,
    states: Sequence[SteinState],
    extreme: Tensor,
    most_shown: int,
    max_bytes: int = PAIR_BYTES,
    *,
    progress: bool = False,
) -> list[Localization]:
    """Where the misfit of each view sits. Each chunk of edits is visited once, for all views of its neighborhood.

    :param visits: of the data, under one model.
    :param states: what is known of each view.
    :param extreme: ``[B, V]``, null draws of the largest ``|z|`` of each view's features.
    :param most_shown: of how many sequences the positions are reported.
    """
    views = _visited(visits, states, extreme, most_shown, len(visits.sequences), progress=progress)
    return [places.found(max_bytes) for places in views]


@dataclass(frozen=True, eq=False)
class LocalizationSum:
    """Where the misfit of one view sits, summed over several models.

    :ivar count: the number of models.
    :ivar contribution: double ``[N]``, the share of each sequence.
    :ivar shown: the sequences with the largest shares, position by position.
    :ivar edits: the edits with the largest shares.
    :ivar features: of each model under which the view reports its features, those with the largest shares.
    """

    count: int
    contribution: Tensor
    shown: TopSequences
    edits: TopEdits
    features: list[TopFeatures]


def localize_under_each(
    visits: Visits,
    states: Sequence[Sequence[SteinState]],
    extremes: Sequence[Tensor],
    max_bytes: int = PAIR_BYTES,
) -> list[LocalizationSum]:
    """Where the misfit of each view sits, summed over ``K`` models; of each sequence, all positions.

    What the edits are and what they change is found once for all models.

    :param visits: of the data, under ``K`` models.
    :param states: what is known of each view under each of them.
    :param extremes: as for :func:`localize_views`, ``[B, V]`` for each of them.
    """
    views = [
        _SummedPlaces(view, own, visits.sequences)
        for view, own in zip(visits.views, zip(*states, strict=True), strict=True)
    ]
    with one_torch_thread():
        for around in visits.neighborhoods:
            for chunk in visits.chunks(around):
                for places in views:
                    if places.view.operator.neighborhood is around:
                        places.add(chunk)
    each = zip(*(extreme.unbind(1) for extreme in extremes), strict=True)
    return [places.found(draws, max_bytes) for places, draws in zip(views, each, strict=True)]


@dataclass(frozen=True, eq=False)
class PartLocalization:
    """Where the misfit of one view sits in a part of the data; those of all parts add up.

    :param shown: the sequences with the largest shares, position by position.
    :param edits: the edits with the largest shares.
    :param pushes: how strongly sequences push the features that stand out, if the view reports its features.
    """

    shown: TopSequences
    edits: TopEdits
    pushes: Pushes | None

    def __add__(self, other: PartLocalization) -> PartLocalization:
        pushes = None if self.pushes is None or other.pushes is None else self.pushes + other.pushes
        shown = TopSequences.cat([self.shown, other.shown], MOST_SHOWN)
        return PartLocalization(shown, TopEdits.cat([self.edits, other.edits]), pushes)


def localize_part(
    visits: Visits, states: Sequence[SteinState], extreme: Tensor, num_sequences: int
) -> list[PartLocalization]:
    """Where the misfit of each view sits in a part of the data.

    :param visits: of the part.
    :param states: the sums over all parts of the data.
    :param extreme: as for :func:`localize_views`.
    :param num_sequences: how many there are in all parts.
    """
    views = _visited(visits, states, extreme, MOST_SHOWN, num_sequences)
    return [places.part() for places in views]


def _visited(
    visits: Visits,
    states: Sequence[SteinState],
    extreme: Tensor,
    most_shown: int,
    num_sequences: int,
    *,
    progress: bool = False,
) -> list[_Places]:
    views = [
        _Places(view, state, draws, visits.sequences, most_shown, num_sequences)
        for view, state, draws in zip(visits.views, states, extreme.unbind(1), strict=True)
    ]
    total = len(visits.neighborhoods) * len(visits.sequences)
    with one_torch_thread(), progress_bar(total=total, desc="localization", unit="step", show=progress) as bar:
        for around in visits.neighborhoods:
            own = [places for places in views if places.view.operator.neighborhood is around]
            for chunk in visits.chunks(around):
                for places in own:
                    places.add(chunk)
                bar.update(chunk.count)
    return views


def edit_shares(
    chunk: WeightedEdits,
    view: View,
    found: SteinMatrix | Witness,
    num_sequences: int,
    max_bytes: int = PAIR_BYTES,
) -> Tensor:
    """The share of every edit of a chunk in the statistic of a view, ``[E]``; those of all chunks add up to it.

    :param chunk: with edits of the view's operator; for a kernel without features, all edits.
    :param found: the view's Stein kernel matrix, or the witness for the sequences of the chunk.
    :param num_sequences: how many there are in all chunks.

    >>> from pyro_ksd import Sequences, default_views
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.fit_tests import u_statistic
    >>> from pyro_ksd.stein import stein_matrices
    >>> from pyro_ksd.stein.weighting import weighted_edits
    >>> data, view = Sequences.of(["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]), default_views()[1]
    >>> [matrix] = stein_matrices(random_walk(3), data, [view])
    >>> shares = edit_shares(weighted_edits(random_walk(3), view.operator, data), view, matrix, len(data))
    >>> shares.sum().isclose(u_statistic(matrix)).item()
    True
    """
    check_instance("chunk", chunk, WeightedEdits, "weighted edits, such as weighted_edits(model, operator, sequences)")
    check_instance("view", view, View, "a View")
    check_instance("found", found, (SteinMatrix, Witness), "the view's Stein kernel matrix, or a witness")
    check_number("num_sequences", num_sequences, least=2)
    check_number("max_bytes", max_bytes, least=1)
    products = view.kernel.edit_products(chunk, found, max_bytes)
    shares = (chunk.weights * products).div_(num_sequences * (num_sequences - 1))
    if not shares.sum().isfinite():  # an edit of weight 0 may have any product
        shares.masked_fill_(chunk.weights == 0, 0.0)
    return shares


class _Places:
    """Where the misfit of one view sits, as far as its sequences were looked at.

    :param state: what is known of the view over all sequences.
    :param extreme: ``[B]``, null draws of the largest ``|z|`` of its features.
    :param sequences: all that are looked at.
    :param num_sequences: how many the data have.
    """

    def __init__(
        self,
        view: View,
        state: SteinState,
        extreme: Tensor,
        sequences: Sequences,
        most_shown: int,
        num_sequences: int,
    ) -> None:
        self.view = view
        self._state = state
        self._extreme = extreme
        self._sequences = sequences
        self._largest = LargestShares(sequences.width, most_shown)
        self._num_sequences = num_sequences
        self._waiting: list[WeightedEdits] = []
        self._contributions: list[Tensor] = []
        self._pushes: Pushes | None = None
        if view.kernel.feature_kind and isinstance(state, SteinSums):
            self._pushes = Pushes.none(state, float(extreme.min()))

    def add(self, chunk: Chunk) -> None:
        """Adds the sequences of the next chunk; for a kernel without features, they wait for all others."""
        edits = chunk.weighted(self.view.operator)
        if isinstance(self._state, SteinSums) and (features := chunk.features(self.view)[0].features) is not None:
            self._add(edits, self._state.witness(features))
            if self._pushes is not None:
                self._pushes = self._pushes.plus(features)
        elif self.view.kernel.has_features and isinstance(self._state, SteinMatrix):
            self._add(edits, self._state)
        else:
            self._waiting.append(edits)

    def _add(self, edits: WeightedEdits, found: SteinMatrix | Witness, max_bytes: int = PAIR_BYTES) -> None:
        edits = edits.used()
        shares = edit_shares(edits, self.view, found, self._num_sequences, max_bytes)
        contribution = edits.edits.sum_by_owner(shares)
        self._contributions.append(contribution)
        self._largest.add(edits, shares, contribution)

    def found(self, max_bytes: int) -> Localization:
        """What was found, after all sequences were added."""
        if self._waiting and isinstance(self._state, SteinMatrix):
            self._add(WeightedEdits.cat(self._waiting, self._sequences), self._state, max_bytes)
        return Localization(
            contribution=torch.cat(self._contributions),
            shown=self._largest.sequences,
            edits=self._largest.edits,
            features=top_features(self.view, self._state, self._extreme, self._sequences.alphabet_size),
            pushes=self._pushes,
        )

    def part(self) -> PartLocalization:
        """What was found in a part of the data, by a kernel with features."""
        return PartLocalization(self._largest.sequences, self._largest.edits, self._pushes)


class _SummedPlaces:
    """Where the misfit of one view sits under several models together, as far as its sequences were looked at.

    :param states: what is known of the view over all sequences, under each model.
    :param sequences: all that are looked at.
    """

    def __init__(self, view: View, states: Sequence[SteinState], sequences: Sequences) -> None:
        self.view = view
        self._states = states
        self._sequences = sequences
        self._largest = LargestShares(sequences.width, len(sequences))
        self._waiting: list[WeightedEdits] = []
        self._contributions: list[Tensor] = []

    def add(self, chunk: Chunk) -> None:
        """Adds the sequences of the next chunk; for a kernel without features, they wait for all others."""
        edits = chunk.weighted(self.view.operator)
        if not self.view.kernel.has_features:
            self._waiting.append(edits)
            return
        self._add(edits, [self._known(chunk.under(which), state) for which, state in enumerate(self._states)])

    def _known(self, chunk: Chunk, state: SteinState) -> SteinMatrix | Witness:
        """The matrix of the view under one model, or the witness for the sequences of a chunk."""
        if isinstance(state, SteinMatrix):
            return state
        [features] = chunk.features(self.view)
        return state.witness(cast(FeatureMatrix, features))

    def _add(self, edits: WeightedEdits, found: Sequence[SteinMatrix | Witness], max_bytes: int = PAIR_BYTES) -> None:
        edits = edits.used()
        size = len(self._sequences)
        shares = torch.zeros(len(edits.edits), dtype=torch.double)
        for which, own in enumerate(found):
            shares += edit_shares(edits.of_model(which), self.view, own, size, max_bytes)
        contribution = edits.edits.sum_by_owner(shares)
        self._contributions.append(contribution)
        self._largest.add(edits, shares, contribution)

    def found(self, extremes: Sequence[Tensor], max_bytes: int) -> LocalizationSum:
        """What was found, after all sequences were added.

        :param extremes: ``[B]`` under each model, null draws of the largest ``|z|`` of the features.
        """
        if self._waiting:
            matrices = [state for state in self._states if isinstance(state, SteinMatrix)]
            self._add(WeightedEdits.cat(self._waiting, self._sequences), matrices, max_bytes)
        size = self._sequences.alphabet_size
        features = [top_features(self.view, *own, size) for own in zip(self._states, extremes, strict=True)]
        return LocalizationSum(
            count=len(self._states),
            contribution=torch.cat(self._contributions),
            shown=self._largest.sequences,
            edits=self._largest.edits,
            features=[own for own in features if own is not None],
        )


def top_features(view: View, sums: SteinState, extreme: Tensor, alphabet_size: int) -> TopFeatures | None:
    """The features of a view with the largest shares; ``None`` if it does not report any.

    :param sums: of the view over all sequences.
    :param extreme: ``[B]``, null draws of the largest ``|z|`` of its features.
    """
    if not isinstance(sums, SteinSums) or not view.kernel.feature_kind:
        return None
    n = len(sums)
    total, spread = scores(sums)
    share = (total.square() - sums.squares) / (n * (n - 1))
    top = share.argsort(descending=True, stable=True)[:MOST_FEATURES]
    top = top[spread[top] > 0]
    z = total[top] / spread[top]
    codes = top if sums.codes is None else sums.codes[top]
    return TopFeatures(
        code=codes,
        symbols=view.kernel.feature_symbols(codes, alphabet_size),
        mean=total[top] / n,
        share=share[top],
        z=z,
        p_value=p_values_of_largest(z.abs(), extreme),
    )


def mean_localization(parts: Sequence[Localization]) -> Localization:
    """The mean over several models, such as posterior draws of one; what one of them does not report counts as 0.

    >>> from pyro_ksd import Sequences, default_views
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.fit_tests import goodness_of_fit
    >>> data, views = Sequences.of(["aabb", "bbccc", "caa", "abbc"]), default_views()[:1]
    >>> models = random_walk(3), random_walk(3, hold=0.5)
    >>> found = [goodness_of_fit(model, data, views, num_bootstrap=20) for model in models]
    >>> mean = mean_localization([localize(one)[0] for one in found])
    >>> mean.contribution.sum().isclose((found[0].statistic[0] + found[1].statistic[0]) / 2).item()
    True
    """
    check_instance("parts", parts, Sequence, "a list of Localization objects")
    if not parts:
        raise ValueError("parts: expected at least one Localization, found none")
    for part in parts:
        check_instance("parts", part, Localization, "a list of Localization objects, of one view each")
    sums = [
        LocalizationSum(1, part.contribution, part.shown, part.edits, [] if part.features is None else [part.features])
        for part in parts
        if part.contribution is not None
    ]
    if len(sums) < len(parts):
        raise ValueError("parts: expected those of data in memory, found those of partitioned data")
    return mean_of_sums(sums)


def mean_of_sums(parts: Sequence[LocalizationSum]) -> Localization:
    """The mean over all models of several sums; what one of these does not report counts as 0."""
    count = sum(part.count for part in parts)
    return Localization(
        contribution=torch.stack([part.contribution for part in parts]).sum(0) / count,
        shown=_mean_sequences([part.shown for part in parts], count),
        edits=_mean_edits([part.edits for part in parts], count),
        features=_mean_features([features for part in parts for features in part.features]),
        pushes=None,
    )


def _mean_sequences(parts: Sequence[TopSequences], count: int) -> TopSequences:
    """The mean over ``count`` models, of the sequences that all parts show."""
    rows = parts[0].sequence.sort().values
    for part in parts[1:]:
        rows = rows[torch.isin(rows, part.sequence)]
    share = torch.zeros(len(rows), dtype=torch.double)
    attribution = torch.zeros(len(rows), parts[0].attribution.shape[1], dtype=torch.double)
    for part in parts:
        order = part.sequence.argsort()
        place = order[torch.searchsorted(part.sequence[order], rows)]
        share += part.share[place] / count
        attribution += part.attribution[place] / count
    return TopSequences.cat([TopSequences(rows, share, attribution)], len(rows))


def _mean_edits(parts: Sequence[TopEdits], count: int) -> TopEdits:
    """The mean over ``count`` models."""
    removed = stacked([part.removed for part in parts])
    inserted = stacked([part.inserted for part in parts])
    sequence = torch.cat([part.sequence for part in parts])
    position = torch.cat([part.position for part in parts])
    rows = torch.cat([sequence[:, None], position[:, None], removed, inserted], 1)
    number, first = _numbered(rows)
    share = torch.cat([part.share for part in parts]) / count
    total = torch.zeros(len(first), dtype=torch.double).index_add_(0, number, share)
    top = total.argsort(descending=True, stable=True)[:MOST_EDITS]
    index = first[top]
    return TopEdits(
        sequence=sequence[index],
        position=position[index],
        removed=removed[index],
        inserted=inserted[index],
        share=total[top],
    )


def _numbered(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers of the distinct rows of ``[N, C]`` integers, in the order in which they come first.

    :returns: the number of each row, long ``[N]``, and where each number comes first, long ``[M]``.
    """
    number = torch.zeros(len(rows), dtype=torch.long)
    for column in rows.unbind(1):
        _, value = column.unique(return_inverse=True)
        _, number = (number * len(rows) + value).unique(return_inverse=True)  # stays small, however many columns
    size = int(number.max()) + 1 if len(rows) else 0
    first = torch.full((size,), len(rows)).scatter_reduce_(0, number, torch.arange(len(rows)), "amin")
    order = first.argsort()
    return order.argsort()[number], first[order]


def _mean_features(parts: Sequence[TopFeatures]) -> TopFeatures | None:
    if not parts:
        return None
    codes, symbols, places = _united(parts)
    total = torch.zeros(4, len(codes), dtype=torch.double)
    total[3] = len(parts)  # a feature that is not reported has the p-value 1
    for part, place in zip(parts, places, strict=True):
        total.index_add_(1, place, torch.stack([part.mean, part.share, part.z, part.p_value - 1]))
    mean, share, z, p = total / len(parts)
    top = share.argsort(descending=True, stable=True)[:MOST_FEATURES]
    return TopFeatures(codes[top], symbols[top], mean[top], share[top], z[top], p[top])


def _united(parts: Sequence[TopFeatures]) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The features that any part reports, in the order in which they are first reported.

    :returns: their codes ``[K]`` and symbols ``[K, W]``, and for each part the places of its features among them.
    """
    codes = torch.cat([part.code for part in parts])
    symbols = torch.cat([part.symbols for part in parts])
    number, first = _numbered(codes[:, None])
    return codes[first], symbols[first], list(number.split([len(part.code) for part in parts]))


def joined_localization(parts: Sequence[Localization], rows: Sequence[Tensor]) -> Localization:
    r"""One localization of the mean statistic of several folds, each weighted by its size.

    Shares add up to this mean. The score of a feature is :math:`\sum_j \sqrt{n_j / n}\, z_j`, which varies as each
    :math:`z_j` does. Its p-value combines those of the folds by Fisher's rule, the upper tail of
    :math:`\chi^2_{2k}` at :math:`-2 \sum_j \log p_j`: each :math:`p_j` allows for all features, and so does this one.
    What a fold does not report counts as the score 0 and the p-value 1.

    :param parts: one for each fold.
    :param rows: long ``[n_j]`` for each fold, its rows among the sequences of all folds.

    >>> from pyro_ksd import Sequences, default_views
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.fit_tests import goodness_of_fit
    >>> data, views = Sequences.of(["aabb", "bbccc", "caa", "abbc"]), default_views()[:1]
    >>> rows = [torch.tensor([0, 2]), torch.tensor([1, 3])]
    >>> found = [goodness_of_fit(random_walk(3), data[own], views, num_bootstrap=20) for own in rows]
    >>> joined = joined_localization([localize(one)[0] for one in found], rows)
    >>> joined.contribution.sum().isclose((found[0].statistic[0] + found[1].statistic[0]) / 2).item()
    True
    """
    check_instance("parts", parts, Sequence, "a list of Localization objects")
    for part in parts:
        check_instance("parts", part, Localization, "a list of Localization objects, of one view each")
    size = sum(map(len, rows))
    weights = [len(own) / size for own in rows]
    contribution = torch.zeros(size, dtype=torch.double)
    shown = []
    edits = []
    for part, own, weight in zip(parts, rows, weights, strict=True):
        if part.contribution is None:
            raise ValueError("parts: expected the contribution of every sequence, found a Localization without it")
        contribution[own] = weight * part.contribution
        top = part.shown
        shown.append(TopSequences(own[top.sequence], weight * top.share, weight * top.attribution))
        edits.append(replace(part.edits, sequence=own[part.edits.sequence], share=weight * part.edits.share))
    return Localization(
        contribution=contribution,
        shown=TopSequences.cat(shown, MOST_SHOWN),
        edits=TopEdits.cat(edits),
        features=_joined_features([part.features for part in parts if part.features is not None], weights),
        pushes=None,
    )


def _joined_features(parts: Sequence[TopFeatures], weights: Sequence[float]) -> TopFeatures | None:
    if not parts:
        return None
    codes, symbols, places = _united(parts)
    total = torch.zeros(4, len(codes), dtype=torch.double)
    for part, place, weight in zip(parts, places, weights, strict=True):
        own = [weight * part.mean, weight * part.share, weight**0.5 * part.z, -part.p_value.log()]
        total.index_add_(1, place, torch.stack(own))
    top = total[1].argsort(descending=True, stable=True)[:MOST_FEATURES]
    mean, share, z, exponent = total[:, top]
    count = torch.full_like(exponent, len(parts))
    return TopFeatures(codes[top], symbols[top], mean, share, z, torch.special.gammaincc(count, exponent))
