# SPDX-License-Identifier: Apache-2.0
"""Checks of tensors that users pass."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from pyro_ksd.common.option_checks import found


def check_tensor(name: str, value: object, *sizes: int | str) -> None:
    """Checks that an argument is a floating-point tensor of some shape, on the CPU.

    :param sizes: numbers, letters for any number of at least 1, and ``"..."`` in front for any further dimensions.

    >>> import torch
    >>> check_tensor("null", torch.rand(9, 2), "B", 2)
    >>> check_tensor("null", torch.rand(9, 3), "B", 2)
    Traceback (most recent call last):
    ValueError: null: expected a floating-point tensor [B, 2] on the CPU, found torch.float32 [9, 3]
    """
    if not isinstance(value, Tensor) or not value.is_floating_point() or not value.is_cpu or not _fits(value, sizes):
        shape = ", ".join(map(str, sizes))
        raise ValueError(f"{name}: expected a floating-point tensor [{shape}] on the CPU, found {shown(value)}")


def shown(value: object) -> str:
    """A wrong value as an error shows it; of a tensor, what it is.

    >>> import torch
    >>> shown(torch.rand(2, 3)), shown("ab")
    ('torch.float32 [2, 3]', "'ab'")
    """
    if not isinstance(value, Tensor):
        return found(value)
    place = "" if value.is_cpu else f" on {value.device}"
    return f"{value.dtype} {list(value.shape)}{place}"


def _fits(tensor: Tensor, sizes: Sequence[int | str]) -> bool:
    """Whether a tensor has the sizes, with any dimensions before them if they begin with ``"..."``."""
    own = sizes[1:] if sizes[:1] == ("...",) else sizes
    if tensor.ndim < len(own) or (tensor.ndim > len(own) and own is sizes):
        return False
    pairs = zip(tensor.shape[tensor.ndim - len(own) :], own, strict=True)
    return all(size == wanted if isinstance(wanted, int) else size > 0 for size, wanted in pairs)
