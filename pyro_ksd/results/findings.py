# SPDX-License-Identifier: Apache-2.0
"""What a view that rejects the model found, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pyro_ksd.results.containers import alphabet_of, dataset, has_group, num_sequences
from pyro_ksd.results.labels import spelled
from pyro_ksd.results.view_choice import feature_kind, speaking_views

_MOST_NAMED = 3  # features that a sentence can bear
_DIGITS = (2, 3, 4)  # of a factor: as few as tell it from the ends of its interval
_SURE = 3.0  # standard errors of a difference of lengths before its direction is told
_SURE_OF_PARITY = 4.0  # the same for the share of even lengths, which often differs by nothing but chance
_NEGLIGIBLE = 1e-4  # the probability of the last length of a tail, after which hardly any are missing
_MIRRORED = "symbols that equal their mirror image (first with last, second with last but one)"
_SCALAR = {
    "surprise": (
        "the data are more probable than the model's own sequences",
        "the data are less probable than the model's own sequences",
    ),
    "mirror": (
        f"{_MIRRORED} are too rare under the model",
        f"{_MIRRORED} are too frequent under the model",
    ),
    "repeats": (
        "long runs of one symbol are too rare under the model",
        "long runs of one symbol are too frequent under the model",
    ),
    "composition": (
        "sequences of few different symbols are too rare under the model",
        "sequences of few different symbols are too frequent under the model",
    ),
}
"""Words for views with one feature: if it is too small and if it is too large under the model."""

_COUNTED = ("ngram", "start", "end", "ends", "skip", "position", "grouped")
"""Kinds of features that are numbers of occurrences."""

_AS = {"start": " as first symbols", "end": " as last symbols", "ends": " as first and last symbols"}
_AS_ONE = {"start": " as the first symbol", "end": " as the last symbol", "ends": " as the first and the last symbol"}

_AT = {"start": " at the start", "end": " at the end"}
"""Of features with several symbols."""


def view_finding(check: Any, one: xr.Dataset) -> str:
    """What a view found; nothing if it is not among the :func:`~pyro_ksd.results.view_choice.speaking_views`.

    :param one: the ``ksd`` group at one view.
    """
    level = float(one.attrs["level"])
    if one["view"].item() not in speaking_views(check):
        return ""
    kind = feature_kind(one)
    if not kind:  # other tests than this package's own have no features at all
        return unnamed(one)
    own = features_of(check, one)
    if not own.sizes["ngram"]:  # none of them varies
        return unnamed(one)
    if kind in _SCALAR:
        return _SCALAR[kind][int(own["mean"][0] > 0)]
    if kind == "length":
        return _length_finding(check, own, level) or unnamed(one)
    if kind == "feature" and own.sizes["ngram"] == 1:  # then what the view says, the feature says
        size = "large" if own["mean"].item() > 0 else "small"
        return f"{own['label'].item()!r} is too {size} under the model"
    told = own.isel(ngram=stands_out(own, level))
    told = told.isel(ngram=np.lexsort((-np.abs(told["z"].values), told["p_value"].values)))
    words = direction_words(kind)
    chosen = [told["z"].values < 0, told["z"].values > 0]
    found = []
    for word, which in zip(words, chosen, strict=True):
        if which.any():
            uneven = kind == "ngram" and all_agree(check, own)
            found.append(_uneven(own, word) if uneven else _named(check, told.isel(ngram=which), kind, word))
    return listed(found) if found else unnamed(one)


def direction_words(kind: str) -> tuple[str, str]:
    """What the features of a kind are too ..., if their scores are below zero and above."""
    return ("rare", "frequent") if kind in _COUNTED else ("small", "large")


def stands_out(features: xr.Dataset, level: float) -> NDArray[np.bool_]:
    """Which features of a view that rejects are named one by one; ``[ngram]``."""
    chosen: NDArray[np.bool_] = (features["p_value"].values <= level) & _agrees(features)
    return chosen


def unnamed(one: xr.Dataset) -> str:
    """What a view says that rejects the model, but can blame no feature for it."""
    words = f"the model gets {one['meaning'].item()} wrong"
    return f"{words} (no single one stands out)" if feature_kind(one) in ("ngram", "skip", "position") else words


def listed(parts: list[str], word: str = "and") -> str:
    """Words one after the other, with "and" before the last, or another word."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def features_of(check: Any, one: xr.Dataset) -> xr.Dataset:
    """The features of a view."""
    ngrams = dataset(check, "ksd_ngram")
    return ngrams.isel(ngram=ngrams["view_name"].values == one["view"].item())


