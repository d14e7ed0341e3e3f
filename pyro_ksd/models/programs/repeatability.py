# SPDX-License-Identifier: Apache-2.0
"""Checks that a program gives the same log-probability in every run: fixed parameters and no random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyro
import torch
from pyro.params.param_store import ParamStoreDict
from pyro.util import get_rng_state
from torch import Tensor

from pyro_ksd.models.programs.session_state import random_states_kept

_OTHER_SEED = 1_234_567_891

MODULE_WEIGHT = "$$$"
"""What Pyro puts between the name of a module and that of its weight."""


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
        self._weights: dict[str, bool] = {}

    def __len__(self) -> int:
        return len(self._initial)

    def prepare(self, msg: Any) -> None:
        """Has a ``pyro.param`` statement take its value from here, unless the parameter store knows it.

        :raises ValueError: if it has no initial value, or one that changes from run to run.
        """
        name = msg["name"]
        if not msg["done"] and MODULE_WEIGHT in name and name in pyro.get_param_store():
            self._compare_weight(name, msg["args"][1])
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

    def _compare_weight(self, name: str, weight: Tensor) -> None:
        """Refuses weights of a ``pyro.module`` of which the parameter store has other values, which do not count.

        The first run may copy them into the module, with ``update_module_params=True``.
        """
        if self._weights.get(name):
            return
        same = torch.equal(weight, pyro.get_param_store()[name])
        if not same and name in self._weights:
            module = name.partition(MODULE_WEIGHT)[0]
            raise ValueError(
                f"param {name!r}: found other values in the parameter store than in the module, whose own weights the "
                "program uses; to have those of the store, let the program say "
                f"pyro.module({module!r}, ..., update_module_params=True), or else pyro.clear_param_store()"
            )
        self._weights[name] = same


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
    value = run()
    if _same_state(before, get_rng_state()):
        return value
    with random_states_kept(_OTHER_SEED):
        again = run()
    if not torch.equal(value, again):
        raise ValueError(
            "the program draws random numbers although all its sites have values, expected the same log-probability "
            "from every run; look for dropout (call .eval() on modules), blocked sites, torch.rand"
        )
    return value


def _same_state(one: dict[str, Any], other: dict[str, Any]) -> bool:
    numpy = zip(one["numpy"], other["numpy"], strict=True)
    return (
        torch.equal(one["torch"], other["torch"])
        and one["random"] == other["random"]
        and all(np.array_equal(mine, theirs) for mine, theirs in numpy)
    )
