# SPDX-License-Identifier: Apache-2.0
"""The description of what pictures show."""

from __future__ import annotations

import numpy as np
import pytest

from pyro_ksd.plots.picture import Line, Panel, Picture, Points, Rule, Scale


def test_coordinates_of_a_scale_run_from_left_to_right() -> None:
    values = np.array([0.01, 0.5, 1.0, 30.0])
    for scale in (Scale(), Scale("log"), Scale("asinh", 0.1)):
        assert (np.diff(scale.forward(values)) > 0).all()
    assert Scale().forward(values).tolist() == values.tolist()
    assert Scale("log").forward(values) == pytest.approx([-2, np.log10(0.5), 0, np.log10(30)])
    assert Scale("asinh", 2.0).forward([-2.0, 0.0, 2.0]) == pytest.approx([-np.arcsinh(1), 0, np.arcsinh(1)])


def test_ticks_of_an_asinh_axis_have_both_signs_and_room() -> None:
    scale = Scale("asinh", 1.0)
    assert scale.ticks(-2000.0, 300.0, room=0.05) == [0.0, 1.0, 10.0, 100.0, -1.0, -10.0, -100.0, -1000.0]
    for room in (0.05, 0.1, 0.3):
        places = np.sort(scale.forward(scale.ticks(-2000.0, 300.0, room)))
        whole = np.ptp(scale.forward([-2000.0, 300.0]))
        assert (np.diff(places) >= room * whole - 1e-9).all()


def test_ticks_of_a_logarithmic_axis_lie_within_it() -> None:
    assert Scale("log").ticks(0.0013, 1.3, room=0.1) == pytest.approx([0.01, 0.1, 1.0])
    assert Scale("log").ticks(0.01, 0.1, room=0.1) == pytest.approx([0.01, 0.1])


def test_marks_of_several_panels_are_named_once() -> None:
    nothing = np.array([])
    one = Panel([Points("a", {}, nothing, nothing), Rule("b", {}, "x", 0.0)])
    other = Panel([Rule("b", {}, "x", 1.0), Line("c", {}, nothing, nothing)])
    assert Picture({"one": one, "other": other}, (1, 1)).mark_names() == ["a", "b", "c"]