def _named(check: Any, features: xr.Dataset, kind: str, word: str) -> str:
    """Some features, all of them too rare or all of them too frequent, as a sentence."""
    labels = [repr(label) for label in _labels(check, features, kind)]
    shown = [f"{label}{factor}" for label, factor in zip(labels, _factors(features), strict=True)][:_MOST_NAMED]
    rest = len(labels) > _MOST_NAMED
    subject = f"{', '.join(shown)}, ..." if rest else listed(shown)
    is_one = len(labels) == 1
    place = _AS_ONE.get(kind, "") if is_one else _AS.get(kind, "")
    if kind in _AT and (features["symbol"].values >= 0).sum(1).max() > 1:
        place = _AT[kind]
    return f"{subject} {'is' if is_one else 'are'} too {word}{place} under the model"


def all_agree(check: Any, features: xr.Dataset) -> bool:
    """Whether all n-grams that there can be are too rare, or all of them too frequent."""
    widths = np.unique((features["symbol"].values >= 0).sum(1)).tolist()
    size = len(alphabet_of(check))
    are_all = features.sizes["ngram"] == sum(size**width for width in widths)
    return size > 1 and are_all and len(np.unique(np.sign(features["z"].values))) == 1


def _uneven(features: xr.Dataset, word: str) -> str:
    """What it means that all n-grams are too rare, or too frequent.

    The feature of an n-gram is the square root of its share in the sequence. The shares of a sequence add up to 1, so
    their roots can all be too small only if the model's sequences have fewer different n-grams, or less even shares,
    than sequences of the data that are as long.
    """
    widths = np.unique((features["symbol"].values >= 0).sum(1)).tolist()
    runs = f"runs of {widths[0]}" if len(widths) == 1 else f"runs of {widths[0]} to {widths[-1]}"
    noun = {"runs of 1": "symbols", "runs of 2": "pairs"}.get(runs, runs)
    other = "frequent" if word == "rare" else "rare"
    return f"sequences with few different {noun} for their length are too {other} under the model"


def _labels(check: Any, features: xr.Dataset, kind: str) -> list[str]:
    """The labels of features, as a sentence has them: it says itself that a start is one."""
    if kind == "start":
        return [spelled(ngram, alphabet_of(check)) for ngram in features["symbol"].values.tolist()]
    return [str(label) for label in features["label"].values]


def _agrees(features: xr.Dataset) -> NDArray[np.bool_]:
    """Whether the factor of a feature, where it is known, says the same as its score; ``[ngram]``.

    The score compares shares of the n-grams of a sequence, which change with those of other n-grams as well. Of the
    interval of the factor the shorter side counts: the other may be longer only for allowing for what was selected.
    """
    if "factor" not in features:
        return np.ones(features.sizes["ngram"], dtype=bool)
    with np.errstate(divide="ignore"):  # the lower end may be 0
        size, low, high = (np.log(features[name].values) for name in ("factor", "factor_low", "factor_high"))
    is_sure = np.abs(size) > np.minimum(size - low, high - size)
    is_same = np.sign(size) == -np.sign(features["z"].values)
    agrees: NDArray[np.bool_] = np.isnan(size) | (is_sure & is_same)
    return agrees


def _factors(features: xr.Dataset) -> list[str]:
    """How large each fault is, where that is known well enough to have a direction."""
    if "factor" not in features:
        return [""] * features.sizes["ngram"]
    numbers = [features[name].values.tolist() for name in ("factor", "factor_low", "factor_high")]
    return [_factor_text(*row) for row in zip(*numbers, strict=True)]


def _factor_text(factor: float, low: float, high: float) -> str:
    if math.isnan(factor) or low <= 1 <= high:
        return ""
    shown = [""]
    for digits in _DIGITS:
        shown = [_number(value, digits) for value in (factor, low, high)]
        if len({*shown, "1"}) == 4:  # all of them differ from each other and from 1
            break
    return f" (weight × {shown[0]}, {shown[1]} to {shown[2]})"


def _number(factor: float, digits: int) -> str:
    """A factor with some digits, or as a whole number."""
    return f"{factor:.{digits}g}" if factor < 99.5 else f"{factor:.0f}"


