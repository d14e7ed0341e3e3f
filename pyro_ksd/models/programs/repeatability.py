# SPDX-License-Identifier: Apache-2.0
"""Checks that a program gives the same log-probability in every run: fixed parameters and no random numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyro
import torch
from pyro.params.param_store import ParamStoreDict
from pyro.util import get_rng_state
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.module import register_module_forward_pre_hook

from pyro_ksd.models.programs.session_state import random_states_kept

_OTHER_SEED = 1_234_567_891


class InitialParams:
    """The ``pyro.param`` sites that a program initializes itself, because the parameter store lacks them.

    They are initialized once, and kept apart from the parameter store.

    >>> params = InitialParams()
    >>> len(params)
    0
    """

    def __init__(self) -> None:
        self._store = ParamStoreDict()
        self._initial: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._initial)

    def prepare(self, msg: Any) -> None:
        """Has a ``pyro.param`` statement take its value from here, unless the parameter store knows it.

        :raises ValueError: if it has no initial value, or one that changes from run to run.
        """
        name = msg["name"]
        if msg["done"] or name in pyro.get_param_store():
            return
        if len(msg["args"]) < 2:
            raise ValueError(
                f"param {name!r}: found neither an initial value nor one in the parameter store; train the program "
                f"first, load the store, or pass parameters={{{name!r}: value}}"
            )
        initial = msg["args"][1]
        if name not in self._initial:
            changes = callable(initial) and not torch.equal(initial(), initial())
        else:
            known = self._initial[name]
            changes = isinstance(initial, Tensor) and initial is not known and not _equal(initial, known)
        if changes:
            raise ValueError(
                f"param {name!r}: found an initial value that changes from run to run, as a random one does, and no "
                "value in the parameter store, so there is no one model to check; train the program first, load the "
                f"store with pyro.get_param_store().load(...), or pass parameters={{{name!r}: value}}"
            )
        self._initial[name] = initial
        msg["fn"] = self._store.get_param


def _equal(one: Tensor, other: Any) -> bool:
    return isinstance(other, Tensor) and one.shape == other.shape and torch.equal(one, other)


def repeatable(run: Callable[[], Tensor]) -> Tensor:
    """What a run of a program gives, if the next run would give the same.

    A program that uses random numbers runs twice, with different seeds.

    :raises ValueError: if its values depend on random numbers.

    >>> repeatable(lambda: torch.rand(2))
    Traceback (most recent call last):
    ValueError: the program draws random numbers although all its sites have values, expected the same ...
    """
    before = get_rng_state()
    with in_evaluation_mode():
        value = run()
        if not _same_state(before, get_rng_state()):
            with random_states_kept(_OTHER_SEED):
                again = run()
            if not torch.equal(value, again):
                raise ValueError(
                    "the program draws random numbers although all its sites have values, expected the same "
                    "log-probability from every run; look for dropout (call .eval() on modules), blocked sites, "
                    "torch.rand"
                )
    return value


def _same_state(one: dict[str, Any], other: dict[str, Any]) -> bool:
    numpy = zip(one["numpy"], other["numpy"], strict=True)
    return (
        torch.equal(one["torch"], other["torch"])
        and one["random"] == other["random"]
        and all(np.array_equal(mine, theirs) for mine, theirs in numpy)
    )


@contextmanager
def in_evaluation_mode() -> Iterator[None]:
    """Refuses modules within that behave in another way in training, before they run and so before they change.

    >>> with in_evaluation_mode():
    ...     nn.Dropout()(torch.ones(2))
    Traceback (most recent call last):
    ValueError: module Dropout: found training mode, in which its output is random; call .eval() on the network ...
    """
    hook = register_module_forward_pre_hook(_refuse_training)
    try:
        yield
    finally:
        hook.remove()


def _refuse_training(module: nn.Module, _: Any) -> None:
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
