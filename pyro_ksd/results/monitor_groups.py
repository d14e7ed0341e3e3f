# SPDX-License-Identifier: Apache-2.0
"""What a monitor has found, as xarray groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from torch import Tensor

from pyro_ksd.fit_tests.stream_evidence import StreamEvidence
from pyro_ksd.results.arrays import as_numpy, as_strings
from pyro_ksd.results.misfit_groups import labels_of
from pyro_ksd.results.shared_groups import Settings, stamped
from pyro_ksd.stein.views import View

_MOST_FEATURES = 20  # of each view


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
    labels = labels_of(view.name, view.kernel, top, symbols)
    return xr.Dataset(
        {
            "view_name": ("feature", as_strings([view.name] * len(top))),
            "label": ("feature", as_strings(labels)),
            "z": ("feature", as_numpy(z[top])),
            "num_compared": ("feature", np.full(len(top), len(z))),
        }
    )
