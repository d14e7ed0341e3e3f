# SPDX-License-Identifier: Apache-2.0
"""What the report says of a monitor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from pyro_ksd.results.containers import dataset
from pyro_ksd.results.evidence_words import direction_of, monitor_verdict

_DECIMAL = math.log(10)
_MOST_EVIDENCE = 300.0  # decades; an impossible sequence gives infinite evidence


@dataclass(frozen=True)
class EvidenceChart:
    """The evidence over time; all places in percent of the width or the height of the picture.

    :ivar views: the points of the line of each view, as SVG has them.
    :ivar overall: those of all views together.
    :ivar needed: the height of the evidence that is needed.
    :ivar first_clear: the place at which it was first reached, -1 if it never was.
    :ivar top: the largest evidence of the picture, as a power of 10.
    :ivar bottom: the smallest.
    :ivar last: the number of sequences at the right end.
    """

    views: list[str]
    overall: str
    needed: float
    first_clear: float
    top: float
    bottom: float
    last: int


@dataclass(frozen=True)
class MonitorPage:
    """What is said of a monitor.

    :ivar headline: the result in a few words.
    :ivar sentence: the verdict.
    :ivar rejected: whether the evidence was ever large enough.
    :ivar changes: whether changes were looked for.
    :ivar num_sequences: how many there were.
    :ivar needed: the evidence that is needed.
    :ivar chart: the evidence over time.
    :ivar views: for each view, its name, the power of 10 of its evidence at the end, and its p-value.
    :ivar features: for each feature, its view, its name, what it is too ..., and its score; the largest scores first.
    """

    headline: str
    sentence: str
    rejected: bool
    changes: bool
    num_sequences: int
    needed: float
    chart: EvidenceChart
    views: list[tuple[str, float, float]]
    features: list[tuple[str, str, str, float]]


def page_of_monitor(result: Any) -> MonitorPage:
    """What to say of a monitor.

    :param result: what :meth:`pyro_ksd.checks.Monitor.result` gave.
    """
    found = dataset(result, "ksd_monitor")
    changes = "run_length" in found.attrs
    rejected = bool(found.attrs["first_clear"] >= 0)
    words = {
        (False, False): "No evidence against the model",
        (False, True): "The model does not fit",
        (True, False): "No change",
        (True, True): "The sequences have changed",
    }
    sentence = monitor_verdict(result)
    return MonitorPage(
        headline=words[changes, rejected],
        sentence=f"{sentence[0].upper()}{sentence[1:]}.",
        rejected=rejected,
        changes=changes,
        num_sequences=int(found["num_sequences"][-1]),
        needed=float(found.attrs["run_length"] if changes else 1 / found.attrs["level"]),
        chart=_chart(found),
        views=[
            (str(view), float(own) / _DECIMAL, math.nan if changes else float(p))
            for view, own, p in zip(
                found["view"].values, found["log_evidence"].values[-1], found["p_value"].values, strict=True
            )
        ],
        features=_features(dataset(result, "ksd_monitor_feature")),
    )


def _features(features: Any) -> list[tuple[str, str, str, float]]:
    rows = [
        (str(view), str(label), direction_of(str(view), float(z)), float(z))
        for view, label, z in zip(
            features["view_name"].values, features["label"].values, features["z"].values, strict=True
        )
    ]
    return sorted(rows, key=lambda row: -abs(row[3]))


def _chart(found: Any) -> EvidenceChart:
    needed = found.attrs["run_length"] if "run_length" in found.attrs else 1 / found.attrs["level"]
    overall = (found["log_evidence_overall"].values / _DECIMAL).clip(-_MOST_EVIDENCE, _MOST_EVIDENCE)
    views = (found["log_evidence"].values / _DECIMAL).clip(-_MOST_EVIDENCE, _MOST_EVIDENCE)
    top = 1.05 * max(math.log10(needed), float(overall.max()), float(views.max()))
    bottom = min(0.0, float(overall.min()), float(views.min()))
    last = int(found["num_sequences"][-1])
    counts = [0, *found["num_sequences"].values.tolist()]

    def height(value: float) -> float:
        return round(100 * (top - value) / (top - bottom), 2)

    def line(values: list[float]) -> str:
        places = [round(100 * count / last, 2) for count in counts]
        return " ".join(f"{x},{height(y)}" for x, y in zip(places, [0.0, *values], strict=True))

    first = int(found.attrs["first_clear"])
    return EvidenceChart(
        views=[line(own) for own in views.T.tolist()],
        overall=line(overall.tolist()),
        needed=height(math.log10(needed)),
        first_clear=round(100 * first / last, 2) if first >= 0 else -1.0,
        top=top,
        bottom=bottom,
        last=last,
    )
