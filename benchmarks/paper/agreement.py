# SPDX-License-Identifier: Apache-2.0
"""How well the twelve scenarios agree with the published figures, and what the rest may come from."""

from __future__ import annotations

import xarray as xr
from scipy.stats import betabinom

from benchmarks.paper.results import PUBLISHED, deviations, markdown, rates

FAR = 3  # standard errors


def agreement(results: dict[str, xr.Dataset]) -> list[str]:
    """The section on how many cells with J = 1, 3 and ∞ agree with the paper."""
    if not {"scenarios_csk", "scenarios_hamming", "ring_kernel"} <= set(results):
        return []
    csk, hamming, ring = (
        asked(deviations(results[name])) for name in ("scenarios_csk", "scenarios_hamming", "ring_kernel")
    )
    mixed = xr.concat([hamming.drop_sel(point=ring["point"].values), ring], "point")
    rows = [
        ["CSK", share_near(csk)],
        ["Hamming", share_near(hamming)],
        ["CSK and Hamming together", share_near(xr.concat([csk, hamming], "test", join="outer"))],
        ["Hamming, but the cyclic Gaussian kernel in the four random walks", share_near(mixed)],
        ["CSK and the row above together", share_near(xr.concat([csk, mixed], "test", join="outer"))],
    ]
    head = ["kernel", f"within {FAR} standard errors of the published figure"]
    return [
        "## How well the twelve scenarios agree\n\nOf the cells with J = 1, 3 and ∞, all kinds of edits:\n\n"
        f"{markdown(head, rows)}\n\nIn the random walks the paper calls its kernel Hamming, but its figures agree "
        "better with the cyclic Gaussian kernel: see [](#ring_kernel). With this kernel, the following cells still "
        f"differ (in standard errors): {_listed(csk)}; {_listed(mixed)}. The published figures vary more than the "
        "figures of independent runs would. They vary about as much as if the runs shared their null draws, which "
        "would explain most of these cells: see [](#shared_null)."
        f"{_falling()} For the MMD see [](#mmd_one_sample)."
    ]


def _falling() -> str:
    """The published curve of the one cell of the Hamming kernel that is left."""
    row = PUBLISHED["scenarios"]["binary, wrong order"]
    seven, nine, all_places = (row[f"Hamming ZS J={places}"] for places in ("7", "9", "∞"))
    return (
        f" An example is Hamming ZS in *binary, wrong order*: the published rates decrease from {seven:.3f} (J = 7) to "
        f"{nine:.3f} (J = 9) and {all_places:.3f} (J = ∞), although they should increase."
    )


def asked(far: xr.DataArray) -> xr.DataArray:
    """The tests with J = 1, 3 and ∞."""
    tests = [str(test) for test in far["test"].values]
    return far.sel(test=[test for test in tests if test.endswith(("J=1", "J=3", "J=∞"))])


def share_near(far: xr.DataArray) -> str:
    """How many of the known deviations are not far."""
    known = int(far.notnull().sum())
    return f"{int((far <= FAR).sum())} of {known} ({float((far <= FAR).sum()) / known:.1%})"


def outside(far: xr.DataArray) -> str:
    """Which cells are far from the published figures, and how far all are."""
    return (
        f"In standard errors they are off by: {_listed(far)}. Over all cells the root mean square is "
        f"{_root_mean_square(far):.2f}; it would be 1 if the rates of the paper and ours differed by binomial chance "
        "alone."
    )


