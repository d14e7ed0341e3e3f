# SPDX-License-Identifier: Apache-2.0
"""The qualitative claims of the paper, and whether they hold in the results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import xarray as xr

from benchmarks.paper.results import mean_rates, rates, standard_errors

_CLEARLY = 3  # standard errors


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    :param text: the claim.
    :param where: the experiment that shows it.
    :param figures: our figures.
    :param holds: whether they bear it out.
    """

    text: str
    where: str
    figures: str
    holds: bool


def claims(results: dict[str, xr.Dataset]) -> list[Claim]:
    """All of them whose experiments are among the results."""
    found: list[tuple[tuple[str, ...], Callable[..., Claim]]] = [
        (("scenarios_csk",), _more_edits),
        (("scenarios_hamming",), _more_edits),
        (("scenarios_csk", "scenarios_hamming"), _better_kernel),
        (("scenarios_csk",), _substitutions_suffice),
        (("scenarios_csk",), _better_than_mmd),
        (("symbols",), _sparse_symbols),
        (("balancing",), _flow),
        (("perturbed_walk",), partial(_perturbed, rival="MMD")),
        (("perturbed_walk",), partial(_perturbed, rival="LR, order 1")),
        (("long_sequences",), _longer),
        (("length",), _blind_to_length),
        (("mrf_concentration",), _field),
        (("mrf_concentration",), _field_flow),
        (("mrf_concentration",), _double),
        (("mrf_size",), _more_data),
        (("language_model",), _questions),
    ]
    return [claim(*(results[name] for name in names)) for names, claim in found if set(names) <= set(results)]


def _more_edits(result: xr.Dataset) -> Claim:
    means = mean_rates(result)
    shown = []
    holds = True
    names = [str(test) for test in result["test"].values]
    for group in dict.fromkeys(name.split(" J=")[0] for name in names if " J=" in name):
        found = [float(means.sel(test=f"{group} J={number}")) for number in ("1", "3", "∞")]
        holds &= found[0] < found[1] < found[2]
        shown.append(f"{group} {found[0]:.3f}, {found[1]:.3f}, {found[2]:.3f}")
    where = result.attrs["experiment"]
    figures = f"J = 1, 3, ∞: {'; '.join(shown)}"
    return Claim("Edits at more places have more power.", where, figures, holds)


def _better_kernel(csk: xr.Dataset, hamming: xr.Dataset) -> Claim:
    better = mean_rates(csk)
    worse = mean_rates(hamming)
    tests = [str(test).removeprefix("Hamming ") for test in hamming["test"].values]
    gains = [float(better.sel(test=f"CSK {test}")) - float(worse.sel(test=f"Hamming {test}")) for test in tests]
    figures = f"mean power higher by {min(gains):.3f} to {max(gains):.3f}, in all {len(gains)} pairs of tests"
    return Claim("CSK has more power than Hamming.", "scenarios_hamming", figures, min(gains) > 0)


def _substitutions_suffice(result: xr.Dataset) -> Claim:
    both, alone = (float(mean_rates(result).sel(test=f"CSK {family} J=∞")) for family in ("ZS", "ZS′"))
    figures = f"CSK, J = ∞: ZS {both:.3f}, ZS′ {alone:.3f}"
    text = "Substitutions alone (ZS′) are about as good as all edits (ZS)."
    return Claim(text, "scenarios_csk", figures, abs(both - alone) < 0.02)


def _better_than_mmd(result: xr.Dataset) -> Claim:
    means = mean_rates(result)
    found = {test: float(means.sel(test=test)) for test in ("CSK ZS J=∞", "CSK ZS′ J=∞", "CSK MMD")}
    holds = min(found["CSK ZS J=∞"], found["CSK ZS′ J=∞"]) > found["CSK MMD"]
    return Claim(
        "On average over the scenarios the KSD with J = ∞ beats the MMD.", "scenarios_csk", _listed(found), holds
    )


def _sparse_symbols(result: xr.Dataset) -> Claim:
    means = mean_rates(result)
    tests = [str(test) for test in result["test"].values]
    spreads = {}
    for group in dict.fromkeys(test.split(" d=")[0] for test in tests):
        found = [float(means.sel(test=test)) for test in tests if test.startswith(f"{group} d=")]
        spreads[group] = max(found) - min(found)
    figures = "largest difference between radii: " + ", ".join(
        f"{group} {value:.3f}" for group, value in spreads.items()
    )
    return Claim(
        "The size of the symbol neighborhood hardly matters.", "symbols", figures, max(spreads.values()) < 0.04
    )


