# SPDX-License-Identifier: Apache-2.0
"""Checks that several folders look at, and no garbage collection while tests are collected, which halves its time.

Nothing heavy is imported here, so that no test waits for it.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import xarray as xr


def pytest_sessionstart() -> None:
    """Collects no garbage while tests are collected: nearly everything made then stays until the end."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Collects garbage from here on, without looking at what the collection of the tests has made."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def computed_check() -> xr.DataTree:
    """A check of a model: the one saved in the file that ``PYRO_KSD_SAVED_CHECK`` names, else a new one."""
    file = os.environ.get("PYRO_KSD_SAVED_CHECK")
    if file:
        from pyro_ksd import load

        return load(file)
    torch = pytest.importorskip("torch", reason="no saved check is given, and without torch none can be computed")
    from example_models import walk

    from pyro_ksd import ksd_check

    data = walk(hold=0.5).draw(12, torch.Generator().manual_seed(0))
    return ksd_check(walk(), data, num_bootstrap=40, seed=7, progress=False)


@pytest.fixture
def any_sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets models draw from another distribution than they score, which checks refuse otherwise."""
    monkeypatch.setattr("pyro_ksd.checks.check_setup.check_drawn_lengths", lambda *_: None)
    for module in ("absolute", "predictive"):
        monkeypatch.setattr(f"pyro_ksd.fit_tests.{module}.check_null_draws", lambda *_: None)


@pytest.fixture(params=["made up", "computed"])
def check(request: pytest.FixtureRequest) -> xr.DataTree:
    """A check of random numbers with all that a check may have, and one of a model."""
    from synthetic import made_up_check

    if request.param == "made up":
        return made_up_check(["a", "b", "ß"], impossible=2)
    found: xr.DataTree = request.getfixturevalue("computed_check")
    return found


@pytest.fixture(scope="module", params=["compiled", "torch"])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs the tests of a module twice: with compiled inner loops, if numba is installed, and with torch alone."""
    if request.param == "compiled":
        pytest.importorskip("numba")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYRO_KSD_COMPILED", "1" if request.param == "compiled" else "0")
        yield request.param


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> pytest.CaptureFixture[str]:
    """What is printed where progress bars are shown."""
    monkeypatch.setattr("pyro_ksd.common.progress._is_seen", lambda: True)
    monkeypatch.setattr("pyro_ksd.common.progress.DELAY", 0.0)
    monkeypatch.setattr("pyro_ksd.common.progress.INTERVAL", 0.0)
    return capsys
