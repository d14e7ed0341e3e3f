# SPDX-License-Identifier: Apache-2.0
"""The posterior that a user's function finds, in a session of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyro
import torch
from torch import Tensor

from pyro_ksd.models.posterior.posterior_models import PosteriorModels, check_takes_draws, program_arguments
from pyro_ksd.models.programs.global_sites import param_values
from pyro_ksd.models.programs.program_errors import called_with
from pyro_ksd.models.session_state import session_kept
from pyro_ksd.sequences.container import Sequences

Fit = Callable[[Any, Sequences], Any]
"""Fits a program to sequences, and gives what ``posterior=`` takes."""


def fitted_posterior(fit: Fit, program: Any, data: Sequences, options: Mapping[str, Any], seed: int) -> PosteriorModels:
    """The models of the posterior that a fit finds; each fit starts from the parameter store as the user has it.

    :param options: of :class:`~pyro_ksd.models.posterior.posterior_models.PosteriorModels`.
    :param seed: of all random numbers of the fit; folds with the same random numbers would not be independent.
    :raises ValueError: if the fit gives no posterior of the program, or trains parameters of the program and leaves
        their values where the next fit would begin with them.
    """
    check_takes_draws("fit", program)
    before = _params(program, data)
    with session_kept(seed):  # a guide may have its parameters in the parameter store
        _copy_params()
        posterior = fit(program, data)
        try:
            models = PosteriorModels(program, data, posterior, seed=seed, **options)
        except ValueError as error:
            raise ValueError(f"fit: expected a function that gives what posterior= takes; {error}") from error
        after = _params(program, data)
    trained = [name for name, value in after.items() if name not in before or not torch.equal(value, before[name])]
    left = sorted(set(trained) - set(models.values))
    if left:
        raise ValueError(
            f"fit: expected values of all parameters that it trains, found that {left[:3]} of the program changed, but "
            "have no draws; the next fit would begin with them. Train copies of modules, and give the others draws "
            "that are all the same: {**draws, name: pyro.param(name).detach().expand(num_draws, ...)}"
        )
    return models


def _copy_params() -> None:
    """Has the parameter store hold copies, which can be trained in place."""
    store = pyro.get_param_store()
    state = store.get_state()
    copies = {name: value.detach().clone().requires_grad_() for name, value in state["params"].items()}
    store.set_state({"params": copies, "constraints": dict(state["constraints"])})


def _params(program: Any, data: Sequences) -> dict[str, Tensor]:
    """The parameters of a program, as they are now."""
    named = program_arguments(program, data)
    with called_with(program, named, data.alphabet_size):
        return param_values(program, *named.values())
