# SPDX-License-Identifier: Apache-2.0
"""Every test of models begins with an empty parameter store and the same random numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pyro
import pytest


@pytest.fixture(autouse=True)
def _fresh_session() -> Iterator[None]:
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    yield
    pyro.clear_param_store()
