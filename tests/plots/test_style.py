# SPDX-License-Identifier: Apache-2.0
"""What all pictures share: axes, legends and titles."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from pictures import BLUE as BLUE_DRAWN
from pictures import PURPLE as PURPLE_DRAWN
from pictures import VERMILION as VERMILION_DRAWN
from pictures import words
from synthetic import made_up_check

from pyro_ksd.plots.style import (
    BLUE,
    PURPLE,
    VERMILION,
    axes_for,
    font_scale,
    legend_above,
    new_figure,
    points,
    view_title,
    write_beside,
)


def test_colors_are_those_of_the_palette() -> None:
    assert [color.lower() for color in (BLUE, VERMILION, PURPLE)] == [BLUE_DRAWN, VERMILION_DRAWN, PURPLE_DRAWN]


def test_new_axes_stand_below_or_beside_each_other() -> None:
    below = axes_for(None, 3, (4, 6), None, None)
    assert [ax.get_subplotspec().rowspan.start for ax in below] == [0, 1, 2]
    assert below[0].figure.get_size_inches().tolist() == [4, 6]
    beside = axes_for(None, 3, (4, 6), (5, 2), {"dpi": 50, "layout": None}, columns=3)
    assert [ax.get_subplotspec().colspan.start for ax in beside] == [0, 1, 2]
    assert (beside[0].figure.get_size_inches().tolist(), beside[0].figure.dpi) == ([5, 2], 50)
    assert below[0].figure.get_layout_engine() is not None
    assert beside[0].figure.get_layout_engine() is None


def test_given_axes_are_taken_as_they_are() -> None:
    _, grid = plt.subplots(2, 2)
    found = axes_for(grid, 4, (1, 1), None, None)
    assert found.shape == (4,)
    assert found.tolist() == np.ravel(grid).tolist()
    assert axes_for(grid[0, 0], 1, (1, 1), None, None).tolist() == [grid[0, 0]]
    with pytest.raises(ValueError, match="expected ax to hold 3 axes, one for each view, found 4; leave ax out"):
        axes_for(grid, 3, (1, 1), None, None)
    assert len(plt.get_fignums()) == 1


def test_points_do_not_depend_on_the_resolution() -> None:
    sizes = []
    for dpi in (50, 200):
        figure = plt.figure(figsize=(4, 2), dpi=dpi)
        sizes.append(points(figure.add_axes((0.25, 0.5, 0.5, 0.25))))
    assert sizes == [pytest.approx((144, 36))] * 2


def test_texts_stand_beside_their_rows() -> None:
    _, ax = plt.subplots()
    write_beside(ax, ["one", "two"])
    assert words(ax) == ["one", "two"]
    assert [text.get_position() for text in ax.texts] == [(1.015, 0), (1.015, 1)]


@pytest.mark.parametrize(("width", "columns"), [(3, 1), (9, 2)])
def test_a_legend_has_two_columns_where_there_is_room(width: float, columns: int) -> None:
    _, ax = plt.subplots(figsize=(width, 3))
    ax.plot([1], label="one")
    ax.plot([2], label="two")
    legend_above(ax)
    assert ax.get_legend()._ncols == columns


def test_a_title_has_the_view_its_p_value_and_its_meaning() -> None:
    _, ax = plt.subplots()
    view_title(ax, made_up_check(), "content-3")
    assert ax.get_title(loc="left") == "content-3, p = 0.080\nruns of 3 symbols"


def test_a_new_figure_has_the_size_that_is_asked_for() -> None:
    assert new_figure((3, 2), None, {"dpi": 50}).get_size_inches().tolist() == [3, 2]
    assert new_figure((3, 2), (4, 5), None).get_size_inches().tolist() == [4, 5]
    plt.close("all")


def test_figures_are_higher_where_letters_are_larger() -> None:
    for options, scale in (
        ({}, 1.0),
        ({"ytick.labelsize": 14}, 1.4),
        ({"font.size": 20, "axes.labelsize": "large"}, 2.4),
        ({"font.size": 6}, 1.0),
    ):
        with plt.rc_context(options):
            assert font_scale() == pytest.approx(scale)
            assert new_figure((3, 2), None, None).get_size_inches() == pytest.approx((3, 2 * scale))
            assert new_figure((3, 2), (4, 5), None).get_size_inches().tolist() == [4, 5]
    plt.close("all")


@pytest.mark.parametrize("wrong", ["large", 5, (1,), (1, 2, 3), (-1, 2), (0, 1), (float("nan"), 1), ("1", 2)])
def test_sizes_are_two_positive_numbers(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"figsize: expected the width and the height in inches, .*, found"):
        axes_for(None, 1, (3, 2), wrong, None)


@pytest.mark.parametrize("wrong", ["dpi", {3: 4}, {"colour": 1}])
def test_options_of_the_backend_are_named(wrong: object) -> None:
    for call in (axes_for, lambda _, __, *rest: new_figure(*rest)):
        with pytest.raises(ValueError, match=r"backend_kwargs: expected arguments of matplotlib\.pyplot\.subplots"):
            call(None, 1, (3, 2), None, wrong)
    plt.close("all")


@pytest.mark.parametrize("wrong", ["left", 3, plt.Figure])
def test_axes_are_those_of_matplotlib(wrong: object) -> None:
    with pytest.raises(ValueError, match="ax: expected axes of matplotlib, such as"):
        axes_for(wrong, 1, (3, 2), None, None)
