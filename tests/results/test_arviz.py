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
from synthetic import made_up_check, made_up_posterior_check

from pyro_ksd.plots.overview import plot_check
from pyro_ksd.results.containers import POSTERIOR_OF_CHECK, dataset, extend, has_group, to_inference_data
from pyro_ksd.results.files import load
from pyro_ksd.results.verdicts import verdict

OLD = az.__version__.startswith("0.")
old = pytest.mark.skipif(not OLD, reason="for ArviZ 0.23")
new = pytest.mark.skipif(OLD, reason="for ArviZ 1.x")
pytestmark = [
    pytest.mark.filterwarnings("ignore:Passing a dict or None as alias_mapping to normalize_kwargs"),  # 0.23
    pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.sort_values"),  # 0.23
    pytest.mark.filterwarnings("ignore:Deleting a single level of a MultiIndex"),  # 1.3, of some draws
]


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
    return made_up_posterior_check()


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


@old
def test_lengths_of_data_and_replicated_data_by_plot_ppc(check: xr.DataTree) -> None:
    ax = az.plot_ppc(to_inference_data(check), var_names="length", kind="cumulative", num_pp_samples=10)
    lines = {line.get_label(): line for line in ax.lines}
    observed = check["observed_data"]["length"].values
    x, y = lines["Observed"].get_data()
    for length in np.unique(observed):
        assert np.max(y[x <= length]) == pytest.approx((observed <= length).mean(), abs=1 / len(observed))
    assert "length" in texts(ax.figure)


@old
def test_all_numbers_in_one_call_of_plot_ppc_and_plot_bpv(check: xr.DataTree) -> None:
    names = {"length", "distinct_symbols", "symbol_count"}
    for plot in (az.plot_ppc, az.plot_bpv):
        axes = plot(to_inference_data(check))
        assert all(name in texts(axes.ravel()[0].figure) for name in names)


@old
def test_the_share_of_larger_replicated_means_by_plot_bpv(check: xr.DataTree) -> None:
    ax = az.plot_bpv(to_inference_data(check), var_names="length", kind="t_stat", t_stat="mean", bpv=True)
    observed = float(check["observed_data"]["length"].mean())
    replicated = check["posterior_predictive"]["length"].mean("sequence")
    assert f"bpv={float((replicated <= observed).mean()):.2f}" in texts(ax.figure)


@new
def test_lengths_of_data_and_replicated_data_by_plot_ppc_rootogram(check: xr.DataTree) -> None:
    picture = az.plot_ppc_rootogram(check, var_names="length")
    dots = picture.get_viz("observed_markers", "length")
    values, counts = np.unique(check["observed_data"]["length"], return_counts=True)
    np.testing.assert_array_equal(dots.get_offsets()[:, 0], values)
    np.testing.assert_allclose(dots.get_offsets()[:, 1], counts)


@new
def test_one_symbol_by_plot_ppc_rootogram(check: xr.DataTree) -> None:
    symbol = str(check["observed_data"]["symbol"].values[1])
    picture = az.plot_ppc_rootogram(check, var_names="symbol_count", coords={"symbol": symbol})
    dots = picture.get_viz("observed_markers", "symbol_count")
    values = np.unique(check["observed_data"]["symbol_count"].sel(symbol=symbol))
    np.testing.assert_array_equal(dots.get_offsets()[:, 0], values)


@new
def test_the_mean_length_by_plot_ppc_tstat(check: xr.DataTree) -> None:
    picture = az.plot_ppc_tstat(check, t_stat="mean")
    for name in ("length", "distinct_symbols", "symbol_count"):
        dots = picture.get_viz("observed_tstat", name)
        assert dots.get_offsets()[0][0] == pytest.approx(float(check["observed_data"][name].mean()))


