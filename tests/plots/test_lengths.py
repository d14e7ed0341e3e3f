# SPDX-License-Identifier: Apache-2.0
"""The picture of the lengths."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex
from pictures import BLUE, VERMILION, assert_nothing_overlaps, line
from synthetic import length_group, made_up_check

from pyro_ksd.plots import plot_lengths


def check_of(observed: dict[int, float], expected: dict[int, float]) -> xr.DataTree:
    return made_up_check().assign({"ksd_length": xr.DataTree(length_group(observed, expected))})


def test_every_length_has_a_bar_and_a_point() -> None:
    ax = plot_lengths(check_of({2: 0.5, 3: 0.25, 5: 0.25}, {1: 0.125, 2: 0.25, 3: 0.25, 4: 0.375}))
    bars = {round(bar.get_x() + bar.get_width() / 2, 6): bar.get_height() for bar in ax.patches}
    assert bars == {1: 0, 2: 0.5, 3: 0.25, 4: 0, 5: 0.25}
    model = line(ax, "model")
    assert model.get_xdata().tolist() == [1, 2, 3, 4, 5]
    assert model.get_ydata().tolist() == [0.125, 0.25, 0.25, 0.375, 0]
    assert {to_hex(bar.get_facecolor()) for bar in ax.patches} == {BLUE}
    assert to_hex(model.get_color()) == VERMILION
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"data", "model"}
    assert ax.get_xlabel() == "length"
    assert ax.get_ylabel() == "share of the sequences"
    assert ax.get_ylim()[0] == 0
    assert ax.get_ylim()[1] > 0.5
    assert all(label.get_text().endswith(" %") for label in ax.get_yticklabels())
    assert_nothing_overlaps(ax.figure)


def test_the_lengths_of_a_model_without_draws_are_called_an_estimate() -> None:
    check = check_of({2: 0.5, 3: 0.5}, {1: 0.5, 2: 0.5})
    check["ksd_length"].attrs["num_drawn"] = 0
    ax = plot_lengths(check)
    assert line(ax, "model (estimated)").get_ydata().tolist() == [0.5, 0.5, 0]
    assert_nothing_overlaps(ax.figure)


def test_what_the_model_hardly_ever_makes_is_drawn_only_among_the_data() -> None:
    tail = {length: 0.5**length for length in range(1, 200)}
    ax = plot_lengths(check_of({3: 1.0}, tail))
    drawn = line(ax, "model").get_xdata()
    assert (drawn[0], drawn[-1]) == (1, 8)  # longer ones have the probability 2^-8 < 0.005
    ax = plot_lengths(check_of({3: 0.5, 20: 0.5}, tail))
    assert line(ax, "model").get_xdata()[-1] == 20
    ax = plot_lengths(check_of({30: 1.0}, {40 + length: p for length, p in tail.items()}))
    assert line(ax, "model").get_xdata()[0] == 30


@pytest.mark.parametrize(("longest", "width"), [(60, 1), (61, 2), (400, 7)])
def test_many_lengths_are_drawn_in_groups_of_the_same_mean_share(longest: int, width: int) -> None:
    random = np.random.default_rng(0)
    weights = 1 + random.random((2, longest))  # none is negligible
    observed, expected = (dict(enumerate((row / row.sum()).tolist(), 1)) for row in weights)
    ax = plot_lengths(check_of(observed, expected))
    model = line(ax, "model")
    assert len(ax.patches) == len(model.get_xdata()) <= 60
    for bar, middle, height in zip(ax.patches, model.get_xdata(), model.get_ydata(), strict=True):
        own = [length for length in range(1, longest + 1) if abs(length - middle) < width / 2]
        assert bar.get_height() == pytest.approx(sum(observed[length] for length in own) / width)
        assert height == pytest.approx(sum(expected[length] for length in own) / width)
        assert bar.get_x() + bar.get_width() / 2 == pytest.approx(middle)
    assert sum(bar.get_height() for bar in ax.patches) * width == pytest.approx(1)
    words = "share of the sequences" if width == 1 else f"share of a length,\nmean of {width} lengths"
    assert ax.get_ylabel() == words
    assert_nothing_overlaps(ax.figure)


def test_one_length_alone() -> None:
    ax = plot_lengths(check_of({4: 1.0}, {4: 1.0}))
    assert [bar.get_height() for bar in ax.patches] == [1.0]
    assert_nothing_overlaps(ax.figure)


def test_a_check_that_knows_no_lengths() -> None:
    with pytest.raises(ValueError, match="expected one with the group 'ksd_length', found none; run ksd_check with"):
        plot_lengths(made_up_check(views=["content-2"]))
    assert plt.get_fignums() == []
