# SPDX-License-Identifier: Apache-2.0
r"""Where the misfit sits: the share of the statistic of each sequence, position, edit and feature.

With the leave-one-out witness :math:`f_{-i} = \frac{1}{n-1} \sum_{j \ne i} \psi_j`,

.. math:: U = \frac{1}{n} \sum_i \sum_{y \in \partial x_i} w(x_i, y)\,\bigl(f_{-i}(y) - f_{-i}(x_i)\bigr),

so every edit has a share of :math:`U`. Shares of edits add up to shares of positions, these to shares of sequences, and
these to :math:`U`. A large share of an edit says that the model would rather have the edited sequence, and that many
other sequences want to be edited in the same direction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyro_ksd.common.chunk_sizes import PAIR_BYTES
from pyro_ksd.common.option_checks import check_flag, check_instance, check_number
from pyro_ksd.common.progress import progress_bar
from pyro_ksd.edits.neighborhoods import Neighborhood
from pyro_ksd.edits.weighted_edits import KeptEdits, WeightedEdits
from pyro_ksd.fit_tests.absolute import GoodnessOfFit
from pyro_ksd.fit_tests.feature_scores import scores
from pyro_ksd.fit_tests.statistics import p_value
from pyro_ksd.kernels.stein_matrices import SteinMatrix
from pyro_ksd.stein.views import View
from pyro_ksd.stein.weighting import weighted

MOST_EDITS = 100
"""How many edits of a view are reported, those with the largest share."""
MOST_FEATURES = 1000
"""How many features of a view are reported, those with the largest share."""


@dataclass(frozen=True, eq=False)
class TopEdits:
    """The edits of a view with the largest share, in descending order of it; ``K`` of them.

    :ivar sequence: long ``[K]``, the row of the edited sequence.
    :ivar position: long ``[K]``, where it is edited.
    :ivar removed: long ``[K, R]``, the codes of the symbols that go, padded with -1.
    :ivar inserted: long ``[K, W]``, the codes of the symbols that come, padded with -1.
    :ivar share: double ``[K]``.
    """

    sequence: Tensor
    position: Tensor
    removed: Tensor
    inserted: Tensor
    share: Tensor


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

    :ivar contribution: double ``[N]``, the share of each sequence.
    :ivar attribution: double ``[N, T + 1]``, the share of each position; NaN after the end of a sequence. An insertion
        counts for the position that the new symbol takes, so that there is one position more than symbols.
    :ivar edits: the edits with the largest shares.
    :ivar features: the features with the largest shares, if the view reports its features one by one.
    """

    contribution: Tensor
    attribution: Tensor
    edits: TopEdits
    features: TopFeatures | None


