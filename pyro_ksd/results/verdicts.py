# SPDX-License-Identifier: Apache-2.0
"""The verdict of a check in one sentence, and what each view found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

from pyro_ksd.results.containers import alphabet_of, dataset, has_group
from pyro_ksd.results.labels import spelled
from pyro_ksd.results.p_values import p_text
from pyro_ksd.results.view_choice import feature_kind, view_names, worst_first

_MOST_NAMED = 3  # features that a sentence can bear


def verdict(check: Any) -> str:
    """The result in one sentence, with what the model makes too often or too rarely.

    In names of n-grams ``$`` is the end of a sequence. Of several views of n-grams that reject, the worst one
    speaks: what is wrong with pairs makes single symbols and triples wrong, too.

    :param check: what :func:`pyro_ksd.ksd_check` gave, or what was loaded from its file.

    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]  # this walk never stands still
    >>> check = ksd_check(random_walk(3), data, num_bootstrap=100, progress=False)
    >>> verdict(check)
    "the model does not fit (p = 0.040): it makes 'bb' too rarely"
    """
    ksd = dataset(check, "ksd")
    p = float(ksd["p_value_overall"])
    level = float(ksd.attrs["level"])
    sentence = f"{_impossible(check)}the model "
    if p > level:
        return f"{sentence}may fit: the check found nothing wrong ({p_text(p)}){_too_few_draws(ksd)}"
    return f"{sentence}does not fit ({p_text(p)}): {'; '.join(_reasons(check))}"


def _too_few_draws(ksd: xr.Dataset) -> str:
    """What to add where a fault that only one view sees could not have been found.

    Draws that are the most extreme ones of other views count as no less extreme than data that are so in one view. The
    overall p-value is then up to ``V / (B + 1)``.
    """
    draws = int(ksd.attrs["num_bootstrap"])
    level = float(ksd.attrs["level"])
    needed = math.ceil(ksd.sizes["view"] / level - 1e-9) - 1
    if draws >= needed or ksd.attrs["kind"] == "posterior predictive":
        return ""
    return f"; but {draws} draws are too few to tell, take num_bootstrap={needed} or more"


def _impossible(check: Any) -> str:
    """The beginning of the sentence, if the model calls some sequences impossible."""
    if not has_group(check, "ksd_impossible"):
        return ""
    found = dataset(check, "ksd_impossible")
    total = dataset(check, "observed_data").sizes["sequence"]
    shown = [
        f"{row} at site {site}" if site else str(row)
        for row, site in zip(found["sequence"].values[:3].tolist(), found["site"].values[:3].tolist(), strict=True)
    ]
    count = found.sizes["sequence"]
    dots = ", ..." if count > len(shown) else ""
    return (
        f"the model cannot have made {count} of the {total} sequences (number {', '.join(shown)}{dots}), "
        "to which it gives probability zero; of the others: "
    )


def _reasons(check: Any) -> list[str]:
    """What the views say that reject the model; of views of n-grams only the worst that can name some."""
    ksd = dataset(check, "ksd")
    finding = {name: view_finding(check, ksd.sel(view=name)) for name in view_names(check)}
    rejecting = [name for name, words in finding.items() if words]
    of_ngrams = [name for name in rejecting if feature_kind(ksd.sel(view=name)) == "ngram"]
    if of_ngrams:
        order = worst_first(check, of_ngrams)
        naming = [name for name in order if finding[name] != _unnamed(ksd.sel(view=name))]
        silent = set(of_ngrams) - {(naming or order)[0]}
        rejecting = [name for name in rejecting if name not in silent]
    return [finding[name] for name in rejecting]


def view_finding(check: Any, one: xr.Dataset) -> str:
    """What a view that rejects the model says, else nothing.

    :param one: the ``ksd`` group at one view.
    """
    level = float(one.attrs["level"])
    kind = feature_kind(one)
    if float(one["p_value"]) > level:
        return ""
    if not kind:
        return _unnamed(one)
    ngrams = dataset(check, "ksd_ngram")
    own = ngrams.isel(ngram=ngrams["view_name"].values == one["view"].item())
    if not own.sizes["ngram"]:  # none of its features varies
        return _unnamed(one)
    if kind == "length":
        return f"it makes sequences too {'long' if float(own['mean'][0]) > 0 else 'short'}"
    if kind == "feature" and own.sizes["ngram"] == 1:  # then what the view says, the feature says
        return f"it makes {own['label'].item()!r} too {'large' if own['mean'].item() > 0 else 'small'}"
    told = own.isel(ngram=own["p_value"].values <= level)
    told = told.isel(ngram=np.lexsort((-np.abs(told["z"].values), told["p_value"].values)))
    verb = "starts with" if kind == "start" else "makes"
    less, more = ("too small", "too large") if kind == "feature" else ("too rarely", "too often")
    directions = []
    for words, chosen in ((less, told["z"].values < 0), (more, told["z"].values > 0)):
        labels = _labels(check, told.isel(ngram=chosen), kind)
        if labels:
            directions.append(f"{_quoted(labels)} {words}")
    return f"it {verb} {listed(directions)}" if directions else _unnamed(one)


def _unnamed(one: xr.Dataset) -> str:
    """What a view says that rejects the model, but can blame no feature for it."""
    words = f"it gets {one['meaning'].item()} wrong"
    return f"{words} (no single one stands out)" if feature_kind(one) == "ngram" else words


def _labels(check: Any, features: xr.Dataset, kind: str) -> list[str]:
    """The labels of features, as a sentence has them: it says itself that a start is one."""
    if kind == "start":
        return [spelled(ngram, alphabet_of(check)) for ngram in features["symbol"].values.tolist()]
    return [str(label) for label in features["label"].values]


def _quoted(labels: list[str]) -> str:
    shown = [repr(label) for label in labels[:_MOST_NAMED]]
    return f"{', '.join(shown)}, ..." if len(labels) > _MOST_NAMED else listed(shown)


def listed(parts: list[str]) -> str:
    """Words one after the other, with "and" before the last."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
