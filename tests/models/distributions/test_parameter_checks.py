# SPDX-License-Identifier: Apache-2.0
"""Checks and alignment of parameters."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch

from pyro_ksd.models.distributions.parameter_checks import (
    align,
    as_parameter,
    check_probabilities,
    check_shape,
    common_batch,
    is_array,
    last_size,
)


def test_parameters_are_aligned_to_one_batch_and_one_dtype() -> None:
    one, two = torch.rand(4, 1, 3), torch.rand(2, 3, 3, dtype=torch.double)
    batch, (first, second) = align(one=(one, 1), two=(two, 2))
    assert batch == (4, 2)
    assert (first.dtype, second.dtype) == (torch.double, torch.double)
    assert (first.shape, second.shape) == ((8, 3), (8, 3, 3))
    assert torch.equal(first.view(4, 2, 3)[:, 1], one[:, 0].double())
    assert torch.equal(second.view(4, 2, 3, 3)[3], two)


def test_parameters_without_a_batch_are_one_row() -> None:
    batch, (only,) = align(only=(torch.rand(3), 1))
    assert batch == ()
    assert only.shape == (1, 3)


def test_batches_that_do_not_broadcast_are_named() -> None:
    assert common_batch({"a": torch.Size([3, 1]), "b": torch.Size([2])}) == (3, 2)
    message = r"expected batch shapes that broadcast, found a \[3\], b \[2\]; give all parameters the same leading"
    with pytest.raises(ValueError, match=message):
        common_batch({"a": torch.Size([3]), "b": torch.Size([2])})


def test_shape() -> None:
    check_shape("x", torch.rand(3, 2), 3, 2)
    check_shape("x", torch.rand(7, 3, 2), 3, 2)
    check_shape("x", torch.rand(7, 3, 2), 2)
    for wrong, found in (
        (torch.rand(2, 3), r"torch.float32 \[2, 3\]"),
        (torch.rand(2), r"torch.float32 \[2\]"),
        (torch.ones(3, 2, dtype=torch.long), r"torch.int64 \[3, 2\]"),
    ):
        message = rf"x: expected a floating-point tensor of shape \[..., 3, 2\], found {found}"
        with pytest.raises(ValueError, match=message):
            check_shape("x", wrong, 3, 2)


def test_last_size() -> None:
    assert last_size("x", torch.rand(4, 2)) == 2
    for wrong in (torch.tensor(1.0), torch.rand(3, 0)):
        with pytest.raises(ValueError, match="x: expected at least one dimension, one entry for each symbol or state"):
            last_size("x", wrong)


def test_probabilities() -> None:
    check_probabilities("p", torch.tensor([[0.25, 0.75], [1.0, 0.0]]))
    check_probabilities("p", torch.tensor([0.25, 0.5]), sums=False)
    for wrong in (-0.1, 1.5, torch.nan):
        message = rf"p: expected probabilities in 0..1, found {wrong} at index \[1, 0\]"
        with pytest.raises(ValueError, match=message):
            check_probabilities("p", torch.tensor([[0.5, 0.5], [wrong, 0.5]]), sums=False)
    message = r"p: .* sum to 1 along the last dimension, found the sum 0.9 at index \[1\]; divide each row by its sum"
    with pytest.raises(ValueError, match=message):
        check_probabilities("p", torch.tensor([[0.5, 0.5], [0.5, 0.4]]))


def test_rows_that_do_not_count_are_not_checked() -> None:
    where = torch.tensor([True, False, False])
    check_probabilities("p", torch.tensor([[0.5, 0.5], [3.0, -1.0], [0.5, 0.4]]), where)
    with pytest.raises(ValueError, match=r"found 3 at index \[1, 0\]"):
        check_probabilities("p", torch.tensor([[0.5, 0.5], [3.0, -1.0], [0.5, 0.4]]), ~where)


def test_rounding_is_no_mistake() -> None:
    check_probabilities("p", torch.tensor([0.5, 0.5 + 1e-7], dtype=torch.double))
    with pytest.raises(ValueError, match="sum to 1"):
        check_probabilities("p", torch.tensor([0.5, 0.5 + 1e-5], dtype=torch.double))


def test_tensors_stay_what_they_are() -> None:
    tensor = torch.rand(2, 2, requires_grad=True)
    assert as_parameter("probs", tensor) is tensor


def test_lists_have_the_default_dtype_and_arrays_keep_theirs() -> None:
    assert as_parameter("probs", [[1, 0], [0.5, 0.5]]).equal(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    assert as_parameter("probs", (0.1,), torch.double).equal(torch.tensor([0.1], dtype=torch.double))
    assert as_parameter("stop", 0.1, torch.double).equal(torch.tensor(0.1, dtype=torch.double))
    for dtype in (np.float32, np.float64):
        array = np.array([[0.1, 0.9], [0.3, 0.7]], dtype=dtype)
        array.flags.writeable = False
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = as_parameter("probs", array[::-1])
        np.testing.assert_array_equal(found.numpy(), array[::-1], strict=True)


def test_lists_of_tensors_keep_their_gradients() -> None:
    p = torch.tensor(0.3, requires_grad=True)
    found = as_parameter("probs", [[p, 1 - p], [0.5, 0.5]])
    assert found.tolist() == [[pytest.approx(0.3), pytest.approx(0.7)], [0.5, 0.5]]
    found[0, 1].backward()
    assert p.grad is not None
    assert p.grad.item() == -1


@pytest.mark.parametrize("wrong", [None, "ab", {}, [["a"]], [[0.5], [0.5, 0.5]], True, 0.5j, [None], torch.Tensor])
def test_what_is_no_parameter(wrong: Any) -> None:
    message = "probs: expected a tensor, an array or nested lists of numbers, found"
    with pytest.raises(ValueError, match=re.escape(message)):
        as_parameter("probs", wrong)


@pytest.mark.parametrize("wrong", [torch.empty(2, device="meta"), torch.eye(2).to_sparse()])
def test_parameters_are_dense_and_on_the_cpu(wrong: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=r"probs: expected a dense tensor on the CPU, found torch.float32 \[2"):
        as_parameter("probs", wrong)


def test_what_is_an_array() -> None:
    assert [is_array(value) for value in ([0.5], (0.5,), np.ones(2), torch.ones(2))] == [True] * 4
    assert [is_array(value) for value in (0.5, "ab", None, {})] == [False] * 4


def test_one_symbol_is_enough() -> None:
    assert last_size("x", torch.rand(4, 1)) == 1
    assert last_size("x", torch.rand(1)) == 1
