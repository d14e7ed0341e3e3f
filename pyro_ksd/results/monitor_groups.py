# SPDX-License-Identifier: Apache-2.0
"""What a monitor has found, as xarray groups and in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from torch import Tensor

from pyro_ksd.fit_tests.stream_evidence import StreamEvidence
from pyro_ksd.results.containers import dataset
from pyro_ksd.results.findings import listed
from pyro_ksd.results.groups import Settings, as_numpy, as_strings, stamped
from pyro_ksd.results.labels import feature_labels
from pyro_ksd.stein.views import View

_MOST_FEATURES = 20  # of each view
_MOST_NAMED = 3
_LEAST_P = 1e-16


def monitor_datatree(
    evidence: StreamEvidence, views: Sequence[View], symbols: Sequence[str], *, settings: Settings
) -> xr.DataTree:
    """The evidence of a monitor as flat groups.

    ``ksd_monitor``
        ``log_evidence(look, view)`` and ``log_evidence_overall(look)``, the natural logs of the evidence after
        ``num_sequences(look)`` sequences; ``p_value(view)``, that of each view by itself at all times together; in the
        attributes ``first_clear``, after how many sequences the evidence was
        first large enough, -1 if it never was, ``num_impossible``, and ``most_evidence``, the largest log until now
    ``ksd_monitor_feature``
        the features with the largest scores: ``view_name``, ``label`` and ``z`` ``(feature)``; a positive score means
        that the feature is too frequent, or too large, under the model

    :param views: those of the evidence.
    :param symbols: the symbols of the alphabet, in words.
    :param settings: of the monitor, kept in the attributes.

    >>> import torch
    >>> from pyro_ksd.fit_tests import Bets, StreamEvidence
    >>> from pyro_ksd.stein import default_views
    >>> evidence = StreamEvidence.at_start([Bets.at_start(2, reach=1.0)], level=0.05)
    >>> evidence = evidence.after([torch.ones(40, 2).double() / 2], torch.ones(40, dtype=torch.bool))
    >>> tree = monitor_datatree(evidence, default_views()[:1], "ab", settings={"level": 0.05})
    >>> tree["ksd_monitor"]["num_sequences"].values
    array([40])
    """
    names = as_strings([view.name for view in views])
    seen = as_numpy(evidence.seen)
    monitor = xr.Dataset(
        {
            "num_sequences": ("look", as_numpy(evidence.looks)),
            "log_evidence": (("look", "view"), seen[:, :-1]),
            "log_evidence_overall": ("look", seen[:, -1]),
            "p_value": ("view", as_numpy((-evidence.most_of_views).exp())),
        },
        coords={"look": np.arange(len(seen)), "view": names},
        attrs={
            "kind": "monitor",
            **settings,
            "first_clear": evidence.first_clear,
            "num_impossible": evidence.num_impossible,
            "most_evidence": evidence.most,
        },
    )
    parts = [_features(view, own.z, symbols) for view, own in zip(views, evidence.bets, strict=True)]
    features = xr.concat(parts, "feature").assign_coords(
        feature=np.arange(sum(part.sizes["feature"] for part in parts))
    )
    return stamped({"ksd_monitor": monitor, "ksd_monitor_feature": features})


def _features(view: View, z: Tensor, symbols: Sequence[str]) -> xr.Dataset:
    top = z.abs().topk(min(_MOST_FEATURES, len(z))).indices
    kernel = view.kernel
    names = [kernel.feature_label(code, len(symbols)) for code in top.tolist()]
    ngrams = kernel.feature_symbols(top, len(symbols)).tolist()
    labels = feature_labels(kernel.feature_kind, names, ngrams, symbols)
    return xr.Dataset(
        {
            "view_name": ("feature", as_strings([view.name] * len(top))),
            "label": ("feature", as_strings(labels)),
            "z": ("feature", as_numpy(z[top])),
            "num_compared": ("feature", np.full(len(top), len(z))),
        }
    )


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


def _words(features: xr.Dataset, view: str) -> str:
    """Which features of a view stand out, as the end of a sentence."""
    own = features.isel(feature=features["view_name"].values == view)
    if view == "surprise":
        return f": the data are {'less' if own['z'].item() > 0 else 'more'} probable than the model's own sequences"
    clear = own.isel(feature=own["z"].values ** 2 > 2 * np.log(20 * own["num_compared"].values))
    parts = []
    for chosen, word in ((clear["z"].values < 0, "rare"), (clear["z"].values > 0, "frequent")):
        labels = [repr(str(label)) for label in clear["label"].values[chosen]]
        if labels:
            shown = ", ".join([*labels[:_MOST_NAMED], "..."]) if len(labels) > _MOST_NAMED else listed(labels)
            parts.append(f"{shown} {'is' if len(labels) == 1 else 'are'} too {word} under the model")
    return f": {listed(parts)}" if parts else ""
