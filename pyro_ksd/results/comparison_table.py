# SPDX-License-Identifier: Apache-2.0
"""A comparison in words: one row for each model, the best one first."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from pyro_ksd.results.check_table import Summary
from pyro_ksd.results.containers import dataset, has_group
from pyro_ksd.results.findings import listed
from pyro_ksd.results.p_values import p_text

RULED_OUT = "ruled out"
"""How the finding of a model begins that gives probability zero to some sequences, where the best one does not."""

_FEW = 100
"""Sequences below which the normal approximation may be poor; the number that ``arviz.compare`` warns at."""

_COLUMNS = ["rank", "ksd", "se", "d_ksd", "d_se", "z", "p_value", "diagnostic", "finding"]


class Ranking(Summary):
    """A table that shows its words in full, and what they mean beneath them."""

    @property
    def _constructor(self) -> type[Summary]:
        return Ranking

    def _caption(self) -> str:
        pairs = self.attrs["pairs"]
        adjusted = f", times the {pairs} pairs of models that the best was picked from" if pairs > 1 else ""
        return (
            f"{self.attrs['verdict']}. (ksd: all views together, the smaller the better; p_value: two-sided, of the "
            f"difference d_ksd to the best{adjusted})"
        )


def compare_table(comparison: Any) -> Ranking:
    r"""One row for each model, the best one first, in the manner of ``arviz.compare``.

    The columns are the ``rank``, 0 for the best model; ``ksd``, the statistic of all views together, with its standard
    error ``se``; the difference ``d_ksd`` to the best model, with its standard error ``d_se``, their ratio ``z`` and
    the ``p_value``; the ``diagnostic``, what to beware of; and the ``finding``. Models that give probability zero to
    some sequences come after those that give it to none.

    Diagnostics are ``N < 100`` where the p-value may be off because there are so few sequences, as ``arviz.compare``
    says it; ``no spread`` where the difference does not vary; and ``impossible: 3`` for a model that gives probability
    zero to three sequences. Most rows have none.

    The best of :math:`K` models is picked by the same data, so the p-value is that of the pair times the number
    :math:`K (K - 1) / 2` of pairs (Bonferroni): if all models fit equally well, the probability of calling any of them
    worse is at most the level.

    :param comparison: what :func:`pyro_ksd.ksd_compare` gave, or what was loaded from its file.

    >>> from pyro_ksd import ksd_compare
    >>> from pyro_ksd.examples import random_walk
    >>> models = {"moves": random_walk(3), "rests": random_walk(3, hold=0.5)}
    >>> data = ["aabb", "bbccc", "caa", "abbc", "cc", "bbaa"] * 3
    >>> table = compare_table(ksd_compare(models, data, progress=False))
    >>> table["finding"].to_dict()
    {'rests': 'best', 'moves': 'worse (p = ...)'}
    """
    found = _overall(comparison)
    names = [str(name) for name in found["model"].values]
    impossible = _impossible_counts(comparison)
    ruled_out = [impossible.get(name, 0) > 0 for name in names]
    order = np.lexsort((found["statistic"].values, np.array(ruled_out))).tolist()
    best = order[0]
    pairs = len(names) * (len(names) - 1) // 2
    level = float(found.attrs["level"])
    to_best = found.isel(model_bis=best)
    p_values = np.minimum(1.0, pairs * to_best["p_value"].values)
    findings = [_finding(float(to_best["z"][index]), float(p_values[index]), level) for index in range(len(names))]
    findings[best] = "best"
    for index, name in enumerate(names):
        if ruled_out[index] > ruled_out[best]:
            findings[index] = f"{RULED_OUT}: probability zero for {impossible[name]} sequence(s)"
    rows = []
    for index in order:
        own = to_best.isel(model=index)
        z_and_p = [np.nan, np.nan]
        if index != best:
            z_and_p = [float(own["z"]), float(p_values[index])]
        numbers = [float(own[name]) for name in ("statistic", "standard_error", "difference", "difference_error")]
        diagnostic = _diagnostic(own, impossible.get(names[index], 0), found.attrs["num_sequences"], index == best)
        rows.append([int(own["rank"]), *numbers, *z_and_p, diagnostic, findings[index]])
    table = Ranking(rows, index=[names[index] for index in order], columns=_COLUMNS)
    table.index.name = "model"
    decided = ("best", "worse", RULED_OUT)
    as_good = [name for name, finding in table["finding"].items() if not finding.startswith(decided)]
    table.attrs |= {
        "verdict": _verdict(comparison, names[best], as_good, any(ruled_out) and not ruled_out[best]),
        "pairs": pairs,
        "level": level,
        "reach": _reach(found, level / pairs),
    }
    return table


def _overall(comparison: Any) -> xr.Dataset:
    """The comparison in all views together.

    :raises ValueError: if it is something else.
    """
    return dataset(comparison, "ksd_compare", "model", "view", name="comparison").sel(view="overall")


def _reach(found: xr.Dataset, level: float) -> float:
    """How many standard errors an interval reaches to each side, by the distribution that the p-values have.

    It is a t distribution, in files of earlier versions a normal one.

    :param found: the comparison in all views together.
    :param level: of one pair of models.
    """
    from scipy.special import ndtr, ndtri, stdtrit

    quantile = 1 - level / 2
    if np.allclose(found["p_value"].values, 2 * ndtr(-np.abs(found["z"].values))):
        return float(ndtri(quantile))
    return float(stdtrit(found.attrs["num_sequences"] - 1, quantile))


def _finding(z: float, p: float, level: float) -> str:
    if z == 0:
        return "cannot be told apart from the best: their difference does not vary"
    return f"{'worse' if p <= level else 'may be as good'} ({p_text(p)})"


def _diagnostic(own: xr.Dataset, num_impossible: int, num_sequences: int, is_best: bool) -> str:
    """What to beware of in the row of a model; nothing in most.

    :param own: the comparison of the model with the best one.
    """
    cautions = {
        f"N < {_FEW}": num_sequences < _FEW and not is_best,
        "no spread": float(own["z"]) == 0 and not is_best,
        f"impossible: {num_impossible}": num_impossible > 0,
    }
    return ", ".join(words for words, holds in cautions.items() if holds)


def _verdict(comparison: Any, best: str, as_good: list[str], has_ruled_out: bool) -> str:
    """The result in one sentence, and one more for each model that calls sequences impossible.

    :param has_ruled_out: whether models were ruled out, the best one not among them.
    """
    total = dataset(comparison, "ksd_data").sizes["sequence"]
    used = int(dataset(comparison, "ksd_compare").attrs["num_sequences"])
    data = f"all {total} sequences" if used == total else f"the {used} of {total} sequences that all models can make"
    chosen = f"of the models that can have made all {total} sequences, " if has_ruled_out else ""
    sentence = f"{chosen}{best!r} comes closest to {data}"
    if as_good:
        sentence += f", but {listed([repr(name) for name in as_good])} may be as good"
    return ". ".join([sentence, *_impossible(comparison, total), *_without_lengths(comparison)])


def _without_lengths(comparison: Any) -> list[str]:
    """What was not compared because some model has no distribution of the length."""
    names = json.loads(dataset(comparison, "ksd_compare").attrs.get("without_lengths", "[]"))
    if not names:
        return []
    told = listed([repr(name) for name in names])
    verb = "gives" if len(names) == 1 else "give"
    return [f"Lengths were not compared, and there is no view 'length': {told} {verb} no probability to them"]


def _impossible(comparison: Any, total: int) -> list[str]:
    return [
        f"{name!r} is ruled out: it gives probability zero to {count} of the {total}"
        for name, count in _impossible_counts(comparison).items()
        if count
    ]


def _impossible_counts(comparison: Any) -> dict[str, int]:
    """The number of sequences to which each model gives probability zero, by its name; nothing if there are none."""
    if not has_group(comparison, "ksd_compare_impossible"):
        return {}
    found = dataset(comparison, "ksd_compare_impossible")["impossible"]
    return {str(name): int(found.sel(model=name).sum()) for name in found["model"].values}
