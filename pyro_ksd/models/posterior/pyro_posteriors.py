# SPDX-License-Identifier: Apache-2.0
"""Posterior draws from the objects in which Pyro has them: ``MCMC``, ``Predictive``, guides, draws by name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import pyro
import torch
from pyro import poutine
from pyro.distributions import Delta, Unit
from pyro.infer import MCMC, Predictive
from torch import Tensor

from pyro_ksd.common.option_checks import check_mapping, found
from pyro_ksd.models.programs.exact_probabilities import innermost
from pyro_ksd.models.programs.global_sites import Shapes, as_value, bind, check_names
from pyro_ksd.models.programs.plate_layout import sample_sites
from pyro_ksd.models.programs.program_errors import is_ours
from pyro_ksd.models.session_state import isolated

NO_SITES: Mapping[str, str] = MappingProxyType({})


def posterior_draws(
    source: Any,
    shapes: Shapes,
    *arguments: Any,
    num_draws: int = 100,
    local: Mapping[str, str] = NO_SITES,
    seed: int = 0,
) -> dict[str, Tensor]:
    """Posterior draws as ``[chains, draws, ...]`` tensors by name; draws that do not tell chains are one chain.

    :param source: draws by name (from ``MCMC.get_samples()``, with or without ``group_by_chain``, or from
        ``Predictive``), an ``MCMC`` object after its run, a ``Predictive``, or a guide.
    :param shapes: of the global sites of the program.
    :param arguments: the program's arguments, for a guide or a ``Predictive`` to run with.
    :param num_draws: how many draws to take from a guide.
    :param local: for each site of the program that belongs to each sequence, what to do with it.
    :param seed: of what a guide or a ``Predictive`` draws.
    :raises ValueError: naming a site that is missing, unknown or of another shape.
    """
    if isinstance(source, Mapping):
        check_mapping("posterior", source, "draws by the names of the sites")
        drawn = dict(source)
    elif isinstance(source, MCMC):
        drawn = _samples_of(source)
    elif callable(source) and not isinstance(source, type):
        predictive = source if isinstance(source, Predictive) else Predictive(source, num_samples=num_draws)
        with _run(source, seed), _trained(source.guide if isinstance(source, Predictive) else source):
            drawn = predictive(*arguments)
        drawn = {name: value for name, value in drawn.items() if name in shapes}
    else:
        raise ValueError(
            f"posterior: expected draws by name, an MCMC object, a Predictive or a guide, found {found(source)}"
        )
    check_names("posterior", drawn, shapes, local)
    draws = {name: _as_draws(name, as_value("posterior", name, value), shapes[name]) for name, value in drawn.items()}
    _check_sizes(draws)
    return draws


def without_sites(source: Any, names: Collection[str]) -> Any:
    """Draws by name, or those of an ``MCMC`` object, without some sites; anything else as it is."""
    drawn = _samples_of(source) if isinstance(source, MCMC) else source
    if not isinstance(drawn, Mapping):
        return source
    return {name: value for name, value in drawn.items() if name not in names}


@contextmanager
def _run(source: object, seed: int = 0) -> Iterator[None]:
    """Runs a guide or a ``Predictive``, and says of an error that it came from there."""
    try:
        with isolated(validate=False, seed=seed):
            yield
    except Exception as error:
        if is_ours(error):
            raise
        first_line = next(iter(str(error).splitlines()), "")
        raise ValueError(
            f"posterior: expected a guide that runs with the arguments of the program, found {found(source)}, which "
            f"failed with {type(error).__name__}: {first_line}"
        ) from error


@contextmanager
def _trained(guide: Any) -> Iterator[None]:
    """Refuses a guide whose parameters come into being when it runs: it was never trained."""
    store = pyro.get_param_store()
    known = set(store.keys())
    # An automatic guide that has run before has parameters of its own, whatever the parameter store has.
    has_run = getattr(guide, "prototype_trace", None) is not None
    yield
    new = sorted(set(store.keys()) - known)
    if new and not has_run:
        raise ValueError(
            f"posterior: expected a guide after its training, found that its parameters {new[:3]} did not exist before "
            "it ran; train it with SVI, or load the parameter store: pyro.get_param_store().load(...)"
        )


def _check_sizes(draws: Mapping[str, Tensor]) -> None:
    """Checks that all sites have draws, and the same number of them."""
    leading = {name: list(value.shape[:2]) for name, value in draws.items()}
    if len({tuple(sizes) for sizes in leading.values()}) > 1 or any(len(sizes) < 2 for sizes in leading.values()):
        raise ValueError(f"posterior: expected the same number of chains and draws for all sites, found {leading}")
    empty = [name for name, sizes in leading.items() if 0 in sizes]
    if empty:
        raise ValueError(f"posterior: expected at least one draw of each site, found none of {empty}")


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
    draws = {name: as_value("posterior", name, value) for name, value in source.items()}
    draws = draws if group_by_chain else {name: value[None] for name, value in draws.items()}
    _check_sizes(draws)
    return draws


def divergences(source: Any) -> Tensor | None:
    """Which draws of an ``MCMC`` object diverged, ``[chains, draws]``; ``None`` if there is nothing that says so."""
    # MCMC.diagnostics() would compute R-hat too, which fails for fewer than four draws.
    chains = source._diagnostics if isinstance(source, MCMC) else [None]
    if any(chain is None or "divergences" not in chain for chain in chains):
        return None
    diverging = torch.zeros(len(chains), source.num_samples, dtype=torch.bool)
    for row, chain in zip(diverging, chains, strict=True):
        row[chain["divergences"]] = True
    return diverging


def observations(source: Any, *arguments: Any) -> dict[str, Tensor]:
    """The values of the observed sites, by name; nothing for draws that do not tell what they were inferred from.

    :param source: an ``MCMC`` object after its run, or a ``Predictive``.
    :param arguments: of the model, for a ``Predictive``.
    """
    model, known, named = _model_of(source, arguments)
    if model is None:
        return {}
    with isolated(validate=False, seed=0):
        trace = poutine.trace(model).get_trace(*known, **named)
    return {name: site["value"] for name, site in sample_sites(trace) if _is_data(site)}


def pointwise_log_likelihood(source: Any) -> dict[str, Tensor]:
    """The log-probability of each observed value under each posterior draw, ``[chains, draws, ...]`` by site.

    The model runs once for each draw, so that its plates need not leave room for a dimension of draws.

    :param source: an ``MCMC`` object after its run.
    :raises ValueError: for other sources, and for a model that has discrete latents, of which there are no draws.
    """
    model, known, named = _model_of(source, ())
    if model is None or not isinstance(source, MCMC):
        raise ValueError(
            f"log_likelihood: expected an MCMC object, which knows its model and data, found {found(source)}; leave "
            "out log_likelihood="
        )
    draws = _samples_of(source)
    chains, length = next(iter(draws.values())).shape[:2]
    scored: dict[str, list[Tensor]] = {}
    for index in range(chains * length):
        point = {name: value[index // length, index % length] for name, value in draws.items()}
        with isolated(validate=False, seed=0):
            trace = poutine.trace(bind(model, point)).get_trace(*known, **named)
        for name, site in sample_sites(trace):
            if not site["is_observed"] and name not in draws:
                raise ValueError(
                    f"log_likelihood: expected draws of all latent sites, found none of {name!r}, which the inference "
                    "sums out; ksd_check(..., posterior=...) gives the log-likelihood of whole sequences"
                )
            if name not in draws and _is_data(site):
                mask = torch.as_tensor(True if site["mask"] is None else site["mask"])
                scored.setdefault(name, []).append(site["fn"].log_prob(site["value"]).where(mask, 0.0).detach())
    return {name: torch.stack(values).unflatten(0, (chains, length)) for name, values in scored.items()}


def in_chains(option: str, values: Mapping[str, Tensor], shape: tuple[int, int] | None) -> dict[str, Tensor]:
    """Predictive draws ``[chains, draws, ...]``, from draws of all chains one after the other.

    :param option: the name of the argument, for errors.
    :param shape: the numbers of chains and of draws of each; ``None`` for one chain.
    """
    shaped = {}
    for name, value in values.items():
        draws = as_value(option, name, value)
        leading = shape or (1, len(draws) if draws.ndim else 0)
        if draws.shape[:2] == leading:
            shaped[name] = draws
        elif draws.ndim and len(draws) == leading[0] * leading[1]:
            shaped[name] = draws.reshape(*leading, *draws.shape[1:])
        else:
            raise ValueError(
                f"{option}: expected {leading[0] * leading[1]} draws of {name!r}, as many as of the posterior, found "
                f"the shape {list(draws.shape)}; draw them with Predictive(model, mcmc.get_samples())"
            )
    return shaped


def _model_of(source: Any, arguments: Sequence[Any]) -> tuple[Any, Sequence[Any], Mapping[str, Any]]:
    """The model of an inference and the arguments that it was run with; no model where that is not known."""
    if isinstance(source, MCMC) and hasattr(source.kernel, "model"):
        return source.kernel.model, source._args or (), source._kwargs or {}
    if isinstance(source, Predictive):
        return source.model, arguments, {}
    return None, (), {}


def _is_data(site: Mapping[str, Any]) -> bool:
    """Whether a site observes data: neither a factor nor a ``pyro.deterministic``."""
    return bool(site["is_observed"]) and not isinstance(innermost(site["fn"]), Unit | Delta)


def _latent_shapes(guide: Any, *arguments: Any) -> Shapes:
    """The shapes of what a guide draws for the model, without its own auxiliary sites."""
    if not callable(guide):
        return {}
    with _run(guide):
        trace = poutine.trace(guide).get_trace(*arguments)
    return {name: site["value"].shape for name, site in sample_sites(trace) if not site["infer"].get("is_auxiliary")}


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
