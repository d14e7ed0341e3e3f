# SPDX-License-Identifier: Apache-2.0
"""What a check found, in detail, as data frames: n-grams, sequences and edits, the most important ones first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from pyro_ksd.results.containers import alphabet_of, data_of, dataset
from pyro_ksd.results.findings import all_agree, direction_words, features_of, stands_out
from pyro_ksd.results.labels import spelled
from pyro_ksd.results.verdicts import reason_views
from pyro_ksd.results.view_choice import chosen_views, feature_kind, speaking_views, views_with_features, worst_first

_MULTIPLE = ("ngram", "start", "end", "ends", "skip", "position", "feature", "grouped")
"""Kinds of features that the verdict names one by one."""

_SIZES = ("factor", "observed", "expected", "ratio")


def ngram_table(check: Any, *, view: str | Sequence[str] | None = None) -> pd.DataFrame:
    """The n-grams and other features of views, one row each, the most important ones first.

    Those come first that the verdict counts: their ``finding`` is ``"too rare"`` or ``"too frequent"`` (``"too small"``
    or ``"too large"`` for features that are no counts), under the model. It is empty where a feature does not stand
    out, and for all features if the check as a whole found nothing.

    The columns are the ``view``, the ``label`` of the feature and its ``finding``; the ``factor`` by which the model
    would have to multiply the probability of a sequence, for each occurrence in it, to agree with the data; the mean
    numbers in a sequence, ``observed`` in the data and ``expected`` under the model, and their ``ratio``, each with the
    ends of its 95 % interval, such as ``factor_low`` and ``factor_high``; the score ``z``, below zero if the feature is
    too rare under the model; and the ``p_value``, adjusted for the number of features of the view. What is not known is
    NaN: factors and numbers are estimated for the features that stand out most.

    :param check: what :func:`pyro_ksd.ksd_check` gave, or what was loaded from its file.
    :param view: the name of a view with features, or several. Left out, all of them.

    >>> import torch
    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = random_walk(3, hold=0.3).draw(60, torch.Generator().manual_seed(0))  # stays where it is more often
    >>> table = ngram_table(ksd_check(random_walk(3, hold=0.1), data, progress=False), view="content-2")
    >>> print(table[["label", "finding", "factor", "factor_low", "factor_high"]].head(2).round(1).to_string())
      label   finding  factor  factor_low  factor_high
    0    11  too rare     4.1         2.8          5.8
    1    00  too rare     3.1         2.2          4.3
    """
    known = views_with_features(check)
    names = chosen_views(check, view, known)
    parts = [_features_table(check, name) for name in most_important_first(check, names)]
    table = pd.concat(parts, ignore_index=True)
    return table.sort_values("finding", key=lambda own: own == "", kind="stable", ignore_index=True)


def sequence_table(check: Any, *, view: str | Sequence[str] | None = None) -> pd.DataFrame:
    """The sequences with the largest shares in the statistics of views, one row each, the largest ones first.

    The columns are the ``view``; the ``sequence``, its index in the data; its ``text`` and ``length``; its
    ``contribution`` to the statistic; what ``share`` of the statistic this is, NaN for a view that does not reject the
    model, since contributions then cancel; and the ``position``, from 0, with the largest part of the contribution,
    with the ``symbol`` that stands there, ``"$"`` for the end of the sequence.

    :param check: what :func:`pyro_ksd.ksd_check` gave, or what was loaded from its file.
    :param view: the name of a view, or several. Left out, all of them.

    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]  # this walk never stands still
    >>> check = ksd_check(random_walk(3), data, num_bootstrap=100, progress=False)
    >>> table = sequence_table(check, view="content-2")
    >>> print(table[["sequence", "text", "share", "position", "symbol"]].head(2).round(2).to_string())
       sequence   text  share  position symbol
    0         1  bbccc   0.23         3      c
    1         0   aabb   0.23         3      b
    """
    names = most_important_first(check, chosen_views(check, view))
    return pd.concat([_sequences_table(check, name) for name in names], ignore_index=True)


def edit_table(check: Any, *, view: str | Sequence[str] | None = None) -> pd.DataFrame:
    """The edits with the largest shares in the statistics of views, one row each, the largest ones first.

    An edit with a large share leads from a sequence of the data to one that has more, or less, probability under the
    model than it should, compared with the original one. The columns are the ``view``; the ``sequence``, its index in
    the data, and its ``text``; the ``position`` of the edit, from 0; the ``edit`` in words; its ``contribution`` to the
    statistic; and what ``share`` of it this is, NaN for a view that does not reject the model.

    :param check: what :func:`pyro_ksd.ksd_check` gave, or what was loaded from its file.
    :param view: the name of a view, or several. Left out, all of them.

    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]
    >>> check = ksd_check(random_walk(3), data, num_bootstrap=100, progress=False)
    >>> print(edit_table(check, view="content-2")[["text", "position", "edit"]].head(2).to_string())
       text  position                edit
    0  abbc         1  replace 'b' by 'c'
    1  aabb         2  replace 'b' by 'c'
    """
    names = most_important_first(check, chosen_views(check, view))
    return pd.concat([_edits_table(check, name) for name in names], ignore_index=True)


def most_important_first(check: Any, names: list[str]) -> list[str]:
    """Views in the order in which to look at them: those that the verdict names, in its order, then the worst ones."""
    if len(names) < 2:
        return names
    reasons = [name for name in reason_views(check) if name in names]
    others = [name for name in names if name not in reasons]
    return reasons + (worst_first(check, others) if others else [])


def texts(check: Any, group: xr.Dataset) -> npt.NDArray[np.object_]:
    """Sequences of a check as people write them.

    :param group: with ``token`` and ``length``.
    """
    alphabet = alphabet_of(check)
    found = [spelled(codes, alphabet) for codes in group["token"].values.tolist()]
    return np.array(found, dtype=object)


def is_found(check: Any, one: xr.Dataset) -> bool:
    """Whether a view rejects the model, so that shares of its statistic mean something.

    :param one: the ``ksd`` group at one view.
    """
    return float(one["statistic"]) > 0 and float(one["p_value"]) <= float(one.attrs["level"])


def _features_table(check: Any, name: str) -> pd.DataFrame:
    one = dataset(check, "ksd").sel(view=name)
    features = features_of(check, one)
    z = features["z"].values
    kind = feature_kind(one)
    finding = np.full(len(z), "", dtype=object)
    if name in speaking_views(check) and kind in _MULTIPLE and not (kind == "ngram" and all_agree(check, features)):
        chosen = stands_out(features, float(one.attrs["level"]))
        low, high = direction_words(kind)
        finding[chosen & (z < 0)] = f"too {low}"
        finding[chosen & (z > 0)] = f"too {high}"
    columns: dict[str, Any] = {"view": name, "label": features["label"].values, "finding": finding}
    for size in _SIZES:
        for column in (size, f"{size}_low", f"{size}_high"):
            columns[column] = features[column].values if column in features else np.nan
    table = pd.DataFrame(columns | {"z": z, "p_value": features["p_value"].values}, index=range(len(z)))
    order = np.lexsort((-np.abs(z), table["p_value"], finding == ""))
    return table.iloc[order]


def _sequences_table(check: Any, name: str) -> pd.DataFrame:
    one = dataset(check, "ksd", "contribution", "shown_sequence", "attribution").sel(view=name)
    rows = one["shown_sequence"].values
    data = data_of(check).sel(sequence=rows)
    contribution = one["contribution"].sel(sequence=rows).values
    position = np.nanargmax(one["attribution"].transpose("shown", "position").values, axis=1)
    alphabet = [*alphabet_of(check), "$"]
    codes = np.pad(data["token"].values, ((0, 0), (0, 1)), constant_values=-1)[np.arange(len(rows)), position]
    return pd.DataFrame(
        {
            "view": name,
            "sequence": rows,
            "text": texts(check, data),
            "length": data["length"].values,
            "contribution": contribution,
            "share": contribution / float(one["statistic"]) if is_found(check, one) else np.nan,
            "position": position,
            "symbol": [alphabet[code] for code in codes],
        }
    )


def _edits_table(check: Any, name: str) -> pd.DataFrame:
    one = dataset(check, "ksd").sel(view=name)
    edits = dataset(check, "ksd_edit")
    edits = edits.isel(edit=edits["view_name"].values == name)
    edits = edits.isel(edit=np.argsort(-edits["share"].values, kind="stable"))
    rows = edits["sequence_index"].values
    contribution = edits["share"].values
    return pd.DataFrame(
        {
            "view": name,
            "sequence": rows,
            "text": texts(check, data_of(check).sel(sequence=rows)),
            "position": edits["position_index"].values,
            "edit": edits["operation"].values,
            "contribution": contribution,
            "share": contribution / float(one["statistic"]) if is_found(check, one) else np.nan,
        },
        index=range(len(rows)),
    )
