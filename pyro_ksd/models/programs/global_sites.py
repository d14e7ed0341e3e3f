# SPDX-License-Identifier: Apache-2.0
"""The global sites of a program: their shapes, and values for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from pyro import poutine
from pyro.distributions import ImproperUniform
from pyro.poutine.messenger import Messenger
from torch import Tensor
from torch.distributions import transform_to

from pyro_ksd.models.programs.exact_probabilities import innermost
from pyro_ksd.models.programs.plate_layout import sample_sites
from pyro_ksd.models.programs.repeatability import InitialParams
from pyro_ksd.models.programs.session_state import isolated

Shapes = dict[str, torch.Size]


class Bound(Messenger):
    """Gives values to latent sample sites and to ``pyro.param`` sites, by name.

    :param initial: keeps the ``pyro.param`` sites that the program initializes itself.
    """

    def __init__(self, values: Mapping[str, Tensor], initial: InitialParams) -> None:
        super().__init__()
        self._values = values
        self._initial = initial

    def _pyro_sample(self, msg: Any) -> None:
        if msg["name"] in self._values and not msg["is_observed"]:
            msg["value"] = self._values[msg["name"]]
            msg["is_observed"] = True

    def _pyro_param(self, msg: Any) -> None:
        if msg["name"] in self._values:
            msg["value"] = self._values[msg["name"]]
            msg["done"] = True
        else:
            self._initial.prepare(msg)


class _Drawable(Messenger):
    """Gives some value to sites with an improper prior, which cannot be drawn."""

    def _pyro_sample(self, msg: Any) -> None:
        if isinstance(innermost(msg["fn"]), ImproperUniform) and msg["value"] is None:
            msg["value"] = transform_to(msg["fn"].support)(torch.zeros(msg["fn"].shape()))
            msg["done"] = True


def bind(
    program: Callable[..., Any], values: Mapping[str, Tensor], initial: InitialParams | None = None
) -> Callable[..., Any]:
    """The program with values for some of its latent sample sites and ``pyro.param`` sites.

    :param initial: keeps the ``pyro.param`` sites that the program initializes itself.
    """
    bound: Callable[..., Any] = Bound(values, InitialParams() if initial is None else initial)(program)
    return bound


def parameter_shapes(program: Callable[..., Any], *arguments: Any, seed: int = 0) -> Shapes:
    """The shapes of the global latent sites and of the ``pyro.param`` sites of a program, by name."""
    with isolated(validate=False, seed=seed):
        trace = poutine.trace(_Drawable()(program)).get_trace(*arguments)
    latent = {name: site for name, site in sample_sites(trace) if not site["is_observed"]}
    shapes = {name: site["value"].shape for name, site in latent.items() if not site["cond_indep_stack"]}
    plated = {name: site["value"].shape for name, site in latent.items() if site["cond_indep_stack"]}
    params = {name: site["value"].shape for name, site in trace.nodes.items() if site["type"] == "param"}
    return shapes | plated | params


def checked_point(values: Mapping[str, Tensor], shapes: Shapes) -> dict[str, Tensor]:
    """One value for each named parameter.

    :raises ValueError: naming a site that the program does not have, or that has another shape.
    """
    check_names(values, shapes)
    for name, value in values.items():
        if torch.as_tensor(value).shape != shapes[name]:
            raise ValueError(
                f"parameters: site {name!r} has the shape {list(torch.as_tensor(value).shape)}, expected "
                f"{list(shapes[name])}; pass one value, not a batch of draws"
            )
    return {name: torch.as_tensor(value) for name, value in values.items()}


def check_names(values: Mapping[str, Any], shapes: Shapes) -> None:
    """Checks that the program has a global site for each name."""
    unknown = sorted(set(values) - set(shapes))
    if unknown:
        raise ValueError(f"parameters: the program has no global site {unknown}, expected some of {sorted(shapes)}")