def _length_finding(check: Any, own: xr.Dataset, level: float) -> str:
    """What is wrong with the length.

    A direction is told if a feature stands out in it, and the lengths themselves differ in it by three standard errors,
    the shares of even lengths by four: features compare ranks, whose means may differ although those of the lengths do
    not. The lengths of a model that was not sampled are known from its ratios, which may be wrong where they depend on
    symbols, too: a direction must be the same with smaller and with larger ratios. If some long ones are missing, they
    would make the model longer, and more variable.
    """
    if not has_group(check, "ksd_length"):
        return ""
    lengths = dataset(check, "ksd_length")
    data = _Moments.of(lengths["observed"], num_sequences(check, "ksd"))
    num_drawn = int(lengths.attrs.get("num_drawn", 0))
    model = _Moments.of(lengths["expected"], num_drawn or (math.inf if "expected_low" in lengths else data.size))
    told = own.isel(ngram=own["p_value"].values <= level)
    signs = dict(zip(told["label"].values.tolist(), np.sign(told["mean"].values).tolist(), strict=True))
    surplus = _surpluses(model, data)
    has_numbers = num_drawn > 0
    if not num_drawn:
        surplus, has_numbers = _certain(surplus, lengths, data)
    agreed = {name: sign for name, sign in surplus.items() if sign and sign == signs.get(name)}
    about = "" if num_drawn else "about "
    found = []
    if "length" in agreed:
        numbers = f" (mean {about}{model.mean:.3g}, in the data {data.mean:.3g})" if has_numbers else ""
        found.append(f"too {'long' if agreed['length'] > 0 else 'short'} under the model{numbers}")
    if "spread of the length" in agreed:
        deviations = (model.variance**0.5, data.variance**0.5)
        word = "variable" if agreed["spread of the length"] > 0 else "regular"
        numbers = (
            f" (standard deviation {about}{{:.3g}}, in the data {{:.3g}})".format(*deviations) if has_numbers else ""
        )
        found.append(f"too {word} under the model{numbers}")
    clauses = [f"lengths are {listed(found)}"] if found else []
    if "even length" in agreed:
        word = "frequent" if agreed["even length"] > 0 else "rare"
        numbers = f" ({about}{100 * model.even:.0f} %, in the data {100 * data.even:.0f} %)" if has_numbers else ""
        clauses.append(f"even lengths are too {word} under the model{numbers}")
    return listed(clauses) if clauses else "the model gets the length distribution wrong"


def _surpluses(model: _Moments, data: _Moments) -> dict[str, float]:
    """In which direction the lengths of a model differ from those of the data, by feature; 0 if in none for sure."""
    even_errors = (model.even_error, replace(model, size=data.size).even_error)
    return {
        "length": _surplus(model.mean - data.mean, model.mean_error, data.mean_error),
        "spread of the length": _surplus(model.variance - data.variance, model.variance_error, data.variance_error),
        "even length": _surplus(model.even - data.even, *even_errors, sure=_SURE_OF_PARITY),
    }


def _certain(surplus: dict[str, float], lengths: xr.Dataset, data: _Moments) -> tuple[dict[str, float], bool]:
    """The directions that hold however wrong the ratios of a model without draws are, and whether to show sizes.

    Where nothing is known beyond the data, as in the files of early versions, these are only what further lengths would
    make more true.
    """
    growing = {name: sign for name, sign in surplus.items() if name != "even length" and sign > 0}
    if "expected_low" not in lengths:
        return {name: sign for name, sign in surplus.items() if name in {"even length", *growing} - {"length"}}, False
    others = [_surpluses(_Moments.of(lengths[name], math.inf), data) for name in ("expected_low", "expected_high")]
    same = {name: sign for name, sign in surplus.items() if all(other[name] == sign for other in others)}
    is_complete = bool(lengths.attrs["complete"])
    if is_complete and _has_all(lengths):
        return same, True
    return {name: sign for name, sign in same.items() if name in growing}, is_complete


def _has_all(lengths: xr.Dataset) -> bool:
    """Whether hardly any lengths are missing even if ratios are larger: there are none, or they are improbable."""
    last = int(np.flatnonzero(lengths["expected"].values)[-1])
    estimated, largest = (float(lengths[name][last]) for name in ("expected", "expected_high"))
    return estimated >= _NEGLIGIBLE or largest < _NEGLIGIBLE


@dataclass(frozen=True)
class _Moments:
    """Some moments of a length distribution, with the standard errors of their estimates from ``size`` sequences.

    An infinite size is that of moments which are known.
    """

    size: float
    mean: float
    variance: float
    fourth: float
    even: float

    @staticmethod
    def of(shares: xr.DataArray, size: float) -> _Moments:
        p = shares.values
        length = shares["length"].values
        mean = float(p @ length)
        variance, fourth = (float(p @ (length - mean) ** power) for power in (2, 4))
        return _Moments(size, mean, variance, fourth, float(p @ (length % 2 == 0)))

    @property
    def mean_error(self) -> float:
        return math.sqrt(self.variance / self.size)

    @property
    def variance_error(self) -> float:
        return math.sqrt(max(self.fourth - self.variance**2, 0.0) / self.size)

    @property
    def even_error(self) -> float:
        return math.sqrt(max(self.even * (1 - self.even), 0.0) / self.size)


def _surplus(difference: float, *errors: float, sure: float = _SURE) -> float:
    """The sign of a difference, 0 if it is not larger than some standard errors."""
    return float(np.sign(difference)) if abs(difference) > sure * math.hypot(*errors) else 0.0
