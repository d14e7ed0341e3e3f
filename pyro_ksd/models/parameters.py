# SPDX-License-Identifier: Apache-2.0
"""Values of a program's global parameters: points and posterior draws, in the forms in which Pyro gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from pyro import poutine
from pyro.infer import MCMC, Predictive
from pyro.poutine.messenger import Messenger
from torch import Tensor

from pyro_ksd.models.isolation import isolated
from pyro_ksd.models.sites import sample_sites

Shapes = dict[str, torch.Size]


class Bound(Messenger):
    """Gives values to latent sample sites and to ``pyro.param`` sites, by name."""

    def __init__(self, values: Mapping[str, Tensor]) -> None:
        super().__init__()
        self._values = values

    def _pyro_sample(self, msg: Any) -> None:
        if msg["name"] in self._values and not msg["is_observed"]:
            msg["value"] = self._values[msg["name"]]
            msg["is_observed"] = True

    def _pyro_param(self, msg: Any) -> None:
        if msg["name"] in self._values:
            msg["value"] = self._values[msg["name"]]
            msg["done"] = True


def bind(program: Callable[..., Any], values: Mapping[str, Tensor]) -> Callable[..., Any]:
    """The program with values for some of its latent sample sites and ``pyro.param`` sites."""
    bound: Callable[..., Any] = Bound(values)(program)
    return bound


def parameter_shapes(program: Callable[..., Any], *arguments: Any) -> Shapes:
    """The shapes of the global latent sites and of the ``pyro.param`` sites of a program, by name."""
    with isolated(validate=False, seed=0):
        trace = poutine.trace(program).get_trace(*arguments)
    latent = {name: site for name, site in sample_sites(trace) if not site["is_observed"]}
    shapes = {name: site["value"].shape for name, site in latent.items() if not site["cond_indep_stack"]}
    plated = {name: site["value"].shape for name, site in latent.items() if site["cond_indep_stack"]}
    params = {name: site["value"].shape for name, site in trace.nodes.items() if site["type"] == "param"}
    return shapes | plated | params


def checked_point(values: Mapping[str, Tensor], shapes: Shapes) -> dict[str, Tensor]:
    """One value for each named parameter.

    :raises ValueError: naming a site that the program does not have, or that has another shape.
    """
    _check_names(values, shapes)
    for name, value in values.items():
        if torch.as_tensor(value).shape != shapes[name]:
            raise ValueError(
                f"parameters: site {name!r} has the shape {list(torch.as_tensor(value).shape)}, expected "
                f"{list(shapes[name])}; give one value, not a batch of draws"
            )
    return {name: torch.as_tensor(value) for name, value in values.items()}


def posterior_draws(source: Any, shapes: Shapes, *arguments: Any, num_draws: int = 100) -> dict[str, Tensor]:
    """Posterior draws as ``[chains, draws, ...]`` tensors by name; draws that do not tell chains are one chain.

    :param source: draws by name (from ``MCMC.get_samples()``, with or without ``group_by_chain``, or from
        ``Predictive``), an ``MCMC`` object after its run, a ``Predictive``, or a guide.
    :param shapes: what :func:`parameter_shapes` gave.
    :param arguments: the program's arguments, for a guide or a ``Predictive`` to run with.
    :param num_draws: how many draws to take from a guide.
    :raises ValueError: naming a site that is missing, unknown or of another shape.
    """
    if isinstance(source, Mapping):
        drawn = dict(source)
    elif isinstance(source, MCMC):
        drawn = _samples_of(source)
    elif callable(source):
        predictive = source if isinstance(source, Predictive) else Predictive(source, num_samples=num_draws)
        with isolated(validate=False, seed=0):
            drawn = predictive(*arguments)
        drawn = {name: value for name, value in drawn.items() if name in shapes}
    else:
        raise ValueError(
            f"posterior: expected draws by name, an MCMC object, a Predictive or a guide, found {type(source).__name__}"
        )
    _check_names(drawn, shapes)
    draws = {name: _as_draws(name, torch.as_tensor(value), shapes[name]) for name, value in drawn.items()}
    leading = {name: list(value.shape[:2]) for name, value in draws.items()}
    if len({tuple(sizes) for sizes in leading.values()}) > 1:
        raise ValueError(f"posterior: expected the same number of chains and draws for all sites, found {leading}")
    return draws


def _samples_of(mcmc: MCMC) -> dict[str, Tensor]:
    if mcmc._samples is None:
        raise ValueError("posterior: expected an MCMC object after its run, found no draws; call mcmc.run(...) first")
    return dict(mcmc.get_samples(group_by_chain=True))


def chained_draws(
    source: Any, *arguments: Any, num_draws: int = 1000, group_by_chain: bool = False
) -> dict[str, Tensor]:
    """Posterior draws as ``[chains, draws, ...]`` tensors by name; those of a guide are one chain.

    :param source: as for :func:`posterior_draws`; of a ``Predictive``, the draws that it predicts from.
    :param arguments: the program's arguments, for a guide to run with.
    :param num_draws: how many draws to take from a guide.
    :param group_by_chain: whether draws given by name have a dimension of chains before that of the draws.
    :raises ValueError: for an ``MCMC`` object before its run, and for draws that differ in number.
    """
    if isinstance(source, Predictive) and source.guide is None:
        source = source.posterior_samples
    if isinstance(source, MCMC):
        return _samples_of(source)
    if not isinstance(source, Mapping):
        shapes = _latent_shapes(source.guide if isinstance(source, Predictive) else source, *arguments)
        return posterior_draws(source, shapes, *arguments, num_draws=num_draws)
    draws = {name: torch.as_tensor(value) for name, value in source.items()}
    draws = draws if group_by_chain else {name: value[None] for name, value in draws.items()}
    leading = {name: list(value.shape[:2]) for name, value in draws.items()}
    if len({tuple(sizes) for sizes in leading.values()}) != 1 or any(len(sizes) < 2 for sizes in leading.values()):
        raise ValueError(f"posterior: expected the same number of chains and draws for all sites, found {leading}")
    return draws


def divergences(source: Any) -> Tensor | None:
    """Which draws of an ``MCMC`` object diverged, ``[chains, draws]``; ``None`` if there is nothing that says so."""
    # MCMC.diagnostics() would compute R-hat too, which fails for fewer than four draws.
    found = source._diagnostics if isinstance(source, MCMC) else [None]
    if any(chain is None or "divergences" not in chain for chain in found):
        return None
    diverging = torch.zeros(len(found), source.num_samples, dtype=torch.bool)
    for row, chain in zip(diverging, found, strict=True):
        row[chain["divergences"]] = True
    return diverging


def _latent_shapes(guide: Any, *arguments: Any) -> Shapes:
    """The shapes of what a guide draws for the model, without its own auxiliary sites."""
    if not callable(guide):
        return {}
    with isolated(validate=False, seed=0):
        trace = poutine.trace(guide).get_trace(*arguments)
    return {name: site["value"].shape for name, site in sample_sites(trace) if not site["infer"].get("is_auxiliary")}


def _check_names(values: Mapping[str, Any], shapes: Shapes) -> None:
    unknown = sorted(set(values) - set(shapes))
    if unknown:
        raise ValueError(f"parameters: the program has no global site {unknown}, expected some of {sorted(shapes)}")


def _as_draws(name: str, value: Tensor, shape: torch.Size) -> Tensor:
    """``[C, D, *shape]`` from draws with or without a dimension of chains, and with or without singleton dimensions."""
    for leading in (1, 2):  # draws, or chains and draws
        rest = value.shape[leading:]
        if value.ndim >= leading and [n for n in rest if n != 1] == [n for n in shape if n != 1]:
            if leading == 2 and len(rest) < len(shape):
                continue
            return value.reshape(*([1] if leading == 1 else []), *value.shape[:leading], *shape)
    raise ValueError(
        f"posterior: site {name!r} has draws of shape {list(value.shape)}, expected [draws, {_listed(shape)}] or "
        f"[chains, draws, {_listed(shape)}]"
    )


def _listed(shape: torch.Size) -> str:
    return ", ".join(map(str, shape)) or "nothing more"
