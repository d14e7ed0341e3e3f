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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from tqdm.auto import tqdm

from pyro_ksd.features import scores
from pyro_ksd.jumps import Chunk, Jumps
from pyro_ksd.kernels.base import DEFAULT_MAX_BYTES, FeatureKernel
from pyro_ksd.kernels.matrices import FeatureMatrix, SteinMatrix
from pyro_ksd.statistics import p_value
from pyro_ksd.testing import GoodnessOfFit
from pyro_ksd.views import View

MOST_EDITS = 100
"""How many edits of a view are reported, those with the largest share."""
MOST_FEATURES = 1000
"""How many features of a view are reported, those with the largest share."""


@dataclass(frozen=True, eq=False)
class TellingEdits:
    """The edits of a view with the largest share, in descending order of it; ``K`` of them.

    :ivar sequence: long ``[K]``, the row of the edited sequence.
    :ivar position: long ``[K]``, where it is edited.
    :ivar removed: the symbols that go, ``K`` tuples.
    :ivar inserted: the symbols that come, ``K`` tuples.
    :ivar share: double ``[K]``.
    """

    sequence: Tensor
    position: Tensor
    removed: list[tuple[str, ...]]
    inserted: list[tuple[str, ...]]
    share: Tensor


@dataclass(frozen=True, eq=False)
class TellingFeatures:
    """The features of a view with the largest share, in descending order of it; ``K`` of them.

    :ivar name: what the features stand for.
    :ivar mean: double ``[K]``, the mean Stein feature: positive if the model makes it too often, else too rarely.
    :ivar share: double ``[K]``, of the statistic; the shares of all features add up to it.
    :ivar z: double ``[K]``, see :mod:`pyro_ksd.features`.
    :ivar p_value: double ``[K]``, against the largest ``|z|`` of all features in the null draws.
    """

    name: list[str]
    mean: Tensor
    share: Tensor
    z: Tensor
    p_value: Tensor


@dataclass(frozen=True, eq=False)
class Localization:
    """Where the misfit of one view sits.

    :ivar contribution: double ``[N]``, the share of each sequence.
    :ivar attribution: double ``[N, T + 1]``, the share of each position; NaN behind the end of a sequence. An insertion
        counts for the position that the new symbol takes, so that there is one position more than symbols.
    :ivar edits: the most telling edits.
    :ivar features: the most telling features, if the view's features have names.
    """

    contribution: Tensor
    attribution: Tensor
    edits: TellingEdits
    features: TellingFeatures | None


def localize(
    result: GoodnessOfFit, symbols: Sequence[str], *, max_bytes: int = DEFAULT_MAX_BYTES, progress: bool = False
) -> list[Localization]:
    """Where the misfit sits, for each view of a test.

    :param symbols: the symbols of the alphabet, as a person writes them.
    :param max_bytes: see :func:`~pyro_ksd.stein.stein_matrices`.

    >>> from pyro_ksd import Sequences, default_views
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.testing import goodness_of_fit
    >>> data = Sequences.of(["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"])
    >>> found = goodness_of_fit(random_walk(3), data, default_views(), num_bootstrap=99)
    >>> places = localize(found, "abc")
    >>> torch.stack([place.contribution.sum() for place in places]).allclose(found.statistic)
    True
    >>> places[1].features.name[0]  # the walk never rests
    'bb'
    """
    parts = list(zip(result.views, result.matrices, result.null.extreme.unbind(1), strict=True))
    return [
        localize_view(result.jumps[view.operator], view, matrix, extreme, symbols, max_bytes)
        for view, matrix, extreme in tqdm(parts, desc="localization", unit="view", disable=not progress)
    ]


