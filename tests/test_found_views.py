# SPDX-License-Identifier: Apache-2.0
"""The benchmark of found views."""

from __future__ import annotations

import sys

import pytest
import torch

from benchmarks import found_views
from benchmarks.found_views import Case, Settings, after_a_pilot, at_equal_size, cases, mixture
from pyro_ksd.examples import random_walk

QUICK = Settings(runs=4, pool=40)
EASY = Case("easy", random_walk(3), random_walk(3, hold=0.5).draw)


def test_data_are_possible_and_differ_from_the_model_unless_there_is_no_fault() -> None:
    *faults, none = cases()
    assert len({case.name for case in cases()}) == len(faults) + 1
    assert none.draw == none.model.draw
    for case in faults:
        data = case.draw(50, torch.Generator().manual_seed(0))
        assert len(data) == 50
        assert case.model.log_joint(data).isfinite().all()
        assert case.draw != case.model.draw


def test_a_mixture_has_its_share() -> None:
    """Of 30 % with a mean length of 20, all but one in twenty have more than one symbol."""
    draw = mixture(random_walk(3, mean_length=1), random_walk(3, mean_length=20), 0.3)
    is_long = draw(2000, torch.Generator().manual_seed(0)).lengths > 1
    assert 0.25 < float(is_long.double().mean()) < 0.32


def test_a_gross_fault_is_seen_by_both() -> None:
    assert at_equal_size(EASY, QUICK, total=60) == (1.0, 1.0)
    whole, found, name = after_a_pilot(EASY, QUICK, pilot=40, batch=20)
    assert (whole, found) == (1.0, 1.0)
    assert name


def test_the_tables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(found_views, "cases", lambda: [EASY])
    monkeypatch.setattr(found_views, "at_equal_size", lambda case, settings: (0.25, 0.5))
    monkeypatch.setattr(found_views, "after_a_pilot", lambda case, settings: (0.125, 1.0, "aa + bb"))
    monkeypatch.setattr(sys, "argv", ["found_views", "--runs", "2"])
    found_views.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "| easy | 0.25 | 0.50 |"
    assert lines[-1] == "| easy | 0.12 | 1.00 | `aa + bb` |"
