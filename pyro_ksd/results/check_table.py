# SPDX-License-Identifier: Apache-2.0
"""The table of a check: one row for each view, with the verdict beneath."""

from __future__ import annotations

from html import escape
from typing import Any

import pandas as pd

from pyro_ksd.results.containers import alphabet_of, dataset, has_group, num_sequences
from pyro_ksd.results.findings import listed, view_finding
from pyro_ksd.results.verdicts import verdict
from pyro_ksd.results.view_choice import p_value_of_views, view_names

_LOOKS: dict[str, Any] = {"float_format": "{:.3g}".format, "na_rep": "", "justify": "left", "index_names": False}
_KINDS = {
    "parametric": "p-values from {} {} of the parametric bootstrap",
    "wild": "p-values from {} {} of the wild bootstrap",
    "refit": "p-values from {} {} of the parametric bootstrap, refitted to each",
    "posterior predictive": "posterior predictive p-values from {} {}, not calibrated: only small ones are evidence",
    "split predictive": "split predictive p-values of held-out data from {} {}",
    "divided predictive": "divided predictive p-values of folds held out in turn, from {} {}",
}
_FEW_SEQUENCES = 30  # of which the wild bootstrap, right in the limit of many, knows little
_MOST_CODES = 12  # that a sentence can list


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
        drawn = origin_of_p_values(self.attrs["kind"], self.attrs["draws"], self.attrs["sequences"])
        return f"{sentence[0].upper()}{sentence[1:]}. ({drawn}){self.attrs['codes']}"


def summary(check: Any) -> Summary:
    """One row for each view, and one for all of them together.

    The columns are the ``statistic``, its ``p_value``, what the view ``looks at`` and, for a view that rejects the
    model, the ``finding``. The table prints with the verdict beneath it, and the verdict is in its ``attrs``.

    :param check: what :func:`pyro_ksd.ksd_check` gave, or what was loaded from its file.

    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]  # this walk never stands still
    >>> views = ["content-2", "start", "length"]
    >>> check = ksd_check(random_walk(3), data, views=views, num_bootstrap=100, progress=False)
    >>> summary(check)["p_value"].round(2).to_dict()
    {'content-2': 0.01, 'start': 1.0, 'length': 0.04, 'overall': 0.02}
    """
    ksd = dataset(check, "ksd")
    level = float(ksd.attrs["level"])
    rows = {
        name: [float(one["statistic"]), float(one["p_value"]), str(one["meaning"].item()), view_finding(check, one)]
        for name, one in ((name, ksd.sel(view=name)) for name in view_names(check))
    }
    p = float(ksd["p_value_overall"])
    if has_group(check, "ksd_impossible"):
        words = f"{num_sequences(check, 'ksd_impossible')} of {num_sequences(check, 'ksd_data')} sequences"
        rows["possible"] = [float("nan"), p_value_of_views(ksd), "all of the above together", ""]
        rows["impossible"] = [float("nan"), 0.0, "sequences of probability zero", words]
    together = "the model does not fit" if p <= level else "nothing wrong was found"
    rows["overall"] = [float("nan"), p, "all of the above together", together]
    columns = ["statistic", "p_value", "looks at", "finding"]
    table = Summary(list(rows.values()), index=pd.Index(rows, name="view"), columns=columns)
    table.attrs |= {"verdict": verdict(check), "kind": str(ksd.attrs["kind"]), "draws": int(ksd.attrs["num_bootstrap"])}
    table.attrs["sequences"] = num_sequences(check, "ksd_data")
    table.attrs["codes"] = _codes(check) if p <= level else ""
    return table


def origin_of_p_values(kind: str, num_draws: int, num_sequences: int) -> str:
    """Where the p-values of a check come from.

    >>> origin_of_p_values("wild", 500, 20)
    'p-values from 500 draws of the wild bootstrap, which is approximate for as few as 20 sequences'
    """
    drawn = _KINDS.get(kind, "p-values from {} null {}").format(num_draws, "draw" if num_draws == 1 else "draws")
    if kind == "wild" and num_sequences < _FEW_SEQUENCES:
        drawn += f", which is approximate for as few as {num_sequences} sequences"
    return drawn


def _codes(check: Any) -> str:
    """Which words the codes of a model that does not fit stand for: its parameters may be in another order."""
    alphabet = alphabet_of(check)
    of_words = any(len(symbol) > 1 and not symbol.isdecimal() for symbol in alphabet)
    if not of_words or len(alphabet) > _MOST_CODES:
        return ""
    return f" The codes 0 to {len(alphabet) - 1} stand for {listed(alphabet)}."