def localize_view(
    jumps: Jumps,
    view: View,
    matrix: SteinMatrix,
    extreme: Tensor,
    symbols: Sequence[str],
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Localization:
    """Where the misfit of one view sits.

    :param jumps: of the view's operator.
    :param matrix: the view's Stein kernel matrix.
    :param extreme: ``[B]``, null draws of the largest ``|z|`` of the view's features.

    >>> from pyro_ksd import Sequences, default_views
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.testing import goodness_of_fit
    >>> data = Sequences.of(["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"])
    >>> found = goodness_of_fit(random_walk(3), data, default_views(), num_bootstrap=99)
    >>> start = found.views[3]
    >>> place = localize_view(found.jumps[start.operator], start, found.matrices[3], found.null.extreme[:, 3], "abc")
    >>> place.attribution.shape  # the positions of the longest sequence, and the gap behind it
    torch.Size([6, 6])
    """
    n = len(matrix)
    attribution, edits = _by_position(jumps, view, matrix, symbols, max_bytes)
    features = _features(view, matrix, extreme, symbols)
    return Localization(matrix.others() / (n * (n - 1)), attribution, edits, features)


def edit_shares(
    jumps: Jumps, view: View, matrix: SteinMatrix, max_bytes: int = DEFAULT_MAX_BYTES
) -> Iterator[tuple[Chunk, Tensor]]:
    """The share of every edit of a view, ``[E]``, chunk by chunk; all of them add up to the statistic.

    :param jumps: of the view's operator.
    :param matrix: the view's Stein kernel matrix.

    >>> from pyro_ksd import Sequences, default_views
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.testing import goodness_of_fit
    >>> data = Sequences.of(["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"])
    >>> found = goodness_of_fit(random_walk(3), data, default_views(), num_bootstrap=99)
    >>> pairs = found.views[1]
    >>> shares = [share for _, share in edit_shares(found.jumps[pairs.operator], pairs, found.matrices[1])]
    >>> torch.cat(shares).sum().isclose(found.statistic[1]).item()
    True
    """
    n = len(matrix)
    for chunk in jumps if view.kernel.has_features else [jumps.at_once()]:
        products = view.kernel.edit_products(chunk, matrix, max_bytes)
        yield chunk, torch.where(chunk.weights == 0, 0.0, chunk.weights * products) / (n * (n - 1))


def _by_position(
    jumps: Jumps, view: View, matrix: SteinMatrix, symbols: Sequence[str], max_bytes: int
) -> tuple[Tensor, TellingEdits]:
    sequences = jumps.sequences
    columns = sequences.width + 1
    attribution = torch.zeros(len(sequences), columns, dtype=torch.double, device=sequences.device)
    edits = []
    for chunk, shares in edit_shares(jumps, view, matrix, max_bytes):
        start = torch.cat([block.start for block in chunk.edits.blocks]) if chunk.edits.blocks else chunk.edits.owner
        place = (chunk.edits.owner + chunk.begin) * columns + start
        attribution.view(-1).index_add_(0, place, shares)
        edits.append(_telling(chunk, shares, symbols))
    behind = torch.arange(columns, device=sequences.device) > sequences.lengths[:, None]
    return attribution.masked_fill_(behind, torch.nan), _most_telling(edits)


def _telling(chunk: Chunk, shares: Tensor, symbols: Sequence[str]) -> TellingEdits:
    """The edits of a chunk with the largest share."""
    top = shares.topk(min(MOST_EDITS, len(shares))).indices.sort().values
    blocks = chunk.edits.select(top).blocks
    rows = torch.cat([block.owner for block in blocks]) if blocks else top
    removed, inserted = [], []
    for block in blocks:
        inserted += [tuple(symbols[code] for code in codes) for codes in block.inserted.tolist()]
        removed += [
            tuple(symbols[code] for code in chunk.sequences.tokens[row, start : start + block.removed].tolist())
            for row, start in zip(block.owner.tolist(), block.start.tolist(), strict=True)
        ]
    starts = torch.cat([block.start for block in blocks]) if blocks else top
    return TellingEdits(rows + chunk.begin, starts, removed, inserted, shares[top])


def _most_telling(parts: Sequence[TellingEdits]) -> TellingEdits:
    share = torch.cat([part.share for part in parts])
    order = share.argsort(descending=True, stable=True)[:MOST_EDITS]
    removed = [symbols for part in parts for symbols in part.removed]
    inserted = [symbols for part in parts for symbols in part.inserted]
    return TellingEdits(
        sequence=torch.cat([part.sequence for part in parts])[order],
        position=torch.cat([part.position for part in parts])[order],
        removed=[removed[index] for index in order.tolist()],
        inserted=[inserted[index] for index in order.tolist()],
        share=share[order],
    )


def _features(view: View, matrix: SteinMatrix, extreme: Tensor, symbols: Sequence[str]) -> TellingFeatures | None:
    kernel, n = view.kernel, len(matrix)
    if not (isinstance(matrix, FeatureMatrix) and isinstance(kernel, FeatureKernel) and kernel.feature_kind):
        return None
    total, spread = scores(matrix)
    squares = next(matrix.group_sums(n, torch.square))[0]
    share = (total.square() - squares) / (n * (n - 1))
    top = share.argsort(descending=True, stable=True)[:MOST_FEATURES]
    top = top[spread[top] > 0]
    z = total[top] / spread[top]
    codes = top if matrix.codes is None else matrix.codes[top]
    return TellingFeatures(
        name=kernel.feature_names(codes, symbols),
        mean=total[top] / n,
        share=share[top],
        z=z,
        p_value=p_value(z.abs(), extreme[:, None].expand(-1, len(z))),
    )


def mean_localization(parts: Sequence[Localization]) -> Localization:
    """The mean over several models, such as posterior draws of one; what one of them does not report counts as 0.

    >>> from pyro_ksd import Sequences, default_views
    >>> from pyro_ksd.examples import random_walk
    >>> from pyro_ksd.testing import goodness_of_fit
    >>> data, views = Sequences.of(["aabb", "bbccc", "caa", "abbc"]), default_views()[:1]
    >>> models = random_walk(3), random_walk(3, hold=0.5)
    >>> found = [goodness_of_fit(model, data, views, num_bootstrap=20) for model in models]
    >>> mean = mean_localization([localize(one, "abc")[0] for one in found])
    >>> mean.contribution.sum().isclose((found[0].statistic[0] + found[1].statistic[0]) / 2).item()
    True
    """
    return Localization(
        contribution=torch.stack([part.contribution for part in parts]).mean(0),
        attribution=torch.stack([part.attribution for part in parts]).mean(0),
        edits=_mean_edits([part.edits for part in parts]),
        features=_mean_features([part.features for part in parts if part.features is not None]),
    )


def _mean_edits(parts: Sequence[TellingEdits]) -> TellingEdits:
    total: dict[tuple[int, int, tuple[str, ...], tuple[str, ...]], float] = defaultdict(float)
    for part in parts:
        rows = zip(part.sequence.tolist(), part.position.tolist(), part.removed, part.inserted, strict=True)
        for edit, share in zip(rows, part.share.tolist(), strict=True):
            total[edit] += share / len(parts)
    top = sorted(total, key=lambda edit: -total[edit])[:MOST_EDITS]
    return TellingEdits(
        sequence=torch.tensor([edit[0] for edit in top], dtype=torch.long),
        position=torch.tensor([edit[1] for edit in top], dtype=torch.long),
        removed=[edit[2] for edit in top],
        inserted=[edit[3] for edit in top],
        share=torch.tensor([total[edit] for edit in top], dtype=torch.double),
    )


def _mean_features(parts: Sequence[TellingFeatures]) -> TellingFeatures | None:
    if not parts:
        return None
    names = list(dict.fromkeys(name for part in parts for name in part.name))
    row = {name: index for index, name in enumerate(names)}
    total = torch.zeros(4, len(names), dtype=torch.double)
    total[3] = len(parts)  # a feature that is not reported has the p-value 1
    for part in parts:
        found = torch.tensor([row[name] for name in part.name], dtype=torch.long)
        values = torch.stack([part.mean, part.share, part.z, part.p_value - 1]).cpu()
        total.index_add_(1, found, values)
    mean, share, z, p = total / len(parts)
    top = share.argsort(descending=True, stable=True)[:MOST_FEATURES]
    return TellingFeatures([names[index] for index in top.tolist()], mean[top], share[top], z[top], p[top])
