# SPDX-License-Identifier: Apache-2.0
"""The verdict of a check in one sentence, and what each view found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

from pyro_ksd.results.containers import dataset, has_group
from pyro_ksd.results.findings import unnamed, view_finding
from pyro_ksd.results.p_values import p_text
from pyro_ksd.results.view_choice import feature_kind, view_names, worst_first

_ARRANGEMENT = ("skip", "position", "mirror", "repeats", "composition", "ends")
"""Kinds of features that are wrong, too, where n-grams are."""


def verdict(check: Any) -> str:
    """The result in one sentence, with what is too rare or too frequent under the model, and by how much.

    In names of n-grams ``^`` is the start of a sequence, ``$`` its end and ``_`` any symbol. ``weight × 3`` says that
    every occurrence must be three times as probable for the model to agree with the data, with a 95 % interval. Of
    several views of n-grams that reject, the worst one speaks: what is wrong with pairs makes single symbols and
    triples wrong, too, and also what stands at a distance.

    :param check: what :func:`pyro_ksd.ksd_check` gave, or what was loaded from its file.

    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"]  # this walk never stands still
    >>> check = ksd_check(random_walk(3), data, num_bootstrap=100, progress=False)
    >>> verdict(check)
    "the model does not fit (p = 0.020): 'bb' is too rare under the model"
    """
    ksd = dataset(check, "ksd")
    p = float(ksd["p_value_overall"])
    level = float(ksd.attrs["level"])
    sentence = f"{_impossible(check)}the model "
    if p > level:
        return f"{sentence}may fit: the check found nothing wrong ({p_text(p)}){_too_few_draws(ksd)}{_close(ksd)}"
    return f"{sentence}does not fit ({p_text(p)}): {'; '.join(_reasons(check))}{_share(ksd)}{_close(ksd)}"


def _share(ksd: xr.Dataset) -> str:
    """How many sequences, at the least, are not the model's."""
    share = float(ksd["foreign_share_overall"]) if "foreign_share_overall" in ksd else 0.0
    return f"; at least {_percent(share)} of the sequences are not the model's" if share > 0 else ""


def _close(ksd: xr.Dataset) -> str:
    """Whether the misfit is larger than the tolerance, or demonstrably smaller."""
    if "tolerance" not in ksd.attrs:
        return ""
    tolerance = float(ksd.attrs["tolerance"])
    level = float(ksd.attrs["level"])
    p = float(ksd["tolerance_p_value_overall"])
    if p <= level:
        return f"; more than {_percent(tolerance)} of them ({p_text(p)})"
    upper = float(ksd["discrepancy_upper"].max())
    if upper <= tolerance:
        return f"; what the views see is demonstrably small (relative discrepancy at most {_percent(upper)})"
    return (
        f"; whether more than {_percent(tolerance)} of the sequences are not the model's is undecided ({p_text(p)}; "
        f"relative discrepancy at most {_percent(upper)})"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _too_few_draws(ksd: xr.Dataset) -> str:
    """What to add where a fault that only one view sees could not have been found.

    Draws that are the most extreme ones of other views count as no less extreme than data that are so in one view. If
    that view counts the share ``s`` of all views, the overall p-value is then up to ``1 / (s (B + 1))``.
    """
    draws = int(ksd.attrs["num_bootstrap"])
    level = float(ksd.attrs["level"])
    weights = ksd["weight"].values if "weight" in ksd else np.ones(ksd.sizes["view"])
    needed = math.ceil(weights.sum() / weights.min() / level - 1e-9) - 1
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
    """What the views say that reject the model.

    Of views of n-grams only the worst that can name some speaks, and then no view of how sequences are arranged; of
    these, too, only the worst. Views that cannot say what is wrong are silent if others can. The probability of the
    sequences is a reason if there is no other.
    """
    ksd = dataset(check, "ksd")
    finding = {name: view_finding(check, ksd.sel(view=name)) for name in view_names(check)}
    kinds = {name: feature_kind(ksd.sel(view=name)) for name in finding}
    rejecting = [name for name, words in finding.items() if words]
    naming = [name for name in rejecting if finding[name] != unnamed(ksd.sel(view=name))]
    groups = [[name for name in rejecting if kinds[name] == "ngram"]]
    groups.append([name for name in rejecting if kinds[name] in _ARRANGEMENT])
    for index, group in enumerate(groups):
        if group:
            order = worst_first(check, [name for name in group if name in naming] or group)
            rejecting = [name for name in rejecting if name not in group or name == order[0]]
        if set(groups[0]) & set(naming) and index:
            rejecting = [name for name in rejecting if name not in group]
    if any(name in naming and kinds[name] != "surprise" for name in rejecting):
        rejecting = [name for name in rejecting if name in naming]
    others = [name for name in rejecting if kinds[name] != "surprise"]
    reasons = [finding[name] for name in others or rejecting]
    return reasons or ["all views together show it, none of them by itself"]
