# SPDX-License-Identifier: Apache-2.0
"""The verdict of a check in one sentence, and what each view found."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pyro_ksd.common.draw_counts import draws_in_all
from pyro_ksd.results.containers import alphabet_of, dataset, has_group, num_sequences
from pyro_ksd.results.evidence_words import monitor_verdict
from pyro_ksd.results.findings import listed, unnamed, view_finding
from pyro_ksd.results.p_values import draws_needed, p_text
from pyro_ksd.results.schema_entries import POSTERIOR_KINDS
from pyro_ksd.results.view_choice import feature_kind, p_value_of_views, speaking_views, view_names, worst_first

_ARRANGEMENT = ("skip", "position", "mirror", "repeats", "composition", "ends")
"""Kinds of features that are wrong, too, where n-grams are."""

_LEAST_SHARE = 0.01  # of sequences that do not come from the model; a lower bound below it reads like a small fault


def verdict(check: Any) -> str:
    """The result in one sentence, with what is too rare or too frequent under the model, and by how much.

    In names of n-grams, ``^`` is the start of a sequence, ``$`` its end and ``_`` any symbol. ``weight × 3`` means that
    the model agrees with the data if every occurrence makes a sequence three times as probable; a 95 % interval
    follows. If several views of n-grams reject, only the worst one is reported, because wrong pairs also make single
    symbols, triples and symbols at a distance wrong.

    :param check: what :func:`pyro_ksd.ksd_check` or a monitor gave, or what was loaded from its file.

    >>> import torch
    >>> from pyro_ksd import ksd_check
    >>> from pyro_ksd.examples import random_walk
    >>> data = random_walk(3, hold=0.3).draw(60, torch.Generator().manual_seed(0))  # stays where it is more often
    >>> print(verdict(ksd_check(random_walk(3, hold=0.1), data, progress=False)))
    the model does not fit (p = 0.002): '11' (weight × 4.1, 2.8 to 5.8) and '00' (weight × 3.1, 2.2 to 4.3) are too rare
    under the model; at least 1.67 % of the sequences do not come from the model (a lower bound)
    """
    if has_group(check, "ksd_monitor") and not has_group(check, "ksd"):
        return monitor_verdict(check)
    return verdict_parts(check).sentence


@dataclass(frozen=True)
class VerdictParts:
    """The verdict, part by part.

    :ivar start: whether the model fits, with the p-value.
    :ivar reasons: what is wrong.
    :ivar further: how large the misfit is, and what the check could not tell.
    """

    start: str
    reasons: list[str]
    further: list[str]

    @property
    def sentence(self) -> str:
        """All parts."""
        start = f"{self.start}: {'; '.join(self.reasons)}" if self.reasons else self.start
        return "; ".join([start, *self.further])


def verdict_parts(check: Any) -> VerdictParts:
    """The parts of the :func:`verdict`."""
    ksd = dataset(check, "ksd")
    p = p_value_of_views(ksd)
    found = f"{_kind(ksd)}{p_text(p)}"
    has_impossible = has_group(check, "ksd_impossible")
    subject = f"{_impossible(check)}; the others" if has_impossible else "the model"
    if p > float(ksd.attrs["level"]):
        start = f"{subject} may fit: the check found nothing wrong ({found})"
        return VerdictParts(start, [], [*_too_few_draws(ksd), *_close(ksd), *_within_factor(check)])
    fails = "do not fit either" if has_impossible else "does not fit"
    reasons = [view_finding(check, ksd.sel(view=name)) for name in reason_views(check)]
    share = _share(ksd)
    further = [*share, *_close(ksd, has_share=bool(share)), *_within_factor(check)]
    return VerdictParts(f"{subject} {fails} ({found})", reasons, further)


def _kind(ksd: xr.Dataset) -> str:
    """The kind of a p-value after an inference, which means something else than that of a given model."""
    kind = str(ksd.attrs["kind"])
    return f"{kind} " if kind in POSTERIOR_KINDS else ""


def _share(ksd: xr.Dataset) -> list[str]:
    """How many sequences, at the least, do not come from the model; nothing if the bound is too low to tell much."""
    share = float(ksd["foreign_share_overall"]) if "foreign_share_overall" in ksd else 0.0
    if not share >= _LEAST_SHARE:
        return []
    return [f"at least {_percent(share)} of the sequences do not come from the model (a lower bound)"]


def _close(ksd: xr.Dataset, *, has_share: bool = False) -> list[str]:
    """Whether the misfit is larger than the tolerance, or demonstrably smaller.

    :param has_share: whether something was said of the sequences that do not come from the model.
    """
    if "tolerance" not in ksd.attrs:
        return []
    tolerance = float(ksd.attrs["tolerance"])
    p = float(ksd["tolerance_p_value_overall"])
    foreign = f"more than {_percent(tolerance)} of the sequences do not come from the model"
    if p <= float(ksd.attrs["level"]):
        larger = f"this share is larger than {_percent(tolerance)}" if has_share else foreign
        return [f"{larger} ({p_text(p)})"]
    upper = float(ksd["discrepancy_upper"].max())  # of the views that have a bound
    if upper <= tolerance:
        return [f"the misfit that the views see is demonstrably small (relative discrepancy at most {_percent(upper)})"]
    known = [] if math.isnan(p) else [p_text(p)]
    known += [] if math.isnan(upper) else [f"relative discrepancy at most {_percent(upper)}"]
    numbers = f" ({'; '.join(known)})" if known else ""
    return [f"the data do not show that {foreign}{numbers}"]


def _within_factor(check: Any) -> list[str]:
    """Which n-grams are off by more than a factor, or that none is.

    That all are within is said of symbols, then of pairs if it is true of symbols, and so on: tests in a fixed order
    need no correction for their number.
    """
    if not has_group(check, "ksd_factor"):
        return []
    factors = dataset(check, "ksd_factor")
    limit = f"off by more than a factor of {float(factors.attrs['tolerance']):.3g}"
    owners = factors["view_name"].values
    wrong = [name for name in view_names(check) if factors["outside"].values[owners == name].any()]
    if wrong:
        own = factors.isel(ngram=(owners == worst_view(check, wrong)) & factors["outside"].values)
        labels = [repr(str(label)) for label in own["label"].values[_farthest_first(own)]]
        named = listed(labels) if len(labels) < 3 else f"{labels[0]} and {len(labels) - 1} others"
        return [f"{named} {'is' if len(labels) == 1 else 'are'} {limit}"]
    size = len(alphabet_of(check))
    nouns = []
    numbers = []
    are_all = True
    for name in dict.fromkeys(owners.tolist()):
        own = factors.isel(ngram=owners == name)
        known = own["factor"].notnull().values
        if not known.any() or not own["within"].values[known].all():
            break
        widths = sorted({int(width) for width in (own["symbol"].values >= 0).sum(1)})
        are_all &= known.sum() == sum(size**width for width in widths)
        runs = f"of {widths[0]}" if len(widths) == 1 else f"of {widths[0]} to {widths[-1]}"
        noun, plural = {"of 1": ("symbol", "symbols"), "of 2": ("pair", "pairs")}.get(
            runs, (f"run {runs}", f"runs {runs}")
        )
        nouns.append(noun)
        numbers.append(f"{known.sum()} {noun if known.sum() == 1 else plural}")
    if not nouns:
        return [f"whether n-grams are {limit} is undecided"]
    if are_all:
        return [f"in the whole sequences, no {listed(nouns, 'or')} is {limit}"]
    return [f"in the whole sequences, none of the n-grams that were estimated ({', '.join(numbers)}) is {limit}"]


def _farthest_first(factors: xr.Dataset) -> NDArray[np.intp]:
    """The order of n-grams by how far their intervals are away from the factor 1."""
    low, high = (np.log(factors[name].values) for name in ("factor_low", "factor_high"))
    return np.argsort(-np.maximum(low, -high), kind="stable")


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _too_few_draws(ksd: xr.Dataset) -> list[str]:
    """What to add where the check had too few draws to find a fault.

    No p-value is below ``1 / (B + 1)``. Where only one view sees a fault, the overall one is up to ``1 / (s (B + 1))``,
    see :func:`draws_needed`. Data with a larger one are not the most extreme ones in any view, so more draws would
    hardly lower it to the level. (A posterior predictive check takes the largest statistic of all views, which needs no
    more draws than a single view.)
    """
    draws = int(ksd.attrs["num_bootstrap"])
    level = float(ksd.attrs["level"])
    kind = str(ksd.attrs["kind"])
    weights = [1.0]
    if kind != "posterior predictive":
        weights = ksd["weight"].values.tolist() if "weight" in ksd else [1.0] * ksd.sizes["view"]
    needed = draws_needed(weights, level)
    count = "1 draw" if draws == 1 else f"{draws} draws"
    more = f"num_bootstrap={needed} or more"
    if kind in POSTERIOR_KINDS:
        in_all = needed if kind == "posterior predictive" else draws_in_all(needed)
        more += f", from {in_all} or more posterior draws"
    if draws < draws_needed([1.0], level):
        return [f"but {count} cannot reach the level {level:g}, take {more}"]
    p = p_value_of_views(ksd)
    if draws >= needed or p > sum(weights) / min(weights) / (draws + 1) + 1e-9:
        return []
    return [f"but {count} {'is' if draws == 1 else 'are'} too few to tell, take {more}"]


def _impossible(check: Any) -> str:
    """The beginning of the sentence where some sequences are impossible under the model."""
    found = dataset(check, "ksd_impossible")
    total = num_sequences(check, "ksd_data")
    rows = [str(row) for row in found["sequence"].values[:3].tolist()]
    sites = [str(site) for site in found["site"].values[:3].tolist()]
    everywhere = f" at site {sites[0]}" if len(rows) > 1 and sites[0] and len(set(sites)) == 1 else ""
    shown = [f"{row} at site {site}" if site and not everywhere else row for row, site in zip(rows, sites, strict=True)]
    count = num_sequences(check, "ksd_impossible")
    dots = ", ..." if count > len(shown) else ""
    return (
        f"the model does not fit (p = 0): {count} of the {total} sequences {'is' if count == 1 else 'are'} impossible "
        f"under the model (index {', '.join(shown)}{dots}{everywhere})"
    )


def reason_views(check: Any) -> list[str]:
    """The views whose findings are the reasons of the verdict.

    Of views of n-grams only the worst that can name some is reported, and then no view of how sequences are arranged;
    of these, too, only the worst. Views that cannot say what is wrong are silent if others can. The probability of the
    sequences, which says little about what is wrong, is a reason if no other view can say more.
    """
    ksd = dataset(check, "ksd")
    finding = {name: view_finding(check, ksd.sel(view=name)) for name in speaking_views(check)}
    kinds = {name: feature_kind(ksd.sel(view=name)) for name in finding}
    naming = [name for name, words in finding.items() if words != unnamed(ksd.sel(view=name))]
    ngrams = _worst_naming(check, [name for name in finding if kinds[name] == "ngram"], naming)
    arranged = _worst_naming(check, [name for name in finding if kinds[name] in _ARRANGEMENT], naming)
    if set(ngrams) & set(naming):
        arranged = []
    grouped = ("ngram", *_ARRANGEMENT)
    reasons = [name for name in finding if kinds[name] not in grouped or name in (*ngrams, *arranged)]
    return [name for name in reasons if name in naming and kinds[name] != "surprise"] or reasons


def worst_view(check: Any, names: list[str]) -> str:
    """The worst of some views: of those that the verdict names, if it names any, else of all."""
    reasons = reason_views(check)
    return worst_first(check, [name for name in names if name in reasons] or names)[0]


def _worst_naming(check: Any, names: list[str], naming: list[str]) -> list[str]:
    """The worst of some views, if there are any; of those that can say what is wrong, if some can."""
    return worst_first(check, [name for name in names if name in naming] or names)[:1] if names else []