def _flow(result: xr.Dataset) -> Claim:
    means = mean_rates(result)
    shown = []
    holds = True
    for group in ("CSK ZS J=7", "CSK ZS J=∞", "CSK ZS′ J=7", "CSK ZS′ J=∞"):
        found = {name: float(means.sel(test=f"{group} {name}")) for name in ("barker", "mpf", "metropolis")}
        holds &= found["mpf"] > found["barker"]
        shown.append(
            f"{group.removeprefix('CSK ')}: " + ", ".join(f"{name} {value:.3f}" for name, value in found.items())
        )
    return Claim("MPF has at least the power of Barker.", "balancing", "; ".join(shown), holds)


def _perturbed(result: xr.Dataset, rival: str) -> Claim:
    means = mean_rates(result)
    found = {name: float(means.sel(test=name)) for name in ("KSD", rival, "LR, oracle")}
    figures = f"mean over the curve: {_listed(found)}"
    return Claim(f"For a rare fault the KSD beats {rival}.", "perturbed_walk", figures, found["KSD"] > found[rival])


def _longer(result: xr.Dataset) -> Claim:
    ends = rates(result).sel(test="KSD").isel(point=[0, -1]).values
    figures = f"KSD {ends[0]:.3f} at the shortest, {ends[1]:.3f} at the longest"
    return Claim("Longer sequences give more power.", "long_sequences", figures, bool(ends[1] > ends[0] + 0.3))


def _blind_to_length(result: xr.Dataset) -> Claim:
    last = rates(result).isel(point=-1)
    found = {name: float(last.sel(test=name)) for name in ("KSD", "KSD, length view", "LR, oracle")}
    figures = "data of mean length 20 in place of 8: " + ", ".join(
        f"{name} {value:.3f}" for name, value in found.items()
    )
    holds = found["KSD"] < 0.1 and found["KSD, length view"] > 0.99
    return Claim(
        "The paper's KSD has no power for the length; the length view of this package has.", "length", figures, holds
    )


def _field(result: xr.Dataset) -> Claim:
    away = result.sel(point=result["point"] != 1.0)
    gain = rates(away).sel(test="KSD") - rates(away).sel(test="MMD")
    figures = f"KSD above MMD by {float(gain.min()):.3f} to {float(gain.max()):.3f} at all θ ≠ 1"
    return Claim(
        "In the Markov random field the MMD is below the KSD.", "mrf_concentration", figures, bool((gain > 0).all())
    )


def _field_flow(result: xr.Dataset) -> Claim:
    gain, error = _difference(result, "KSD, MPF", "KSD")
    figures = f"MPF minus Barker: {float(gain.min()):+.3f} to {float(gain.max()):+.3f}"
    holds = bool((gain > -_CLEARLY * error).all()) and float(gain.mean()) > 0
    return Claim(
        "In the Markov random field MPF has at least the power of Barker.", "mrf_concentration", figures, holds
    )


def _double(result: xr.Dataset) -> Claim:
    gain, _ = _difference(result, "KSD, double edits", "KSD")
    figures = f"double edits minus single ones: {float(gain.min()):+.3f} to {float(gain.max()):+.3f}"
    return Claim("Double substitutions bring nothing.", "mrf_concentration", figures, float(gain.mean()) < 0.02)


def _questions(result: xr.Dataset) -> Claim:
    means = mean_rates(result)
    found = {name: float(means.sel(test=name)) for name in ("KSD, ZS", "KSD, ZS′", "MMD")}
    holds = min(found["KSD, ZS"], found["KSD, ZS′"]) > found["MMD"]
    figures = f"mean over the curve: {_listed(found)}"
    return Claim("For questions of a language model both KSD tests beat the MMD.", "language_model", figures, holds)


def _more_data(result: xr.Dataset) -> Claim:
    rate = rates(result)
    ends = {test: rate.sel(test=test).isel(point=[0, -1]).values for test in ("KSD", "MMD", "LR, order 1")}
    figures = "; ".join(f"{test} from {few:.3f} to {many:.3f}" for test, (few, many) in ends.items())
    holds = bool((rate.sel(test="KSD") > rate.sel(test="MMD")).all())
    return Claim("The KSD makes more of more data than the MMD.", "mrf_size", figures, holds)


def _listed(found: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in found.items())


def _difference(result: xr.Dataset, one: str, other: str) -> tuple[xr.DataArray, xr.DataArray]:
    """The difference of two rates and its standard error, at all points."""
    rate = rates(result)
    error = standard_errors(result)
    return rate.sel(test=one) - rate.sel(test=other), (error.sel(test=one) ** 2 + error.sel(test=other) ** 2) ** 0.5
