# SPDX-License-Identifier: Apache-2.0
"""What a monitor has found, in words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

from pyro_ksd.results.containers import dataset
from pyro_ksd.results.findings import listed

_MOST_NAMED = 3  # features of the leading view
_LEAST_P = 1e-16


def monitor_verdict(result: Any) -> str:
    """What a monitor has found, in a sentence.

    :param result: what :meth:`pyro_ksd.checks.Monitor.result` gave.

    >>> from pyro_ksd import ksd_monitor
    >>> from pyro_ksd.examples import random_walk
    >>> monitor = ksd_monitor(random_walk(3), "abc")
    >>> monitor.update(["abc", "ba", "cab"])
    >>> monitor_verdict(monitor.result())
    'no evidence against the model until now (p = 1 after 3 sequences)'
    """
    found = dataset(result, "ksd_monitor")
    own = found.attrs
    count = int(found["num_sequences"][-1])
    most = float(own["most_evidence"])
    changes = "run_length" in own
    if own["first_clear"] < 0:
        p = math.exp(-most)
        return f"no {'change' if changes else 'evidence against the model'} until now " + (
            f"(after {count} sequences)" if changes else f"(p = {p:.2g} after {count} sequences)"
        )
    when = f"first clear after {own['first_clear']} of {count} sequences"
    if changes:
        head = f"the sequences do not fit the model any more ({when})"
    else:
        p = math.exp(-most)
        head = f"the model does not fit ({f'p = {p:.2g}' if p >= _LEAST_P else f'p < {_LEAST_P:g}'}, {when})"
    if own["num_impossible"]:
        return f"{head}: it gives probability 0 to {own['num_impossible']} of {count} sequences"
    leading = found["view"].values[int(found["log_evidence"].values[-1].argmax())]
    return f"{head}; the most evidence is in {leading}{_words(dataset(result, 'ksd_monitor_feature'), str(leading))}"


def direction_of(view: str, z: float) -> str:
    """What a feature of a view with some score is, under the model.

    >>> direction_of("content-2", 3.0), direction_of("surprise", -2.0)
    ('too frequent', 'more probable')
    """
    if view == "surprise":
        return "less probable" if z > 0 else "more probable"
    return "too frequent" if z > 0 else "too rare"


def _words(features: xr.Dataset, view: str) -> str:
    """Which features of a view stand out, as the end of a sentence."""
    own = features.isel(feature=features["view_name"].values == view)
    if view == "surprise":
        return f": the data are {direction_of(view, own['z'].item())} than the model's own sequences"
    clear = own.isel(feature=own["z"].values ** 2 > 2 * np.log(20 * own["num_compared"].values))
    parts = []
    for chosen, word in ((clear["z"].values < 0, "rare"), (clear["z"].values > 0, "frequent")):
        labels = [repr(str(label)) for label in clear["label"].values[chosen]]
        if labels:
            shown = ", ".join([*labels[:_MOST_NAMED], "..."]) if len(labels) > _MOST_NAMED else listed(labels)
            parts.append(f"{shown} {'is' if len(labels) == 1 else 'are'} too {word} under the model")
    return f": {listed(parts)}" if parts else ""
