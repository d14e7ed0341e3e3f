# SPDX-License-Identifier: Apache-2.0
"""ArviZ's own functions work on the groups of a check as they are, in both of its generations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from pyro_ksd.results.containers import dataset, to_inference_data

OLD = az.__version__.startswith("0.")
old = pytest.mark.skipif(not OLD, reason="for ArviZ 0.23")
new = pytest.mark.skipif(OLD, reason="for ArviZ 1.x")
pytestmark = pytest.mark.filterwarnings("ignore:Passing a dict or None as alias_mapping to normalize_kwargs")  # 0.23


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture
def observed(check: xr.DataTree) -> dict[str, float]:
    statistic = dataset(check, "ksd")["statistic"]
    return dict(zip(statistic["view"].values.tolist(), statistic.values.tolist(), strict=True))


@pytest.fixture
def predictive() -> xr.DataTree:
    """A made-up posterior predictive check: realized minus replicated statistic, for each draw of a posterior."""
    difference = np.random.default_rng(0).normal(1, size=(2, 100, 3))
    coords = {"chain": [0, 1], "draw": np.arange(100), "view": ["content-1", "content-2", "start"]}
    statistics = {"realized": difference, "replicated": 0 * difference, "difference": difference}
    group = xr.Dataset({name: (("chain", "draw", "view"), values) for name, values in statistics.items()}, coords)
    return xr.DataTree.from_dict({"ksd_ppc": group})


def lines_at(ax: Any) -> set[float]:
    """Where the vertical lines of a picture stand."""
    lines = [np.asarray(line.get_xdata(), dtype=float) for line in ax.lines]
    return {float(x[0]) for x in lines if len(x) == 2 and x[0] == x[1]}


def texts(figure: Any) -> str:
    """All that is written on a figure."""
    return " ".join(text.get_text() for text in figure.findobj(plt.Text))


@old
def test_null_draws_and_the_observed_value_by_plot_posterior(check: xr.DataTree, observed: dict[str, float]) -> None:
    spread = check["ksd_null"]["ksd"].std(("chain", "draw"))
    varying = {view: value for view, value in observed.items() if spread.sel(view=view) > 0}  # ArviZ warns of others
    assert len(varying) >= 5
    values = [{"view": view, "ref_val": value} for view, value in varying.items()]
    axes = az.plot_posterior(
        to_inference_data(check),
        group="ksd_null",
        var_names="ksd",
        coords={"view": list(varying)},
        ref_val={"ksd": values},
    )
    for ax, (view, value) in zip(axes.ravel(), varying.items(), strict=False):
        assert ax.get_title() == f"ksd\n{view}"
        assert value in lines_at(ax)


@new
def test_null_draws_and_the_observed_value_by_plot_dist(check: xr.DataTree, observed: dict[str, float]) -> None:
    picture = az.plot_dist(check, group="ksd_null", var_names="ksd")
    az.add_lines(picture, check["ksd"].to_dataset()[["statistic"]].rename(statistic="ksd"))
    for view, value in observed.items():
        ax = picture.get_viz("plot", "ksd", view=view)
        assert ax.get_title() == f"ksd\n{view}"
        assert value in lines_at(ax)


def test_forest_of_the_null_draws(check: xr.DataTree, observed: dict[str, float]) -> None:
    az.plot_forest(dataset(check, "ksd_null"), var_names=["ksd"], combined=True)
    assert all(view in texts(plt.gcf()) for view in observed)


def test_forest_of_the_contributions_of_sequences(check: xr.DataTree) -> None:
    contribution = dataset(check, "ksd")["contribution"].sel(view="content-2", drop=True)
    rows = contribution["sequence"].values[np.argsort(-contribution.values)[:5]]
    az.plot_forest(contribution.sel(sequence=rows).to_dataset().expand_dims(chain=[0], draw=[0]), combined=True)
    shown = texts(plt.gcf())
    assert all(str(row) in shown for row in rows)
    points = {float(x) for line in plt.gcf().findobj(plt.Line2D) for x in line.get_xdata()}
    points |= {
        float(x) for dots in plt.gcf().axes[-1].collections for x in np.ma.filled(dots.get_offsets(), np.nan)[:, 0]
    }
    assert all(np.isclose(value, list(points)).any() for value in contribution.sel(sequence=rows).values)


@old
def test_posterior_predictive_difference_in_the_old_generation(predictive: xr.DataTree) -> None:
    axes = az.plot_posterior(to_inference_data(predictive), group="ksd_ppc", var_names="difference", ref_val=0)
    assert all(0 in lines_at(ax) for ax in axes.ravel()[:3])
    (ax,) = az.plot_forest(dataset(predictive, "ksd_ppc"), var_names=["difference"], combined=True)
    ax.axvline(0)
    assert "difference[content-1]" in texts(ax.figure)
    assert 0 in lines_at(ax)


@new
def test_posterior_predictive_difference_in_the_new_generation(predictive: xr.DataTree) -> None:
    picture = az.plot_dist(predictive, group="ksd_ppc", var_names="difference")
    az.add_lines(picture, 0)
    assert all(0 in lines_at(picture.get_viz("plot", "difference", view=view)) for view in ("content-1", "start"))
    forest = az.plot_forest(predictive, group="ksd_ppc", var_names="difference", combined=True)
    ax = forest.get_viz("plot", column="forest")
    ax.axvline(0)
    assert "content-1" in texts(ax.figure)
    assert 0 in lines_at(ax)


def test_extract_and_summary(check: xr.DataTree, observed: dict[str, float]) -> None:
    container, draws = to_inference_data(check), dataset(check, "ksd_null")["ksd"]
    flat = az.extract(container, group="ksd_null", var_names="ksd")
    assert flat.sizes == {"view": len(observed), "sample": draws.sizes["draw"]}
    np.testing.assert_array_equal(flat.transpose("sample", "view"), draws[0])
    table = az.summary(container, group="ksd_null", var_names=["ksd"], kind="stats")
    assert table.index.tolist() == [f"ksd[{view}]" for view in observed]
    np.testing.assert_allclose(table["mean"].astype(float), draws.mean(("chain", "draw")), rtol=0.05, atol=0.05)


def test_the_page_on_results_runs(computed_check: xr.DataTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks but those for the other generation and, where there is no torch, those that need it."""
    page = Path(__file__).parents[2] / "docs" / "results.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert len(blocks) >= 12
    left_out = "# ArviZ 1.x" if OLD else "# ArviZ 0.23"
    assert sum(left_out in block for block in blocks) == 2
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"check": computed_check, "faulty": computed_check}
    for block in blocks:
        needs_torch = "torch" in block or "import pyro\n" in block
        if left_out in block or (needs_torch and find_spec("torch") is None):
            continue
        exec(compile(block, page.name, "exec"), names)
    assert len(plt.get_fignums()) >= 6
