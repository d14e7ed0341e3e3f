# SPDX-License-Identifier: Apache-2.0
"""Checks and alignment of the parameters of distributions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pyro_ksd.common.option_checks import found, is_real
from pyro_ksd.common.tensor_checks import shown

Numbers = Tensor | npt.NDArray[Any] | Sequence[Any]
"""What users pass as a parameter: a tensor, an array, or nested lists of numbers or tensors."""


def as_parameter(name: str, value: Any, dtype: torch.dtype | None = None) -> Tensor:
    """A parameter as a tensor: from a tensor, an array, a number, or nested lists of numbers or tensors.

    Arrays keep their dtype. Gradients of tensors are kept, also of those within lists.

    :param dtype: of numbers and lists; torch's default one if left out.

    >>> as_parameter("probs", [0.5, 0.5])
    tensor([0.5000, 0.5000])
    >>> as_parameter("probs", np.array([0.5, 0.5]))
    tensor([0.5000, 0.5000], dtype=torch.float64)
    """
    try:
        tensor = _converted(value, torch.get_default_dtype() if dtype is None else dtype)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(
            f"{name}: expected a tensor, an array or nested lists of numbers, found {found(value)}; pass a "
            "floating-point tensor"
        ) from None
    if not tensor.is_cpu or tensor.layout != torch.strided:
        raise ValueError(f"{name}: expected a dense tensor on the CPU, found {shown(tensor)}; pass {name}.cpu()")
    return tensor


def is_array(value: object) -> bool:
    """Whether :func:`as_parameter` takes a value as numbers in some shape."""
    return isinstance(value, Tensor | list | tuple) or hasattr(value, "__array__")


def _converted(value: Any, dtype: torch.dtype) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, list | tuple):
        # Stacking keeps gradients, but takes long for many numbers.
        if _has_tensors(value):
            return torch.stack([_converted(part, dtype) for part in value])
        return torch.tensor(value, dtype=dtype)
    if is_real(value):
        return torch.tensor(value, dtype=dtype)
    if not hasattr(value, "__array__"):
        raise TypeError
    return torch.as_tensor(np.array(value, order="C"))  # a copy: torch warns of arrays that it cannot write to


def _has_tensors(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_tensors, value))
    return isinstance(value, Tensor)


def align(**parameters: tuple[Tensor, int]) -> tuple[torch.Size, list[Tensor]]:
    """The common batch shape of parameters, and each as ``[B, ...]`` in their common dtype.

    :param parameters: name to tensor and the number of its last dimensions that are no batch.
    """
    batches = {name: tensor.shape[: tensor.ndim - dims] for name, (tensor, dims) in parameters.items()}
    batch = common_batch(batches)
    dtype = reduce(torch.promote_types, (tensor.dtype for tensor, _ in parameters.values()))
    events = {name: tensor.shape[tensor.ndim - dims :] for name, (tensor, dims) in parameters.items()}
    return batch, [
        tensor.to(dtype).expand(batch + events[name]).reshape((batch.numel(), *events[name]))
        for name, (tensor, _) in parameters.items()
    ]


def common_batch(batches: dict[str, torch.Size]) -> torch.Size:
    """The shape to which the batch shapes of all parameters broadcast."""
    try:
        return torch.Size(torch.broadcast_shapes(*batches.values()))
    except RuntimeError:
        found = ", ".join(f"{name} {list(shape)}" for name, shape in batches.items())
        raise ValueError(
            f"expected batch shapes that broadcast, found {found}; give all parameters the same leading dimensions"
        ) from None


def check_shape(name: str, tensor: Tensor, *sizes: int) -> None:
    """Checks that a parameter is floating-point and that its last dimensions have the given sizes."""
    shape = tuple(tensor.shape[max(tensor.ndim - len(sizes), 0) :])
    if not tensor.is_floating_point() or shape != sizes:
        raise ValueError(
            f"{name}: expected a floating-point tensor of shape {['...', *sizes]}, found {tensor.dtype} "
            f"{list(tensor.shape)}".replace("'", "")
        )


def last_size(name: str, tensor: Tensor) -> int:
    """The size of a parameter's last dimension, which must be there."""
    if tensor.ndim < 1 or tensor.shape[-1] < 1:
        raise ValueError(
            f"{name}: expected at least one dimension, one entry for each symbol or state, found {list(tensor.shape)}"
        )
    return tensor.shape[-1]


def check_probabilities(name: str, tensor: Tensor, where: Tensor | None = None, sums: bool = True) -> None:
    """Checks probabilities ``[..., n]``.

    :param where: boolean ``[...]``, the rows to check; ``None`` for all.
    :param sums: whether each row must sum to 1.
    """
    bad = ~((tensor >= 0) & (tensor <= 1))
    if where is not None:
        bad &= where[..., None]
    if bad.any():
        index = bad.nonzero()[0].tolist()
        raise ValueError(f"{name}: expected probabilities in 0..1, found {tensor[tuple(index)]:.6g} at index {index}")
    if not sums:
        return
    total = tensor.sum(-1)
    off = (total - 1).abs() > 1e-6
    if where is not None:
        off &= where
    if off.any():
        index = off.nonzero()[0].tolist()
        raise ValueError(
            f"{name}: expected probabilities that sum to 1 along the last dimension, found the sum "
            f"{total[tuple(index)]:.6g} at index {index}; divide each row by its sum"
        )
