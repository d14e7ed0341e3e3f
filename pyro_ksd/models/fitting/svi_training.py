# SPDX-License-Identifier: Apache-2.0
"""Guides that are trained by stochastic variational inference, in a session of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyro
import torch
from pyro import poutine
from pyro.infer import SVI, Trace_ELBO, TraceEnum_ELBO
from pyro.optim import Adam
from torch import Tensor

from pyro_ksd.common.option_checks import check_number, check_positive, found
from pyro_ksd.models.programs.call_conventions import convention_of
from pyro_ksd.models.programs.plate_layout import sample_sites
from pyro_ksd.models.programs.repeatability import MODULE_WEIGHT
from pyro_ksd.models.session_state import session_kept
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences

MakeGuide = Callable[[Callable[..., Any]], Any]
"""Makes a guide from a program, as ``AutoNormal`` does."""


@dataclass(frozen=True, eq=False)
class TrainedGuide:
    """A guide after its training; use it within the session in which it was trained.

    :ivar guide: of the latent sites.
    :ivar arguments: of the program, and so of the guide.
    :ivar latent: the names of the latent sites; the guide does nothing if there are none.
    :ivar learned: the values of the program's own ``pyro.param`` sites, by name.
    """

    guide: Any
    arguments: Sequence[Any]
    latent: list[str]
    learned: Mapping[str, Tensor]


def check_training(guide: object, num_steps: object, learning_rate: object) -> None:
    """Checks the options of a training."""
    if not callable(guide):
        raise ValueError(f"guide: expected what makes a guide from a program, such as AutoNormal, found {found(guide)}")
    check_number("num_steps", num_steps, least=1)
    check_positive("learning_rate", learning_rate)


def fitting_arguments(program: Callable[..., Any], data: Sequences, purpose: str) -> Sequence[Any]:
    """What a program is called with, for some data.

    :param purpose: what it is needed for, in an error.
    """
    if not callable(program):
        raise ValueError(f"program: expected a Pyro program to {purpose}, found {found(program)}")
    check_sequences("data", data)
    convention = convention_of(program, with_covariates=data.covariates is not None)
    return list(convention.arguments(convention.rows(data), data.vectors).values())


@contextmanager
def trained_guide(
    program: Callable[..., Any],
    arguments: Sequence[Any],
    make_guide: MakeGuide,
    *,
    num_sequences: int,
    num_steps: int,
    learning_rate: float,
    seed: int,
    option: str,
) -> Iterator[TrainedGuide]:
    """Trains a guide of a program's global sites, and its ``pyro.param`` sites.

    The parameter store is empty within, and the user's session is as before afterwards.

    :param num_sequences: of the data, to refuse latents that each of them has.
    :param option: of a check, for errors: ``"refit"`` or ``"fit"``.
    """
    with session_kept(seed), torch.enable_grad():
        pyro.clear_param_store()
        trace = poutine.trace(program).get_trace(*arguments)
        latent, enumerated, params = _fitted_sites(trace)
        _refuse_local(trace, latent, num_sequences, option)
        _refuse_modules(params, option)
        guide: Any = make_guide(poutine.block(program, expose=latent)) if latent else _nothing
        elbo = TraceEnum_ELBO() if enumerated else Trace_ELBO()
        svi = SVI(program, guide, Adam({"lr": learning_rate}), elbo)
        for _ in range(num_steps):
            svi.step(*arguments)
        yield TrainedGuide(guide, arguments, latent, {each: pyro.param(each) for each in params})


def _fitted_sites(trace: poutine.Trace) -> tuple[list[str], list[str], list[str]]:
    """The names of the latent sites, of the enumerated ones among the others, and of the ``pyro.param`` sites."""
    unobserved = [(name, site) for name, site in sample_sites(trace) if not site["is_observed"]]
    enumerated = [name for name, site in unobserved if site["infer"].get("enumerate")]
    params = [name for name, site in trace.nodes.items() if site["type"] == "param"]
    return [name for name, _ in unobserved if name not in enumerated], enumerated, params


def _refuse_local(trace: poutine.Trace, latent: list[str], size: int, option: str) -> None:
    """Refuses latents that each sequence has: the best point of all of them together is no fit of the marginal."""
    local = [name for name in latent if any(frame.size == size for frame in trace.nodes[name]["cond_indep_stack"])]
    if local:
        raise ValueError(
            f"{option}: found the latents {local[:3]} of each sequence, which {option.capitalize()}SVI does not "
            f"integrate out; write a function {option}(model, data) that gives values of the other parameters"
        )


def _refuse_modules(params: list[str], option: str) -> None:
    inside = [name for name in params if MODULE_WEIGHT in name]
    if inside:
        raise ValueError(
            f"{option}: found the parameters {inside[:3]} of a pyro.module, which training would change in place; "
            f"write a function {option}(model, data) that trains a copy of the network and gives a program with it"
        )


def _nothing(*arguments: Any) -> None:
    """The guide of a program without latent sites."""