@new
def test_all_numbers_by_plot_ppc_dist(check: xr.DataTree) -> None:
    with pytest.warns(UserWarning, match="look discrete"):
        picture = az.plot_ppc_dist(check)
    for name in ("length", "distinct_symbols", "symbol_count"):
        assert picture.get_viz("plot", name).get_title() == name
        observed = picture.get_viz("observed_dist", name)
        assert len(observed.get_xdata()) > 1


@new
def test_predictive_intervals_and_probability_integral_transforms(check: xr.DataTree) -> None:
    picture = az.plot_ppc_interval(check, var_names=["length"])
    drawn = picture.get_viz("observed_markers", "length").get_offsets()[:, 1]
    np.testing.assert_array_equal(np.sort(drawn), np.sort(check["observed_data"]["length"]))
    ax = az.plot_ppc_pit(check, var_names=["length"]).get_viz("plot", "length")
    assert len(ax.lines[0].get_xdata()) > 1


@new
def test_ecdf_pit_of_the_posterior(predictive: xr.DataTree) -> None:
    rate = predictive["posterior"]["rate"]
    uniform = (rate.argsort(1).argsort(1) / 99).to_dataset(name="rate")
    ax = az.plot_ecdf_pit(xr.DataTree.from_dict({"prior_sbc": uniform.isel(chain=0)}), sample_dims="draw").get_viz(
        "plot", "rate"
    )
    assert max(abs(y) for line in ax.lines for y in np.atleast_1d(line.get_ydata())) < 0.5


def test_log_likelihoods_give_elpds_and_compare_models(predictive: xr.DataTree) -> None:
    values = predictive["log_likelihood"]["token"].values
    better = made_up_posterior_check(better=0.5)
    found = az.loo(to_inference_data(predictive), pointwise=True)
    elpd = float(found.elpd_loo if OLD else found.elpd)
    importance = -np.log(np.exp(-values).mean((0, 1))).sum()  # without smoothing
    assert elpd == pytest.approx(importance, abs=0.01)
    assert (np.asarray(found.pareto_k) < 0.7).all()
    table = az.compare({"first": to_inference_data(predictive), "second": to_inference_data(better)})
    assert table.index.tolist() == ["second", "first"]
    assert table["rank"].tolist() == [0, 1]
    assert abs(float(table["elpd_diff"].iloc[1])) == pytest.approx(15, abs=0.5)
    az.plot_compare(table)
    assert {"first", "second"} <= set(texts(plt.gcf()).split())
    az.plot_khat(found)
    assert plt.gcf().axes


def test_the_posterior_of_a_check_is_summarized_and_traced(predictive: xr.DataTree) -> None:
    container = to_inference_data(predictive)
    table = az.summary(container, var_names=["rate"])
    assert float(table.loc["rate", "mean"]) == pytest.approx(float(predictive["posterior"]["rate"].mean()), abs=0.06)
    az.plot_trace(container, var_names=["rate"])
    drawn = [np.asarray(line.get_ydata(), dtype=float) for line in plt.gcf().findobj(plt.Line2D)]
    first = predictive["posterior"]["rate"].sel(chain=0).values
    assert any(line.shape == first.shape and np.allclose(line, first) for line in drawn)
    assert float(az.ess(container)["rate"]) > 50
    assert float(az.rhat(container)["rate"]) < 1.05


def users_own(predictive: xr.DataTree, draws: int = 100) -> xr.DataTree:
    """An inference of a user, with predictive draws and data of its own."""
    replicated = np.random.default_rng(1).poisson(3.0, (2, draws, 5))
    groups = {
        "posterior": predictive["posterior"]
        .to_dataset()
        .isel(draw=np.arange(draws) % 100)
        .assign_coords(draw=np.arange(draws)),
        "posterior_predictive": xr.Dataset({"y": (("chain", "draw", "day"), replicated)}),
        "observed_data": xr.Dataset({"y": ("day", [1, 2, 3, 4, 5])}),
    }
    return xr.DataTree.from_dict(groups)


