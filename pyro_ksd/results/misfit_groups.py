# SPDX-License-Identifier: Apache-2.0
"""Groups that say where the misfit sits: features, edits, sequences and positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from torch import Tensor
from torch.nn.functional import pad

from pyro_ksd.fit_tests.largest_shares import stacked
from pyro_ksd.fit_tests.localization import Localization
from pyro_ksd.kernels.base import Kernel
from pyro_ksd.kernels.conditional import ConditionalKernel
from pyro_ksd.kernels.embedding import EmbeddingKernel
from pyro_ksd.results.arrays import as_numpy, as_strings
from pyro_ksd.results.kept_data import KeptData
from pyro_ksd.results.labels import feature_labels, operation
from pyro_ksd.stein.views import View

IMPOSSIBLE = "impossible"
"""The kind of the overall p-value, 0, of a model that gives probability 0 to some sequences."""


def in_rows(localizations: Sequence[Localization], rows: Callable[[Tensor], Tensor]) -> list[Localization]:
    """Localizations whose sequences are rows of all data.

    :param rows: gives the rows of all data from the numbers of sequences among the possible ones.
    """
    return [
        replace(
            one,
            shown=replace(one.shown, sequence=rows(one.shown.sequence)),
            edits=replace(one.edits, sequence=rows(one.edits.sequence)),
        )
        for one in localizations
    ]


def add_places(
    groups: dict[str, xr.Dataset],
    views: Sequence[View],
    localizations: Sequence[Localization],
    data: KeptData,
    extreme: Tensor,
) -> None:
    """Adds where the misfit sits, and the sequences that are impossible, to the groups that every test has."""
    rows = data.possible_rows
    symbols = [str(symbol) for symbol in data.sequences.symbols]
    shown = [one.shown for one in localizations]
    attribution = stacked([one.attribution for one in shown], np.nan)
    if data.is_partial:
        groups["ksd"].attrs["num_sequences"] = data.num_sequences - data.num_impossible
        # The longest sequences may not be kept.
        attribution = pad(attribution, (0, data.sequences.width + 1 - attribution.shape[1]), value=np.nan)
    groups["ksd"] = (
        groups["ksd"]
        .assign_coords(
            sequence=as_numpy(rows), shown=np.arange(len(shown[0].sequence)), position=np.arange(attribution.shape[1])
        )
        .assign(
            feature_kind=("view", as_strings([view.kernel.feature_kind for view in views])),
            weight=("view", np.array([view.weight for view in views])),
            contribution=(("view", "sequence"), np.stack([_contribution(one, rows) for one in localizations])),
            shown_sequence=(("view", "shown"), np.stack([as_numpy(one.sequence) for one in shown])),
            attribution=(
                ("view", "shown", "position"),
                as_numpy(attribution).reshape(len(shown), -1, attribution.shape[1]),
            ),
        )
    )
    groups["ksd_null"]["extreme"] = (("chain", "draw", "view"), as_numpy(extreme)[None])
    groups["ksd_ngram"] = _ngrams(views, localizations, symbols)
    groups["ksd_edit"] = _edits(views, localizations, symbols)
    add_impossible(groups, data)


def add_impossible(groups: dict[str, xr.Dataset], data: KeptData) -> None:
    """Adds the sequences that are impossible, and what they mean for the overall p-value."""
    groups["ksd"].attrs["kind_overall"] = groups["ksd"].attrs["kind"]
    if data.num_impossible:
        groups["ksd"]["p_value_possible"] = groups["ksd"]["p_value_overall"]
        groups["ksd"]["p_value_overall"] = ((), 0.0)
        groups["ksd"].attrs["kind_overall"] = IMPOSSIBLE
        sites = data.impossible_sites
        groups["ksd_impossible"] = xr.Dataset(
            {"site": ("sequence", as_strings(list(sites.values())))},
            coords={"sequence": np.array(list(sites), dtype=np.int64)},
            attrs={"num_sequences": data.num_impossible} if data.is_partial else {},
        )


def _contribution(place: Localization, rows: Tensor) -> npt.NDArray[np.generic]:
    """The shares of the sequences in some rows of the data, NaN for those that are not known."""
    if place.contribution is not None:
        return as_numpy(place.contribution)
    shares = np.full(len(rows), np.nan)
    shares[np.searchsorted(as_numpy(rows), as_numpy(place.shown.sequence))] = as_numpy(place.shown.share)
    return shares


def _ngrams(views: Sequence[View], localizations: Sequence[Localization], symbols: Sequence[str]) -> xr.Dataset:
    pairs = zip(views, localizations, strict=True)
    reported = [(view, one.features) for view, one in pairs if one.features is not None]
    labels = [label for view, own in reported for label in labels_of(view.name, view.kernel, own.code, symbols)]
    variables: dict[str, npt.NDArray[np.generic]] = {
        "view_name": as_strings([view.name for view, features in reported for _ in features.code]),
        "label": as_strings(labels),
        "mean": joined([features.mean for _, features in reported]),
        "share": joined([features.share for _, features in reported]),
        "z": joined([features.z for _, features in reported]),
        "p_value": joined([features.p_value for _, features in reported]),
    }
    codes = padded_codes([features.symbols for _, features in reported])
    return xr.Dataset(
        {name: ("ngram", values) for name, values in variables.items()} | {"symbol": (("ngram", "place"), codes)},
        coords={"ngram": np.arange(len(labels)), "place": np.arange(codes.shape[1])},
    )


def labels_of(view: str, kernel: Kernel[Any], codes: Tensor, symbols: Sequence[str]) -> list[str]:
    """The labels of the features with some codes, long ``[D]``.

    :param view: the name of the view.
    :param symbols: those of the alphabet.
    """
    if isinstance(kernel, ConditionalKernel):
        inner, columns = kernel.split_codes(codes)
        labels = labels_of(view, kernel.kernel, inner, symbols)
        return [
            f"{label} given {kernel.group_label(column)}"
            for label, column in zip(labels, columns.tolist(), strict=True)
        ]
    if isinstance(kernel, EmbeddingKernel):
        return kernel.labels_in(view, codes.tolist())
    ngrams = kernel.feature_symbols(codes, len(symbols)).tolist()
    names = [kernel.feature_label(code, len(symbols)) for code in codes.tolist()]
    return feature_labels(kernel.feature_kind, names, ngrams, symbols)


def _edits(
    views: Sequence[View],
    localizations: Sequence[Localization],
    symbols: Sequence[str],
) -> xr.Dataset:
    tops = [one.edits for one in localizations]
    operations = [
        operation(removed, inserted, symbols)
        for edits in tops
        for removed, inserted in zip(edits.removed.tolist(), edits.inserted.tolist(), strict=True)
    ]
    owners = [view.name for view, edits in zip(views, tops, strict=True) for _ in edits.share]
    variables: dict[str, npt.NDArray[np.generic]] = {
        "view_name": as_strings(owners),
        "sequence_index": joined([edits.sequence for edits in tops]),
        "position_index": joined([edits.position for edits in tops]),
        "operation": as_strings(operations),
        "share": joined([edits.share for edits in tops]),
    }
    return xr.Dataset(
        {name: ("edit", values) for name, values in variables.items()},
        coords={"edit": np.arange(len(operations))},
    )


def padded_codes(symbols: Sequence[Tensor]) -> npt.NDArray[np.int64]:
    """Codes of n-grams of all views below each other, padded with -1."""
    width = max([1, *(part.shape[1] for part in symbols)])
    padded = [np.pad(as_numpy(part), ((0, 0), (0, width - part.shape[1])), constant_values=-1) for part in symbols]
    return np.concatenate([np.zeros((0, width), dtype=np.int64), *padded])


def joined(parts: Sequence[Tensor]) -> npt.NDArray[np.generic]:
    return np.concatenate([as_numpy(part) for part in parts]) if parts else np.zeros(0)
