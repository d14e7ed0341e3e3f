# SPDX-License-Identifier: Apache-2.0
"""A check in words: the table of the views, and the verdict in one sentence."""

from __future__ import annotations

import json
import math
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from pyro_ksd.containers import dataset, has_group
from pyro_ksd.selection import feature_kind, view_names, worst_first

_LOOKS: dict[str, Any] = {"float_format": "{:.3g}".format, "na_rep": "", "justify": "left", "index_names": False}
_KINDS = {
    "parametric": "p-values from {} draws of the parametric bootstrap",
    "wild": "p-values from {} draws of the wild bootstrap",
    "refit": "p-values from {} draws of the parametric bootstrap, refitted to each",
    "posterior predictive": "posterior predictive p-values from {} draws, not calibrated: small ones speak against it",
}
_FEW_SEQUENCES = 30  # of which the wild bootstrap, right in the limit of many, knows little
_MOST_CODES = 12  # that a sentence can list
_MOST_NAMED = 3  # features that a sentence can bear


def verdict(check: Any) -> str:
    """The result in one sentence, with what the model makes too often or too rarely.

    Of several views of n-grams that reject, the worst one speaks: what is wrong with pairs makes single symbols and
    triples wrong, too.

    :param check: what :func:`pyro_ksd.ksd_check` gave, or what was loaded from its file.

    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]  # this walk never stands still
    >>> check = ksd_check(random_walk(3), data, num_bootstrap=100, progress=False)
    >>> verdict(check)
    "the model does not fit (p = 0.040): it makes 'bb' too rarely"
    """
    ksd = dataset(check, "ksd")
    p, level = float(ksd["p_value_overall"]), float(ksd.attrs["level"])
    sentence = f"{_impossible(check)}the model "
    if p > level:
        return f"{sentence}may fit: the check found nothing wrong (p = {rounded(p)}){_too_few_draws(ksd)}"
    return f"{sentence}does not fit (p = {rounded(p)}): {'; '.join(_reasons(check))}"


def _too_few_draws(ksd: xr.Dataset) -> str:
    """What to add where a fault that only one view sees could not have been found.

    Draws that are the most extreme ones of other views count as no less extreme than data that are so in one view. The
    overall p-value is then up to ``V / (B + 1)``.
    """
    draws, level = int(ksd.attrs["num_bootstrap"]), float(ksd.attrs["level"])
    needed = math.ceil(ksd.sizes["view"] / level - 1e-9) - 1
    if draws >= needed or ksd.attrs["kind"] == "posterior predictive":
        return ""
    return f"; but {draws} draws are too few to tell, take num_bootstrap={needed} or more"


class Summary(pd.DataFrame):
    """A table that shows its words in full, and the verdict beneath them."""

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return Summary

    def __repr__(self) -> str:
        words = self.select_dtypes(exclude="number")
        aligned = {name: f"{{:<{words[name].str.len().max()}}}".format for name in words}
        shown = self.to_string(**_LOOKS, formatters=aligned)
        return "\n".join([*map(str.rstrip, shown.splitlines()), "", self._caption()])

    def _repr_html_(self) -> str:
        return f"{self.to_html(**_LOOKS)}\n<p>{escape(self._caption())}</p>"

    def _caption(self) -> str:
        sentence = self.attrs["verdict"]
        drawn = _KINDS[self.attrs["kind"]].format(self.attrs["draws"])
        if self.attrs["kind"] == "wild" and self.attrs["sequences"] < _FEW_SEQUENCES:
            drawn += f", which is approximate for as few as {self.attrs['sequences']} sequences"
        return f"{sentence[0].upper()}{sentence[1:]}. ({drawn}){self.attrs['codes']}"


def summary(check: Any) -> Summary:
    """One row for each view, and one for all of them together.

    The columns are the ``statistic``, its ``p_value``, what the view ``looks at`` and, for a view that rejects the
    model, the ``finding``. The table prints with the verdict beneath it, and the verdict is in its ``attrs``.

    :param check: what :func:`pyro_ksd.ksd_check` gave, or what was loaded from its file.

    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]  # this walk never stands still
    >>> check = ksd_check(random_walk(3), data, num_bootstrap=100, progress=False)
    >>> summary(check)["p_value"].round(2).to_dict()
    {'content-1': 1.0, 'content-2': 0.01, 'content-3': 0.01, 'start': 1.0, 'length': 0.14, 'overall': 0.04}
    """
    ksd = dataset(check, "ksd")
    level = float(ksd.attrs["level"])
    rows = {
        name: [float(one["statistic"]), float(one["p_value"]), str(one["meaning"].item()), _finding(check, one)]
        for name, one in ((name, ksd.sel(view=name)) for name in view_names(check))
    }
    p = float(ksd["p_value_overall"])
    together = "the model does not fit" if p <= level else "nothing wrong was found"
    rows["overall"] = [float("nan"), p, "all of the above together", together]
    columns = ["statistic", "p_value", "looks at", "finding"]
    table = Summary(list(rows.values()), index=pd.Index(rows, name="view"), columns=columns)
    table.attrs |= {"verdict": verdict(check), "kind": str(ksd.attrs["kind"]), "draws": int(ksd.attrs["num_bootstrap"])}
    table.attrs["sequences"] = dataset(check, "observed_data").sizes["sequence"]
    table.attrs["codes"] = _codes(check) if p <= level else ""
    return table


def _codes(check: Any) -> str:
    """Which words the codes of a model that does not fit stand for: its parameters may be in another order."""
    alphabet = json.loads(dataset(check, "observed_data")["token"].attrs["alphabet"])
    of_words = any(len(symbol) > 1 and not symbol.isdecimal() for symbol in alphabet)
    if not of_words or len(alphabet) > _MOST_CODES:
        return ""
    return f" The codes 0 to {len(alphabet) - 1} stand for {listed(alphabet)}."


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
    finding = {name: _finding(check, ksd.sel(view=name)) for name in view_names(check)}
    rejecting = [name for name, words in finding.items() if words]
    of_ngrams = [name for name in rejecting if feature_kind(ksd.sel(view=name)) == "ngram"]
    if of_ngrams:
        order = worst_first(check, of_ngrams)
        naming = [name for name in order if finding[name] != _unnamed(ksd.sel(view=name))]
        silent = set(of_ngrams) - {(naming or order)[0]}
        rejecting = [name for name in rejecting if name not in silent]
    return [finding[name] for name in rejecting]


def _finding(check: Any, one: xr.Dataset) -> str:
    """What a view that rejects the model says, else nothing.

    :param one: the ``ksd`` group at one view.
    """
    level, kind = float(one.attrs["level"]), feature_kind(one)
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
        labels = told["label"].values[chosen].tolist()
        if labels:
            directions.append(f"{_quoted(labels, kind)} {words}")
    return f"it {verb} {listed(directions)}" if directions else _unnamed(one)


def _unnamed(one: xr.Dataset) -> str:
    """What a view says that rejects the model, but can blame no feature for it."""
    words = f"it gets {one['meaning'].item()} wrong"
    return f"{words} (no single one stands out)" if feature_kind(one) == "ngram" else words


def _quoted(labels: list[str], kind: str) -> str:
    shown = [repr(label.removeprefix("^") if kind == "start" else label) for label in labels[:_MOST_NAMED]]
    return f"{', '.join(shown)}, ..." if len(labels) > _MOST_NAMED else listed(shown)


def listed(parts: list[str]) -> str:
    """Words one after the other, with "and" before the last."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def rounded(p: float) -> str:
    """A p-value as people write it."""
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1g}"