def test_a_check_in_the_container_of_a_user_is_drawn_as_it_is(predictive: xr.DataTree) -> None:
    joined = extend(to_inference_data(users_own(predictive)), predictive)
    for name in ("length", "y"):
        if OLD:
            az.plot_ppc(joined, var_names=name)
        else:
            az.plot_ppc_rootogram(joined, var_names=name)
        assert name in texts(plt.gcf())
    elpd = [az.loo(one) for one in (joined, to_inference_data(predictive))]
    assert elpd[0].iloc[0] == elpd[1].iloc[0] if OLD else elpd[0].elpd == elpd[1].elpd


def test_draws_that_do_not_fit_into_a_container_are_left_out_with_words(predictive: xr.DataTree) -> None:
    with pytest.warns(UserWarning, match="posterior_predictive and log_likelihood of the check was left out; .*num_b"):
        joined = extend(to_inference_data(users_own(predictive, draws=150)), predictive)
    assert list(dataset(joined, "posterior_predictive").data_vars) == ["y"]
    assert not has_group(joined, "log_likelihood")
    assert {"y", "length"} <= set(dataset(joined, "observed_data").data_vars)
    with pytest.warns(UserWarning, match="posterior_predictive of the check was left out; pass the check itself"):
        again = extend(joined, made_up_check())  # without a posterior
    assert {"y", "length"} <= set(dataset(again, "observed_data").data_vars)


def test_a_later_check_takes_the_numbers_of_an_earlier_one_away(predictive: xr.DataTree) -> None:
    joined = extend(to_inference_data(xr.DataTree()), predictive)
    assert dataset(joined, "posterior").equals(predictive["posterior"].to_dataset())
    marked = predictive.copy()
    marked["posterior"].attrs["source"] = POSTERIOR_OF_CHECK
    joined = extend(extend(to_inference_data(xr.DataTree()), marked), made_up_check())
    assert not has_group(joined, "log_likelihood")
    assert not has_group(joined, "posterior")
    assert dataset(joined, "posterior_predictive").sizes["draw"] == 60


def test_arvizs_own_way_to_join_containers(check: xr.DataTree, predictive: xr.DataTree) -> None:
    """The data of the user stay, or are replaced; the check can be drawn either way."""
    container = to_inference_data(users_own(predictive))
    if OLD:
        container.extend(to_inference_data(check))
        assert list(dataset(container, "observed_data").data_vars) == ["y"]
    else:
        container.update(check)
    axes = np.ravel(plot_check(container))
    assert texts(axes[0].figure) == texts(np.ravel(plot_check(check))[0].figure)
    assert verdict(container) == verdict(check)


def test_arvizs_own_files(predictive: xr.DataTree, tmp_path: Path) -> None:
    container = to_inference_data(predictive)
    container.to_netcdf(str(tmp_path / "check.nc"))
    again = az.from_netcdf(str(tmp_path / "check.nc"))
    tree = container.to_datatree() if OLD else container  # as ArviZ 0.23 says for zarr 3
    tree.to_zarr(str(tmp_path / "check.zarr"), zarr_format=2)
    for found in (again, load(tmp_path / "check.nc"), load(tmp_path / "check.zarr")):
        for group in predictive.children:
            xr.testing.assert_equal(dataset(found, group), predictive[group].to_dataset())


def test_the_page_on_results_runs(computed_check: xr.DataTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks but those for the other generation and, where there is no torch, those that need it."""
    page = Path(__file__).parents[2] / "docs" / "results.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert len(blocks) >= 12
    left_out = "# ArviZ 1.x" if OLD else "# ArviZ 0.23"
    assert sum(left_out in block for block in blocks) == 3
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"check": computed_check, "faulty": computed_check}
    for block in blocks:
        needs_torch = "torch" in block or "import pyro\n" in block
        if left_out in block or (needs_torch and find_spec("torch") is None):
            continue
        exec(compile(block, page.name, "exec"), names)
    assert len(plt.get_fignums()) >= 6
