# SPDX-License-Identifier: Apache-2.0
"""Checks of tensors: their shapes, their dtype and their device."""

from __future__ import annotations

import re

import pytest
import torch

from pyro_ksd.common.tensor_checks import check_tensor, shown


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [((), ()), ((3,), (3,)), ((9, 2), ("B", 2)), ((4, 9, 2), ("...", "B", 2)), ((2,), ("...", 2)), ((0,), (0,))],
)
def test_shapes_that_fit(shape: tuple[int, ...], sizes: tuple[int | str, ...]) -> None:
    check_tensor("x", torch.rand(shape), *sizes)


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [((3,), ()), ((2,), (3,)), ((9, 3), ("B", 2)), ((0, 2), ("B", 2)), ((4, 9, 2), ("B", 2)), ((), ("...", 2))],
)
def test_shapes_that_do_not(shape: tuple[int, ...], sizes: tuple[int | str, ...]) -> None:
    wanted = f"x: expected a floating-point tensor [{', '.join(map(str, sizes))}] on the CPU"
    with pytest.raises(ValueError, match=f"^{re.escape(f'{wanted}, found torch.float32 {list(shape)}')}$"):
        check_tensor("x", torch.rand(shape), *sizes)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (torch.ones(2).long(), "torch.int64 [2]"),
        (torch.empty(2, device="meta"), "torch.float32 [2] on meta"),
        ([0.5, 0.5], "[0.5, 0.5]"),
        (None, "None"),
    ],
)
def test_what_is_no_floating_point_tensor_on_the_cpu(wrong: object, words: str) -> None:
    assert shown(wrong) == words
    message = f"x: expected a floating-point tensor [2] on the CPU, found {words}"
    with pytest.raises(ValueError, match=re.escape(message)):
        check_tensor("x", wrong, 2)
