# SPDX-License-Identifier: Apache-2.0
"""Checks that a program has the same parameters in every run."""

from __future__ import annotations

from typing import Any

import pyro
import torch
from pyro.params.param_store import ParamStoreDict
from torch import Tensor

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
