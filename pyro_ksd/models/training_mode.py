# SPDX-License-Identifier: Apache-2.0
"""Modules in training mode, whose output is random or depends on the batch, are refused before they run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.module import register_module_forward_pre_hook


@contextmanager
def in_evaluation_mode() -> Iterator[None]:
    """Refuses modules within that behave in another way in training, before they run and so before they change.

    >>> with in_evaluation_mode():
    ...     nn.Dropout()(None)
    Traceback (most recent call last):
    ValueError: module Dropout: found training mode, in which its output is random; call .eval() on the network ...
    """
    thread = get_ident()

    def refuse_training(module: nn.Module, _: Any) -> None:
        if get_ident() == thread:  # another thread may train a network in the meantime
            _refuse_training(module)

    hook = register_module_forward_pre_hook(refuse_training)
    try:
        yield
    finally:
        hook.remove()


def _refuse_training(module: nn.Module) -> None:
    if not module.training:
        return
    if isinstance(module, _NormBase):
        effect = "output for a sequence depends on the other sequences"
    elif _is_random(module):
        effect = "output is random"
    else:
        return
    raise ValueError(
        f"module {type(module).__name__}: found training mode, in which its {effect}; call .eval() on the network "
        "before the check"
    )


def _is_random(module: nn.Module) -> bool:
    """Whether a module in training mode draws random numbers."""
    if isinstance(module, _DropoutNd):
        return bool(module.p > 0)
    if isinstance(module, nn.RNNBase):
        return module.dropout > 0 and module.num_layers > 1
    if isinstance(module, nn.MultiheadAttention):
        return bool(module.dropout > 0)
    return isinstance(module, nn.RReLU)
