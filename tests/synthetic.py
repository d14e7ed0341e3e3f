# SPDX-License-Identifier: Apache-2.0
"""Checks made up by hand, in the layout that ``pyro_ksd.results`` gives, for tests that must run without torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

MEANINGS = {
    "content-1": "single symbols",
    "content-2": "pairs of neighbors",
    "content-3": "runs of 3 symbols",
    "start": "the first symbol",
    "length": "the length",
    "surprise": "the probability of the sequences",
    "skip": "pairs of symbols at distance 2 or 3",
    "position": "symbols by position modulo 6",
    "mirror": "symbols that equal their mirror image",
    "repeats": "runs of 4 or more equal symbols",
    "end": "the last symbol",
    "ends": "the first with the last symbol",
    "composition": "how uneven the symbols of a sequence are",
    "rests": "values of rests",
    "Hamming": "whole sequences",
}
"""What views look at. The first five are those of a made-up check."""
VIEWS = list(MEANINGS)[:5]
TEN_VIEWS = list(MEANINGS)[:10]
KINDS = {name: name for name in MEANINGS} | {f"content-{t}": "ngram" for t in (1, 2, 3)}
KINDS |= {"rests": "feature", "Hamming": ""}
"""What the features of the views are."""
WEIGHTS = {f"content-{t}": 1 / 3 for t in (1, 2, 3)} | dict.fromkeys(("skip", "position", "mirror", "repeats"), 1 / 4)
"""Of the default views, where it is not 1."""
P_VALUES = {"content-1": 0.43, "content-2": 0.002, "content-3": 0.08, "start": 1.0, "length": 0.008}
SIZES = tuple(f"{name}{end}" for name in ("factor", "observed", "expected", "ratio") for end in ("", "_low", "_high"))
LENGTH_FEATURES = [
    "length",
    "spread of the length",
    "skewness of the length",
    "peakedness of the length",
    "even length",
]
PHONEMES = [f"phoneme-{name}" for name in ("AH0", "B", "CH", "D", "EH1", "F", "G", "IY2", "K", "<unknown>")]


def made_up_check(
    symbols: list[str] | None = None,
    *,
    num_sequences: int = 30,
    longest: int = 12,
    impossible: int = 0,
    gram: bool = True,
    p_value_overall: float = 0.004,
    tolerance: float | None = None,
    views: list[str] | None = None,
    seed: int = 0,
) -> xr.DataTree:
    """A check with five views of random numbers.

    ``content-2`` and ``length`` reject, the others do not; ``content-2`` names an n-gram.

    :param views: some of the :data:`MEANINGS`; none but ``content-2`` and ``length`` rejects.
    """
    symbols = list("abcd") if symbols is None else symbols
    random = np.random.default_rng(seed)
    views = VIEWS if views is None else views
    draws = 200
    size = len(symbols)
    total = num_sequences + impossible
    lengths = random.integers(1, longest + 1, total)
    lengths[0] = longest
    inside = np.arange(longest) < lengths[:, None]
    tokens = np.where(inside, random.integers(0, size, (total, longest)), -1)
    kept = np.arange(impossible, total)  # the impossible ones come first
    attribution = random.normal(size=(len(views), num_sequences, longest + 1)) / num_sequences
    attribution[:, np.arange(longest + 1) > lengths[kept, None]] = np.nan
    contribution = np.nansum(attribution, -1)
    order = np.argsort(-contribution, axis=1, kind="stable")
    features = random.normal(size=(len(views), num_sequences, 3))
    view = {"view": np.array(views, dtype=object)}
    ksd = xr.Dataset(
        {
            "statistic": ("view", contribution.sum(1)),
            "p_value": ("view", [P_VALUES.get(name, 0.5) for name in views]),
            "p_value_overall": ((), p_value_overall),
            "meaning": ("view", np.array([MEANINGS[name] for name in views], dtype=object)),
            "feature_kind": ("view", np.array([KINDS[name] for name in views], dtype=object)),
            "weight": ("view", [WEIGHTS.get(name, 1.0) for name in views]),
            "foreign_share": ("view", np.linspace(0.0, 0.2, len(views))),
            "foreign_share_overall": ((), 0.0),
            "contribution": (("view", "sequence"), contribution),
            "shown_sequence": (("view", "shown"), kept[order]),
            "attribution": (("view", "shown", "position"), np.take_along_axis(attribution, order[..., None], 1)),
        },
        coords={**view, "sequence": kept, "shown": np.arange(num_sequences), "position": np.arange(longest + 1)},
        attrs={"kind": "parametric", "num_bootstrap": draws, "level": 0.05, "seed": 0},
    )
    if tolerance is not None:
        ksd = ksd.assign_attrs(tolerance=tolerance).assign(
            tolerance_p_value=("view", np.linspace(0.01, 0.9, len(views))),
            tolerance_p_value_overall=((), 0.3),
            discrepancy=("view", np.linspace(0.0, 0.1, len(views))),
            discrepancy_upper=("view", np.linspace(0.1, 0.2, len(views))),
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
    labels += ["^" + symbol for symbol in symbols] + LENGTH_FEATURES
    ngrams += [*((code,) for code in range(size)), *[()] * len(LENGTH_FEATURES)]
    names += ["start"] * size + ["length"] * len(LENGTH_FEATURES)
    others = [name for name in views if KINDS[name] and name not in VIEWS]
    labels += others
    ngrams += [()] * len(others)
    names += others
    mean = random.normal(size=len(labels))
    mean[names.index("content-2")] = -2.0
    ngram = xr.Dataset(
        {
            "view_name": ("ngram", np.array(names, dtype=object)),
            "label": ("ngram", np.array(labels, dtype=object)),
            "mean": ("ngram", mean),
            "share": ("ngram", mean**2 - 0.5),
            "z": ("ngram", 3 * mean),
            "p_value": ("ngram", np.exp(-2 * np.abs(mean))),
            "symbol": (("ngram", "place"), _padded(ngrams)),
            **{name: ("ngram", np.full(len(labels), np.nan)) for name in SIZES},
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
    data = xr.Dataset(
        {
            "token": (("sequence", "position"), tokens, {"alphabet": json.dumps(symbols)}),
            "length": ("sequence", lengths),
        },
        coords={"sequence": np.arange(total), "position": np.arange(longest)},
    )
    groups = {"ksd": ksd, "ksd_null": null, "ksd_ngram": ngram, "ksd_edit": edit, "ksd_data": data}
    numbers = _numbers(tokens[kept], symbols)
    coords = {"sequence": kept, "symbol": np.array(symbols, dtype=object)}
    groups["observed_data"] = xr.Dataset(
        {name: (("sequence", "symbol")[: own.ndim], own) for name, own in numbers.items()}, coords
    )
    chosen = random.integers(0, len(kept), (1, 60, num_sequences))
    groups["posterior_predictive"] = _replicated(numbers, chosen, symbols, kept, "given")
    shown = data.isel(sequence=slice(0, min(total, 20)))
    groups["ksd_draws"] = shown.assign_coords(sequence=np.arange(shown.sizes["sequence"]))
    if "length" in views:
        shares = np.bincount(lengths[kept]) / len(kept)
        expected = np.full(len(shares) + 3, 1 / (len(shares) + 2))
        expected[0] = 0.0
        groups["ksd_length"] = xr.Dataset(
            {"observed": ("length", np.pad(shares, (0, 3))), "expected": ("length", expected)},
            coords={"length": np.arange(len(expected))},
            attrs={"num_drawn": 1000},
        )
    if tolerance is not None:
        rows = [(name, label, *[np.nan] * 3, False, False) for name, label in zip(names, labels, strict=True)]
        own = [row for row in rows if KINDS[row[0]] == "ngram" and row[0] in views]
        groups["ksd_factor"] = factor_group(own, ngrams[: len(own)])
    if impossible:
        groups["ksd"]["p_value_possible"] = groups["ksd"]["p_value_overall"]
        groups["ksd"]["p_value_overall"] = ((), 0.0)
        groups["ksd"].attrs["kind_overall"] = "impossible"
        groups["ksd_impossible"] = xr.Dataset(
            {"site": ("sequence", np.array([f"x_{row}" for row in range(impossible)], dtype=object))},
            coords={"sequence": np.arange(impossible)},
        )
    return xr.DataTree.from_dict(groups)


def made_up_posterior_check(*, better: float = 0.0, seed: int = 0) -> xr.DataTree:
    """A posterior predictive check with two chains of 100 draws.

    :param better: by how much the log-likelihood of each sequence is larger.
    """
    chains, draws, size = 2, 100, 30
    random = np.random.default_rng(seed)
    check = made_up_check(num_sequences=size, gram=False)
    groups = {name: check[name].to_dataset() for name in check.children if name not in ("ksd_draws", "ksd_length")}
    views = groups["ksd"]["view"]
    labels = {"chain": np.arange(chains), "draw": np.arange(draws)}
    difference = random.normal(1, size=(chains, draws, len(views)))
    statistics = {"realized": difference, "replicated": 0 * difference, "difference": difference}
    groups["ksd_ppc"] = xr.Dataset(
        {name: (("chain", "draw", "view"), values) for name, values in statistics.items()},
        coords={**labels, "view": views},
    )
    rate = random.gamma(9, 0.3, (chains, draws))
    groups["posterior"] = xr.Dataset({"rate": (("chain", "draw"), rate)}, labels)
    worth = better - random.gamma(4, 1, size) - 0.01 * (rate[..., None] - 3) ** 2
    groups["log_likelihood"] = xr.Dataset(
        {"token": (("chain", "draw", "sequence"), worth)}, {**labels, "sequence": np.arange(size)}
    )
    numbers = {name: own.values for name, own in groups["observed_data"].data_vars.items()}
    chosen = random.integers(0, size, (chains, draws, size))
    groups["posterior_predictive"] = _replicated(numbers, chosen, list("abcd"), np.arange(size), "posterior")
    for name in ("ksd", "ksd_null", "ksd_ppc"):
        groups[name].attrs["kind"] = "posterior predictive"
    return xr.DataTree.from_dict(groups)


def _numbers(tokens: Any, symbols: list[str]) -> dict[str, Any]:
    """What a check keeps of sequences beside the sequences, by loops."""
    rows = [[code for code in row if code >= 0] for row in tokens.tolist()]
    counts = [[row.count(code) for code in range(len(symbols))] for row in rows]
    found = {"length": [len(row) for row in rows], "distinct_symbols": [len(set(row)) for row in rows]}
    return {name: np.array(own, dtype=np.int16) for name, own in {**found, "symbol_count": counts}.items()}


def _replicated(numbers: dict[str, Any], chosen: Any, symbols: list[str], kept: Any, parameters: str) -> xr.Dataset:
    """Replicated data that are sequences of the data, drawn at random.

    :param chosen: their rows, ``[chains, draws, N]``.
    """
    chains, draws, _ = chosen.shape
    coords = {"chain": np.arange(chains), "draw": np.arange(draws), "sequence": kept}
    dims = ("chain", "draw", "sequence", "symbol")
    return xr.Dataset(
        {name: (dims[: own.ndim + 2], own[chosen]) for name, own in numbers.items()},
        {**coords, "symbol": np.array(symbols, dtype=object)},
        {"parameters": parameters, "sample_dims": ["chain", "draw"]},
    )


def check_with(
    features: Sequence[tuple[Any, ...]],
    p_values: dict[str, float],
    overall: float = 0.004,
    symbols: list[str] | None = None,
    lengths: tuple[dict[int, float], dict[int, float]] | None = None,
) -> xr.DataTree:
    """A check with given features and p-values; all other views have the p-value 0.5.

    :param features: view, label, z and p; and, where they are known, the factor and the ends of its interval.
    :param p_values: of the views; those that are none of the five of a made-up check come after them.
    :param symbols: the alphabet, each symbol one letter.
    :param lengths: the shares observed and the probabilities expected of some lengths.
    """
    symbols = list("abcde") if symbols is None else symbols
    views = [*VIEWS, *(name for name in p_values if name not in VIEWS)]
    check = made_up_check(symbols, p_value_overall=overall, views=views)
    rows = [(*row, *[np.nan] * (7 - len(row))) for row in features]
    names, labels, *numbers = (np.array(column, dtype=object) for column in zip(*rows, strict=True))
    z, p, factor, low, high = (column.astype(float) for column in numbers)
    ngrams = [_codes(name, label, symbols) for name, label in zip(names, labels, strict=True)]
    variables = {"view_name": names, "label": labels, "mean": z / 10, "share": z**2, "z": z, "p_value": p}
    variables |= {name: np.full(len(z), np.nan) for name in SIZES}
    variables |= {"factor": factor, "factor_low": low, "factor_high": high}
    ngram = xr.Dataset(
        {name: ("ngram", values) for name, values in variables.items()}
        | {"symbol": (("ngram", "place"), _padded(ngrams))},
        coords={"ngram": np.arange(len(names)), "place": np.arange(3)},
    )
    ksd = check["ksd"].to_dataset()
    ksd["p_value"] = ("view", [p_values.get(name, 0.5) for name in views])
    groups = {name: group.to_dataset() for name, group in check.children.items()}
    groups |= {"ksd": ksd, "ksd_ngram": ngram}
    if lengths is not None:
        groups["ksd_length"] = length_group(*lengths)
    return xr.DataTree.from_dict(groups)


def factor_group(rows: Sequence[tuple[Any, ...]], ngrams: Sequence[tuple[int, ...]]) -> xr.Dataset:
    """The group ``ksd_factor`` of some n-grams.

    :param rows: view, label, the factor and the ends of its interval, whether it is within the tolerance, or outside.
    :param ngrams: their codes.
    """
    kinds = {"view_name": object, "label": object, "factor": float, "factor_low": float, "factor_high": float}
    kinds |= {"within": bool, "outside": bool}
    columns = {
        name: ("ngram", np.array(values, dtype=kind))
        for (name, kind), values in zip(kinds.items(), zip(*rows, strict=True), strict=True)
    }
    return xr.Dataset(
        columns | {"symbol": (("ngram", "place"), _padded(list(ngrams)))},
        coords={"ngram": np.arange(len(rows)), "place": np.arange(3)},
        attrs={"tolerance": 1.25},
    )


def length_group(observed: dict[int, float], expected: dict[int, float]) -> xr.Dataset:
    """The group ``ksd_length`` of the shares and the probabilities of some lengths."""
    length = np.arange(max([*observed, *expected]) + 1)
    shares = {
        name: ("length", np.array([of.get(one, 0.0) for one in length.tolist()]))
        for name, of in {"observed": observed, "expected": expected}.items()
    }
    return xr.Dataset(shares, coords={"length": length}, attrs={"num_drawn": 1000})


def _codes(name: str, label: str, symbols: list[str]) -> tuple[int, ...]:
    """The codes of the symbols of an n-gram or a start; those of other features matter to no test."""
    if KINDS[name] not in ("ngram", "start"):
        return ()
    return tuple([*symbols, "$"].index(symbol) for symbol in label[KINDS[name] == "start" :])


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
    ksd = check["ksd"]
    attribution = ksd["attribution"].values ** 2
    share = np.nansum(attribution, -1)
    rows = np.searchsorted(ksd["sequence"].values, ksd["shown_sequence"].values)
    contribution = np.empty_like(share)
    np.put_along_axis(contribution, rows, share, 1)
    order = np.argsort(-share, axis=1, kind="stable")
    return changed(
        check,
        "ksd",
        attribution=np.take_along_axis(attribution, order[..., None], 1),
        shown_sequence=np.take_along_axis(ksd["shown_sequence"].values, order, 1),
        contribution=contribution,
        statistic=share.sum(1),
    )


def made_up_monitor(*, clear: bool = True, changes: bool = False) -> xr.DataTree:
    """What a monitor of a stream has found: pairs that are too rare under the model."""
    attributes: dict[str, Any] = {"run_length": 10_000} if changes else {}
    monitor = xr.Dataset(
        {
            "num_sequences": ("look", [100, 250]),
            "log_evidence": (("look", "view"), [[0.5, 0.1, 0.0], [9.0, -0.4, 0.2]]),
            "log_evidence_overall": ("look", [0.2, 7.9 if clear else 2.0]),
            "p_value": ("view", [1e-4, 0.9, 0.8]),
        },
        coords={"look": [0, 1], "view": np.array(["content-2", "surprise", "length"], dtype=object)},
        attrs={
            "kind": "monitor",
            "seed": 0,
            "level": 0.05,
            **attributes,
            "first_clear": 180 if clear else -1,
            "num_impossible": 0,
            "most_evidence": 7.9 if clear else 2.0,
        },
    )
    features = xr.Dataset(
        {
            "view_name": ("feature", np.array(["content-2"] * 3 + ["surprise", "length"], dtype=object)),
            "label": ("feature", np.array(["aa", "ab", "ba", "log-probability", "length 3"], dtype=object)),
            "z": ("feature", [-6.0, 5.0, 0.3, 2.0, 7.0]),
            "num_compared": ("feature", [4, 4, 4, 1, 92]),
        },
        coords={"feature": np.arange(5)},
    )
    groups = {"ksd_monitor": monitor, "ksd_monitor_feature": features}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"schema_version": 2}), **groups})
