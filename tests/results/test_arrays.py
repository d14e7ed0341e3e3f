# SPDX-License-Identifier: Apache-2.0
"""Arrays that files give back unchanged."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from pyro_ksd.results.arrays import as_numpy, as_strings  # noqa: E402


def test_strings_are_objects() -> None:
    found = as_strings(["a", "bc"])
    assert found.dtype == object
    assert found.tolist() == ["a", "bc"]


def test_tensors_become_arrays_of_the_same_values() -> None:
    tensor = torch.tensor([1.5, 2.5], dtype=torch.double, requires_grad=True)
    assert as_numpy(tensor).tolist() == [1.5, 2.5]
    assert as_numpy(tensor).dtype == "float64"