def localize(result: GoodnessOfFit, *, max_bytes: int = PAIR_BYTES, progress: bool = False) -> list[Localization]:
    """Where the misfit sits, for each view of a test.

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
    check_number("max_bytes", max_bytes, least=1)
    check_flag("progress", progress)
    extreme = result.null.extreme
    return localize_views(result.edits, result.views, result.matrices, extreme, max_bytes, progress=progress)


def localize_views(
    edits: Mapping[Neighborhood, KeptEdits],
    views: Sequence[View],
    matrices: Sequence[SteinMatrix],
    extreme: Tensor,
    max_bytes: int = PAIR_BYTES,
    *,
    progress: bool = False,
) -> list[Localization]:
    """Where the misfit of each view sits. Each chunk of edits is visited once, for all views of its neighborhood.

    :param edits: of the neighborhoods of the views.
    :param matrices: the Stein kernel matrix of each view.
    :param extreme: ``[B, V]``, null draws of the largest ``|z|`` of each view's features.
    """
    neighborhoods = list(dict.fromkeys(view.operator.neighborhood for view in views))
    parts: dict[View, list[_Places]] = {view: [] for view in views}
    pairs = list(zip(views, matrices, strict=True))
    total = sum(len(edits[around].sequences) for around in neighborhoods)
    with progress_bar(total=total, desc="localization", unit="step", show=progress) as bar:
        for around in neighborhoods:
            kept = edits[around]
            own = [(view, matrix) for view, matrix in pairs if view.operator.neighborhood is around]
            by_features = [(view, matrix) for view, matrix in own if view.kernel.has_features]
            chunks = []
            for scored in kept.chunks():
                operators = dict.fromkeys(view.operator for view, _ in by_features)
                by_operator = {operator: weighted(scored, operator) for operator in operators}
                for view, matrix in by_features:
                    chunk = by_operator[view.operator]
                    parts[view].append(_places(chunk, edit_shares(chunk, view, matrix), kept.sequences.width))
                if len(by_features) < len(own):
                    chunks.append(scored)
                bar.update(len(scored.sequences))
            for view, matrix in own:
                if not view.kernel.has_features:
                    whole = WeightedEdits.cat([weighted(scored, view.operator) for scored in chunks], kept.sequences)
                    shares = edit_shares(whole, view, matrix, max_bytes)
                    parts[view].append(_places(whole, shares, kept.sequences.width))
    return [
        Localization(
            contribution=matrix.others() / (len(matrix) * (len(matrix) - 1)),
            attribution=torch.cat([part.attribution for part in parts[view]]),
            edits=_joined([part.edits for part in parts[view]]),
            features=_top_features(view, matrix, draws, edits[view.operator.neighborhood].sequences.alphabet_size),
        )
        for (view, matrix), draws in zip(pairs, extreme.unbind(1), strict=True)
    ]


def edit_shares(chunk: WeightedEdits, view: View, matrix: SteinMatrix, max_bytes: int = PAIR_BYTES) -> Tensor:
    """The share of every edit of a chunk in the statistic of a view, ``[E]``; those of all chunks add up to it.

    :param chunk: with edits of the view's operator; for a kernel without features, all edits.
    :param matrix: the view's Stein kernel matrix.

    >>> from pyro_ksd import Sequences, default_views
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.fit_tests import goodness_of_fit
    >>> data = Sequences.of(["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"])
    >>> found = goodness_of_fit(random_walk(3), data, default_views(), num_bootstrap=99)
    >>> pairs = found.views[1]
    >>> [scored] = found.edits[pairs.operator.neighborhood].chunks()
    >>> edit_shares(weighted(scored, pairs.operator), pairs, found.matrices[1]).sum().isclose(found.statistic[1]).item()
    True
    """
    check_instance("chunk", chunk, WeightedEdits, "weighted edits, such as weighted(chunk, operator)")
    check_instance("view", view, View, "a View")
    check_instance("matrix", matrix, SteinMatrix, "the view's Stein kernel matrix")
    check_number("max_bytes", max_bytes, least=1)
    n = len(matrix)
    products = view.kernel.edit_products(chunk, matrix, max_bytes)
    return torch.where(chunk.weights == 0, 0.0, chunk.weights * products) / (n * (n - 1))


@dataclass(frozen=True, eq=False)
class _Places:
    """The shares of the positions of some consecutive sequences, ``[n, T + 1]``, and their top edits."""

    attribution: Tensor
    edits: TopEdits


def _places(chunk: WeightedEdits, shares: Tensor, width: int) -> _Places:
    """Sums the shares of edits ``[E]`` by position, and finds the edits with the largest.

    :param width: of all sequences of the data, ``T``.
    """
    blocks = chunk.edits.blocks
    lengths = chunk.sequences.lengths
    start = torch.cat([block.start for block in blocks]) if blocks else chunk.edits.owner
    attribution = torch.zeros(len(lengths), width + 1, dtype=torch.double)
    attribution.view(-1).index_add_(0, chunk.edits.owner * (width + 1) + start, shares)
    after = torch.arange(width + 1) > lengths[:, None]
    return _Places(attribution.masked_fill_(after, torch.nan), _top_edits(chunk, shares))


def _top_edits(chunk: WeightedEdits, shares: Tensor) -> TopEdits:
    """The edits of a chunk with the largest share, in their order."""
    top = shares.topk(min(MOST_EDITS, len(shares))).indices.sort().values
    blocks = chunk.edits.select(top).blocks
    tokens = chunk.sequences.tokens
    removed = [tokens[block.owner[:, None], block.start[:, None] + torch.arange(block.removed)] for block in blocks]
    return TopEdits(
        sequence=torch.cat([top[:0], *(block.owner for block in blocks)]) + chunk.begin,
        position=torch.cat([top[:0], *(block.start for block in blocks)]),
        removed=_stacked(removed),
        inserted=_stacked([block.inserted for block in blocks]),
        share=shares[top],
    )


def _joined(parts: Sequence[TopEdits]) -> TopEdits:
    """The edits with the largest share of all parts."""
    share = torch.cat([part.share for part in parts])
    order = share.argsort(descending=True, stable=True)[:MOST_EDITS]
    return TopEdits(
        sequence=torch.cat([part.sequence for part in parts])[order],
        position=torch.cat([part.position for part in parts])[order],
        removed=_stacked([part.removed for part in parts])[order],
        inserted=_stacked([part.inserted for part in parts])[order],
        share=share[order],
    )


def _stacked(codes: Sequence[Tensor]) -> Tensor:
    """Codes of several widths ``[K, W]`` below each other, padded with -1."""
    width = max((part.shape[1] for part in codes), default=0)
    rows = [pad(part, (0, width - part.shape[1]), value=-1) for part in codes]
    return torch.cat(rows) if rows else torch.zeros(0, 0, dtype=torch.long)


def _top_features(view: View, matrix: SteinMatrix, extreme: Tensor, alphabet_size: int) -> TopFeatures | None:
    features = matrix.features
    n = len(matrix)
    if features is None or not view.kernel.feature_kind:
        return None
    total, spread = scores(features)
    squares = next(features.group_sums(n, torch.square))[0]
    share = (total.square() - squares) / (n * (n - 1))
    top = share.argsort(descending=True, stable=True)[:MOST_FEATURES]
    top = top[spread[top] > 0]
    z = total[top] / spread[top]
    codes = top if features.codes is None else features.codes[top]
    return TopFeatures(
        code=codes,
        symbols=view.kernel.feature_symbols(codes, alphabet_size),
        mean=total[top] / n,
        share=share[top],
        z=z,
        p_value=p_value(z.abs(), extreme[:, None].expand(-1, len(z))),
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
    return Localization(
        contribution=torch.stack([part.contribution for part in parts]).mean(0),
        attribution=torch.stack([part.attribution for part in parts]).mean(0),
        edits=_mean_edits([part.edits for part in parts]),
        features=_mean_features([part.features for part in parts if part.features is not None]),
    )


def _mean_edits(parts: Sequence[TopEdits]) -> TopEdits:
    removed = _stacked([part.removed for part in parts])
    inserted = _stacked([part.inserted for part in parts])
    sequence = torch.cat([part.sequence for part in parts])
    position = torch.cat([part.position for part in parts])
    rows = torch.cat([sequence[:, None], position[:, None], removed, inserted], 1)
    total: dict[tuple[int, ...], float] = defaultdict(float)
    first: dict[tuple[int, ...], int] = {}
    shares = torch.cat([part.share for part in parts]).tolist()
    for place, (row, share) in enumerate(zip(map(tuple, rows.tolist()), shares, strict=True)):
        total[row] += share / len(parts)
        first.setdefault(row, place)
    top = sorted(total, key=lambda row: -total[row])[:MOST_EDITS]
    index = torch.tensor([first[row] for row in top], dtype=torch.long)
    return TopEdits(
        sequence=sequence[index],
        position=position[index],
        removed=removed[index],
        inserted=inserted[index],
        share=torch.tensor([total[row] for row in top], dtype=torch.double),
    )


def _mean_features(parts: Sequence[TopFeatures]) -> TopFeatures | None:
    if not parts:
        return None
    codes = torch.cat([part.code for part in parts])
    symbols = torch.cat([part.symbols for part in parts])
    distinct = {code: place for place, code in reversed(list(enumerate(codes.tolist())))}
    first = torch.tensor(sorted(distinct.values()), dtype=torch.long)  # in the order in which they are first reported
    row = {code: index for index, code in enumerate(codes[first].tolist())}
    total = torch.zeros(4, len(first), dtype=torch.double)
    total[3] = len(parts)  # a feature that is not reported has the p-value 1
    for part in parts:
        found = torch.tensor([row[code] for code in part.code.tolist()], dtype=torch.long)
        total.index_add_(1, found, torch.stack([part.mean, part.share, part.z, part.p_value - 1]))
    mean, share, z, p = total / len(parts)
    top = share.argsort(descending=True, stable=True)[:MOST_FEATURES]
    return TopFeatures(codes[first][top], symbols[first][top], mean[top], share[top], z[top], p[top])