def shared_null_text(result: xr.Dataset) -> str:
    """Whether null draws that are shared by runs explain how far the published figures are from precise ones."""
    added = added_variance(result)
    runs = result.attrs["published_runs"]
    group = int(result["runs"].max())
    independent, grouped, together = (
        published_deviations(result, variance) for variance in (0 * added, added / (runs // group), added)
    )
    rows = [
        [words, f"{_root_mean_square(far):.2f}", share_near(far), _listed(far)]
        for words, far in (
            (f"{runs} independent runs", independent),
            (f"{runs // group} groups of {group} runs that share their null draws", grouped),
            (f"{runs} runs that share their null draws", together),
        )
    ]
    head = ["if a published figure comes from", "root mean square", f"within {FAR} standard errors", "the others"]
    spread = float((result["rejected"] / result["runs"]).var("repetition", ddof=1).mean() ** 0.5)
    chance = float(_binomial_variance(result).mean() ** 0.5)
    return (
        "If the null data sets of a test are drawn once and used for many data sets, all runs have the same threshold, "
        f"so they err in the same direction. Here, {group} runs share {group} null draws, and this is repeated "
        f"{result.sizes['repetition']} times. The rates of these groups have a standard deviation of {spread:.3f} "
        f"(root mean square over the cells). By binomial chance alone, it would be {chance:.3f}.\n\n"
        "The mean over the groups is more precise than a published figure. So their distance shows how much the "
        f"published figures vary. In standard errors of the difference:\n\n{markdown(head, rows)}\n\n"
        "The published figures vary more than the figures of independent runs would, and about as much as if the runs "
        "shared their null draws. We do not know whether they did."
        f"{_left_over(result, grouped)}"
    )


def _left_over(result: xr.Dataset, far: xr.DataArray) -> str:
    """How improbable by chance the cells are that are far, without the normal approximation."""
    cells = far.stack(cell=["point", "test"])
    text = ""
    for point, test in cells["cell"].values[(cells > FAR).values]:
        rate = float(rates(result).sel(point=point, test=test))
        tail = chance(result, point, test)
        any_cell = 1 - (1 - tail) ** int(far.notnull().sum())
        text += (
            f" As to {test} in *{point}*: at a rate of {rate:.3f} standard errors mislead. Independent runs have a "
            f"count as far from it as the published one with probability {tail:.4f}, and the most improbable of "
            f"{int(far.notnull().sum())} cells is at least as improbable with probability {any_cell:.2f}."
        )
    return text


def chance(result: xr.Dataset, point: str, test: str) -> float:
    """Two-sided, of the published count given ours: the rate has a uniform prior."""
    here = {"point": point, "test": test}
    runs = result.attrs["published_runs"]
    rejected, total = (int(result[name].sel(here).sum()) for name in ("rejected", "runs"))
    law = betabinom(runs, rejected + 1, total - rejected + 1)
    count = round(float(result["published"].sel(here)) * runs)
    return float(min(1.0, 2 * min(law.cdf(count), law.sf(count - 1))))


def published_deviations(result: xr.Dataset, added: xr.DataArray) -> xr.DataArray:
    """The distance of published figures from the mean over the repetitions, in standard errors of the difference.

    :param added: the variance that a published figure has beside that of binomial chance.
    """
    count = result.sizes["repetition"]
    runs = result.attrs["published_runs"]
    own = (result["rejected"] / result["runs"]).var("repetition", ddof=1) / count
    middle = (rates(result) * runs + 1) / (runs + 2)  # a rate of 0 or 1 is not known without error
    distance: xr.DataArray = (
        abs(rates(result) - result["published"]) / (middle * (1 - middle) / runs + added + own) ** 0.5
    )
    return distance


def added_variance(result: xr.Dataset) -> xr.DataArray:
    """By how much the variance of the rates of the repetitions exceeds that of binomial chance; at least 0."""
    excess: xr.DataArray = (result["rejected"] / result["runs"]).var("repetition", ddof=1) - _binomial_variance(result)
    return excess.clip(min=0)


def _binomial_variance(result: xr.Dataset) -> xr.DataArray:
    rate = result["rejected"] / result["runs"]
    variance: xr.DataArray = (rate * (1 - rate) / (result["runs"] - 1)).mean("repetition")
    return variance


def _root_mean_square(far: xr.DataArray) -> float:
    return float((far**2).mean() ** 0.5)


def _listed(far: xr.DataArray) -> str:
    """The cells that are far, the farthest first."""
    cells = far.stack(cell=["point", "test"])
    bold = cells[cells > FAR].sortby(cells[cells > FAR], ascending=False)
    return "; ".join(
        f"{test} in *{point}* {float(bold.sel(point=point, test=test)):.1f}" for point, test in bold["cell"].values
    )
