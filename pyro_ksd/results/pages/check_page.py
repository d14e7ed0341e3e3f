# SPDX-License-Identifier: Apache-2.0
"""What the card and the report say of a check, in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyro_ksd.results.check_table import origin_of_p_values, summary
from pyro_ksd.results.containers import dataset, has_all_data, has_group, num_sequences
from pyro_ksd.results.findings import view_finding
from pyro_ksd.results.p_values import p_text
from pyro_ksd.results.pages.charts import length_chart
from pyro_ksd.results.pages.feature_rows import FeatureRow, examples, named_features
from pyro_ksd.results.pages.rendering import number
from pyro_ksd.results.verdicts import reason_views, verdict_parts, worst_view
from pyro_ksd.results.view_choice import feature_kind, num_features, p_value_of_views, speaking_views, view_names

_FIRST = 3  # sequences named as examples


@dataclass(frozen=True)
class Reason:
    """A view that is a reason of the verdict.

    :ivar view: its name.
    :ivar meaning: what it looks at.
    :ivar finding: what it found.
    :ivar rows: the features that it names.
    """

    view: str
    meaning: str
    finding: str
    rows: list[FeatureRow]


@dataclass(frozen=True)
class ViewRow:
    """A view in the table of all.

    :ivar name: of the view.
    :ivar meaning: what it looks at.
    :ivar statistic: its statistic.
    :ivar p_value: its p-value.
    :ivar finding: what it found, empty if it does not count.
    """

    name: str
    meaning: str
    statistic: float
    p_value: float
    finding: str


@dataclass(frozen=True)
class CheckPage:
    """What is said of a check.

    :ivar fits: whether nothing wrong was found.
    :ivar is_impossible: whether the model gives probability zero to some sequences.
    :ivar headline: the verdict in a few words.
    :ivar start: the verdict without its reasons.
    :ivar p_text: the p-value of all views together.
    :ivar how_sure: what this p-value means.
    :ivar origin: where p-values come from.
    :ivar reasons: what is wrong.
    :ivar other_findings: views that reject, too, but whose findings are no reasons of their own.
    :ivar further: how large the misfit is, and what the check could not tell.
    :ivar how_large: a number, and what it means.
    :ivar first: what to look at first, sentence by sentence.
    :ivar views: all views.
    :ivar speaking: the number of views that count.
    :ivar detail: the view whose sequences are shown; empty if there are no shares of sequences.
    :ivar num_sequences: of the data.
    """

    fits: bool
    is_impossible: bool
    headline: str
    start: str
    p_text: str
    how_sure: str
    origin: str
    reasons: list[Reason]
    other_findings: list[ViewRow]
    further: list[str]
    how_large: tuple[str, str]
    first: list[str]
    views: list[ViewRow]
    speaking: int
    detail: str
    num_sequences: int


def page_of_check(check: Any, most_rows: int) -> CheckPage:
    """What to say of a check.

    :param most_rows: how many features of each view to show.
    """
    ksd = dataset(check, "ksd")
    level = float(ksd.attrs["level"])
    overall = float(ksd["p_value_overall"])
    parts = verdict_parts(check)
    reasons = [_reason(check, name, most_rows) for name in reason_views(check)]
    views = _views(check)
    named = [reason.view for reason in reasons]
    count = num_sequences(check, "ksd_data")
    return CheckPage(
        fits=overall > level,
        is_impossible=has_group(check, "ksd_impossible"),
        headline="No misfit was found" if overall > level else "The model does not fit",
        start=_sentence(parts.start),
        p_text=p_text(overall),
        how_sure=_how_sure(check),
        origin=_sentence(origin_of_p_values(str(ksd.attrs["kind"]), int(ksd.attrs["num_bootstrap"]), count)),
        reasons=reasons,
        other_findings=[view for view in views if view.finding and view.name not in named],
        further=[_sentence(words.removeprefix("but ")) for words in parts.further],
        how_large=_how_large(check, reasons),
        first=_first(check, reasons),
        views=views,
        speaking=len(speaking_views(check)),
        detail=_detail(check),
        num_sequences=count,
    )


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _reason(check: Any, name: str, most_rows: int) -> Reason:
    one = dataset(check, "ksd").sel(view=name)
    rows = named_features(check, name, most_rows) if feature_kind(one) and num_features(check, name) else []
    return Reason(name, str(one["meaning"].item()), _sentence(view_finding(check, one)), rows)


def _views(check: Any) -> list[ViewRow]:
    table = summary(check).loc[view_names(check)]
    return [
        ViewRow(str(name), str(own["looks at"]), float(own["statistic"]), float(own["p_value"]), str(own["finding"]))
        for name, own in table.iterrows()
    ]


def _how_sure(check: Any) -> str:
    """What the p-value of all views together means."""
    ksd = dataset(check, "ksd")
    if has_group(check, "ksd_impossible"):
        return "This is certain: a model that gives probability zero to some sequences cannot have made the data."
    p = p_value_of_views(ksd)
    draws = int(ksd.attrs["num_bootstrap"])
    if ksd.attrs["kind"] == "posterior predictive":
        return "A posterior predictive p-value is not calibrated: only a small one is evidence against the model."
    how_often = f"{number(100 * p, 2)} of 100" if p >= 0.1 else f"1 of {number(float(f'{1 / p:.2g}'))}"
    if p > float(ksd.attrs["level"]):
        return (
            f"If the model is right, {how_often} data sets of this size look at least as unusual as this one. That is "
            "no proof that it is right: more data can show smaller faults."
        )
    smallest = p <= 1 / (draws + 1) * (1 + 1e-9)
    more = f" No smaller p-value can come from {draws:,} null draws." if smallest else ""
    return f"If the model were right, only {how_often} data sets of this size would look as unusual as this one.{more}"


def _how_large(check: Any, reasons: list[Reason]) -> tuple[str, str]:
    """The size of the misfit that says most, and what it means."""
    ksd = dataset(check, "ksd")
    share = float(ksd["foreign_share_overall"]) if "foreign_share_overall" in ksd else np.nan
    if share >= 0.01:
        words = "of the sequences do not come from the model. This is a lower bound, with 95 % confidence."
        return f"at least {number(100 * share)} %", words
    sized = [row for reason in reasons for row in reason.rows if row.amount or row.weight]
    if sized:
        row = sized[0]
        return repr(row.label), row.amount or f"every occurrence should weigh {row.weight} times as much in the model"
    if float(ksd["p_value_overall"]) > float(ksd.attrs["level"]):
        return (
            "none found",
            "pyro_ksd.power(model, other) computes how small a misfit the check could have found.",
        )
    return "not estimated", "The size of this misfit was not estimated."


def _first(check: Any, reasons: list[Reason]) -> list[str]:
    """What to look at first."""
    found = []
    for reason in reasons:
        chart = length_chart(check) if reason.view == "length" else None
        found += [] if chart is None else chart.differences
        if not reason.rows:
            continue
        row = reason.rows[0]
        count, some = examples(check, reason.view, _FIRST)
        total = num_sequences(check, "ksd_data")
        where = f" It is in {count:,} of the {total:,} sequences" if count else ""
        if count and not has_all_data(check):  # in how many of all sequences, is not known
            where = " It is in sequences"
        shown = f", such as {', '.join(some)}" if some else ""
        name, place = _named(row.label, feature_kind(dataset(check, "ksd").sel(view=reason.view)))
        found.append(f"{name!r} is {row.finding}{place} under the model.{where}{shown}{'.' if where else ''}")
    return found


def _named(label: str, kind: str) -> tuple[str, str]:
    """A feature without the mark of its place, and this place in words."""
    if kind == "start":
        return label.removeprefix("^"), " at the start"
    if kind == "end":
        return label.removesuffix("$"), " at the end"
    return label, ""


def _detail(check: Any) -> str:
    """The view whose sequences are shown: a reason with named features if there is one."""
    if "attribution" not in dataset(check, "ksd"):
        return ""
    reasons = reason_views(check)
    with_rows = [name for name in reasons if num_features(check, name) > 1 and name != "length"]
    return (with_rows or [worst_view(check, view_names(check))])[0]
