# SPDX-License-Identifier: Apache-2.0
"""Checks made up by hand, in the layout of ``pyro_ksd.results.groups``, for tests that must run without torch."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

MEANINGS = {
    "content-1": "single symbols",
    "content-2": "pairs of neighbors",
    "content-3": "runs of 3 symbols",
    "start": "the first symbol",
    "length": "the length",
}
VIEWS = list(MEANINGS)
PHONEMES = [f"phoneme-{name}" for name in ("AH0", "B", "CH", "D", "EH1", "F", "G", "IY2", "K", "<unknown>")]


def made_up_check(
    symbols: list[str] | None = None,
    *,
    num_sequences: int = 30,
    longest: int = 12,
    impossible: int = 0,
    gram: bool = True,
    p_value_overall: float = 0.004,
    seed: int = 0,
) -> xr.DataTree:
    """A check with the default views of random numbers; ``content-2`` and ``length`` reject, the others do not."""
    symbols = list("abcd") if symbols is None else symbols
    random = np.random.default_rng(seed)
    views, draws, size = VIEWS, 200, len(symbols)
    total = num_sequences + impossible
    lengths = random.integers(1, longest + 1, total)
    lengths[0] = longest
    inside = np.arange(longest) < lengths[:, None]
    tokens = np.where(inside, random.integers(0, size, (total, longest)), -1)
    kept = np.arange(impossible, total)  # the impossible ones come first
    attribution = random.normal(size=(len(views), num_sequences, longest + 1)) / num_sequences
    attribution[:, np.arange(longest + 1) > lengths[kept, None]] = np.nan
    contribution = np.nansum(attribution, -1)
    features = random.normal(size=(len(views), num_sequences, 3))
    view = {"view": np.array(views, dtype=object)}
    ksd = xr.Dataset(
        {
            "statistic": ("view", contribution.sum(1)),
            "p_value": ("view", [0.43, 0.002, 0.08, 1.0, 0.03]),
            "p_value_overall": ((), p_value_overall),
            "meaning": ("view", np.array(list(MEANINGS.values()), dtype=object)),
            "feature_kind": ("view", np.array([*["ngram"] * 3, "start", "length"], dtype=object)),
            "contribution": (("view", "sequence"), contribution),
            "attribution": (("view", "sequence", "position"), attribution),
        },
        coords={**view, "sequence": kept, "position": np.arange(longest + 1)},
        attrs={"kind": "parametric", "num_bootstrap": draws, "level": 0.05, "seed": 0},
    )
    if gram:
        grams = features @ features.transpose(0, 2, 1)
        ksd = ksd.assign_coords(sequence_bis=kept).assign(gram=(("view", "sequence", "sequence_bis"), grams))
    null = xr.Dataset(
        {
            "ksd": (("chain", "draw", "view"), random.normal(size=(1, draws, len(views))) ** 2 - 1),
            "extreme": (("chain", "draw", "view"), random.gamma(9, 0.3, size=(1, draws, len(views)))),
        },
        coords={"chain": [0], "draw": np.arange(draws), **view},
        attrs={"kind": "parametric", "sample_dims": ["chain", "draw"]},
    )
    names, labels, ngrams = [], [], []
    separator = "" if all(len(symbol) == 1 for symbol in symbols) else " "
    for length in (1, 2, 3):
        drawn = {tuple(random.integers(0, size, length).tolist()) for _ in range(40)}
        ordered = sorted((separator.join(symbols[code] for code in codes), codes) for codes in drawn)
        labels += [label for label, _ in ordered]
        ngrams += [codes for _, codes in ordered]
        names += [f"content-{length}"] * len(drawn)
    labels += ["^" + symbol for symbol in symbols] + ["length"]
    ngrams += [*((code,) for code in range(size)), ()]
    names += ["start"] * size + ["length"]
    mean = random.normal(size=len(labels))
    ngram = xr.Dataset(
        {
            "view_name": ("ngram", np.array(names, dtype=object)),
            "label": ("ngram", np.array(labels, dtype=object)),
            "mean": ("ngram", mean),
            "share": ("ngram", mean**2 - 0.5),
            "z": ("ngram", 3 * mean),
            "p_value": ("ngram", np.exp(-2 * np.abs(mean))),
            "symbol": (("ngram", "place"), _padded(ngrams)),
        },
        coords={"ngram": np.arange(len(labels)), "place": np.arange(3)},
    )
    count = 10 * len(views)
    owner = random.integers(0, num_sequences, count)
    edit = xr.Dataset(
        {
            "view_name": ("edit", np.repeat(np.array(views, dtype=object), 10)),
            "sequence_index": ("edit", kept[owner]),
            "position_index": ("edit", random.integers(0, lengths[kept][owner])),
            "operation": ("edit", np.array([f"replace {symbols[0]!r} by {symbols[1]!r}"] * count, dtype=object)),
            "share": ("edit", np.sort(random.normal(size=count))[::-1]),
        },
        coords={"edit": np.arange(count)},
    )
    observed = xr.Dataset(
        {
            "token": (("sequence", "position"), tokens, {"alphabet": json.dumps(symbols)}),
            "length": ("sequence", lengths),
        },
        coords={"sequence": np.arange(total), "position": np.arange(longest)},
    )
    groups = {"ksd": ksd, "ksd_null": null, "ksd_ngram": ngram, "ksd_edit": edit, "observed_data": observed}
    if impossible:
        groups["ksd_impossible"] = xr.Dataset(
            {"site": ("sequence", np.array([f"x_{row}" for row in range(impossible)], dtype=object))},
            coords={"sequence": np.arange(impossible)},
        )
    return xr.DataTree.from_dict(groups)


def check_with(
    features: list[tuple[str, str, float, float]],
    p_values: dict[str, float],
    overall: float = 0.004,
    symbols: list[str] | None = None,
) -> xr.DataTree:
    """A check with given features (view, label, z, p) and p-values; all other views have the p-value 0.5.

    :param symbols: the alphabet, each symbol one letter.
    """
    symbols = list("abcde") if symbols is None else symbols
    check = made_up_check(symbols, p_value_overall=overall)
    names, labels, scores, ps = (np.array(column, dtype=object) for column in zip(*features, strict=True))
    z = scores.astype(float)
    ngrams = [
        () if name == "length" else tuple(symbols.index(symbol) for symbol in label[name == "start" :])
        for name, label in zip(names, labels, strict=True)
    ]
    ngram = xr.Dataset(
        {
            "view_name": ("ngram", names),
            "label": ("ngram", labels),
            "mean": ("ngram", z / 10),
            "share": ("ngram", z**2),
            "z": ("ngram", z),
            "p_value": ("ngram", ps.astype(float)),
            "symbol": (("ngram", "place"), _padded(ngrams)),
        },
        coords={"ngram": np.arange(len(names)), "place": np.arange(3)},
    )
    ksd = check["ksd"].to_dataset()
    ksd["p_value"] = ("view", [p_values.get(name, 0.5) for name in VIEWS])
    groups = {name: group.to_dataset() for name, group in check.children.items()}
    return xr.DataTree.from_dict(groups | {"ksd": ksd, "ksd_ngram": ngram})


def _padded(ngrams: list[tuple[int, ...]]) -> np.ndarray:
    """The codes of n-grams of up to 3 symbols, padded with -1: ``[K, 3]``."""
    return np.array([[*codes, *[-1] * (3 - len(codes))] for codes in ngrams], dtype=np.int64)


def changed(check: xr.DataTree, group: str, **values: Any) -> xr.DataTree:
    """A copy of a check with other values of some variables."""
    groups = {name: check[name].to_dataset() for name in check.children}
    old = groups[group]
    groups[group] = old.assign({name: (old[name].dims, np.asarray(value)) for name, value in values.items()})
    return xr.DataTree.from_dict(groups)


def only(check: xr.DataTree, *views: str) -> xr.DataTree:
    """A check of some of the views only."""
    groups = {name: check[name].to_dataset() for name in check.children}
    for name in ("ksd", "ksd_null"):
        groups[name] = groups[name].sel(view=list(views))
    return xr.DataTree.from_dict(groups)


def misfit(check: xr.DataTree) -> xr.DataTree:
    """The statistics of a check that finds something: they are positive, and a few sequences make them up."""
    attribution = check["ksd"]["attribution"].values ** 2
    contribution = np.nansum(attribution, -1)
    parts = {"attribution": attribution, "contribution": contribution, "statistic": contribution.sum(1)}
    return changed(check, "ksd", **parts)
