# SPDX-License-Identifier: Apache-2.0
"""The picture of a posterior predictive check."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex
from pictures import GRAY, PURPLE, as_axes
from synthetic import VIEWS, made_up_check

from pyro_ksd import plots

plot_discrepancy = as_axes(plots.plot_discrepancy)


def made_up_predictive_check() -> xr.DataTree:
    random = np.random.default_rng(0)
    replicated, realized = random.gamma(2, 0.1, (2, 30, 5)), random.gamma(2, 0.1, (2, 30, 5))
    realized[..., 1] += 3
    values = {"realized": realized, "replicated": replicated, "difference": realized - replicated}
    ppc = xr.Dataset(
        {name: (("chain", "draw", "view"), value) for name, value in values.items()},
        coords={"chain": [0, 1], "draw": np.arange(30), "view": np.array(VIEWS, dtype=object)},
    )
    return made_up_check().assign({"ksd_ppc": xr.DataTree(ppc)})


def test_every_draw_stands_on_its_side_of_the_diagonal() -> None:
    check = made_up_predictive_check()
    axes = plot_discrepancy(check)
    assert len(axes) == 5
    for ax, name in zip(axes, VIEWS, strict=True):
        points = {"o": None, "D": None, "None": None} | {drawn.get_marker(): drawn for drawn in ax.lines}
        fits, against = points["o"].get_xydata(), points["D"].get_xydata()
        assert len(fits) + len(against) == 60
        assert (fits[:, 1] >= fits[:, 0]).all()
        assert (against[:, 1] < against[:, 0]).all()
        assert [to_hex(points[marker].get_color()) for marker in "oD"] == [GRAY, PURPLE]
        x, y = points["None"].get_data()
        assert x.tolist() == y.tolist() == list(ax.get_xlim())
        assert ax.get_xlim() == ax.get_ylim()
        p = float(check["ksd"]["p_value"].sel(view=name))
        assert ax.get_title() == f"{name}\nposterior predictive\np = {p:.3f}"
    assert next(drawn for drawn in axes[1].lines if drawn.get_marker() == "o").get_xydata().size == 0
    told = [text.get_text() for text in axes[0].get_legend().get_texts()]
    assert told == ["the replicate fits worse", "the data fit worse"]
    assert {ax.get_xlabel() for ax in axes} == {"KSD² of the data\n(realized)"}
    assert axes[0].get_ylabel() == axes[4].get_ylabel() == "KSD² of data drawn from\nthe model (replicated)"
    assert axes[1].get_ylabel() == ""


@pytest.mark.parametrize(("num_views", "rows", "columns"), [(1, 1, 1), (4, 1, 4), (5, 2, 4)])
def test_panels_stand_in_rows_of_four(num_views: int, rows: int, columns: int) -> None:
    axes = plot_discrepancy(made_up_predictive_check(), view=VIEWS[:num_views])
    figure = axes[0].figure
    assert figure.axes == axes.tolist()  # no empty panels
    places = [ax.get_subplotspec() for ax in axes]
    assert (places[-1].rowspan.start + 1, max(place.colspan.start for place in places) + 1) == (rows, columns)
    assert figure.get_size_inches().tolist() == [3.0 * columns, pytest.approx(0.5 + 3.4 * rows)]


def test_views_and_axes_can_be_chosen() -> None:
    check = made_up_predictive_check()
    _, own = plt.subplots(1, 2)
    axes = plot_discrepancy(check, view=["start", "length"], ax=own)
    assert axes.tolist() == own.tolist()
    assert plot_discrepancy(check, view="start", figsize=(2, 2))[0].figure.get_size_inches().tolist() == [2, 2]
    with pytest.raises(ValueError, match=r"expected view to be one of \['content-1'.*found 'end'"):
        plot_discrepancy(check, view="end")


def test_a_check_without_a_posterior_has_none() -> None:
    with pytest.raises(ValueError, match="expected a check with the group 'ksd_ppc', found"):
        plot_discrepancy(made_up_check())
