# SPDX-License-Identifier: Apache-2.0
"""Ready-made fits for the bootstrap of models whose parameters were estimated from the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyro
import torch
from pyro import poutine
from pyro.infer import SVI, Trace_ELBO, TraceEnum_ELBO
from pyro.infer.autoguide import AutoDelta
from pyro.optim import Adam
from torch import Tensor
from torch.distributions import Distribution

from pyro_ksd.common.option_checks import check_number, check_positive, found
from pyro_ksd.common.random_numbers import Seed, as_seed
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.distributions.markov import MarkovSequence
from pyro_ksd.models.fitting.counting import check_smoothing, fitted_chain
from pyro_ksd.models.programs.call_conventions import convention_of
from pyro_ksd.models.programs.plate_layout import sample_sites
from pyro_ksd.models.programs.repeatability import MODULE_WEIGHT
from pyro_ksd.models.session_state import session_kept
from pyro_ksd.sequences.argument_checks import check_sequences
from pyro_ksd.sequences.container import Sequences


@dataclass(frozen=True)
class RefitMarkov:
    """Fits a Markov chain of the model's order by counting, see :func:`~pyro_ksd.fit_markov`.

    :param pseudocount: added to each count. With 0, the maximum-likelihood estimate, a chain that was fitted to one
        data set may call another one impossible; that does not matter here, as every data set has a fit of its own.
    :param backoff: whether to interpolate with shorter contexts, as the fit of the model did.

    >>> from pyro_ksd import fit_markov, ksd_check
    >>> data = ["abcab", "bba", "cabca", "ab", "bcaaca", "cab"]
    >>> fitted = fit_markov(data, order=1)
    >>> check = ksd_check(fitted, data, refit=RefitMarkov(), num_bootstrap=20, progress=False)
    >>> check["ksd"].attrs["kind"]
    'refit'
    """

    pseudocount: float = 0.0
    backoff: bool = False

    def __post_init__(self) -> None:
        check_smoothing(self.pseudocount, self.backoff)

    def __call__(self, model: MarkovSequence, data: Sequences) -> MarkovSequence:
        if not isinstance(model, MarkovSequence):
            raise ValueError(f"model: expected a MarkovSequence to refit, found {found(model)}")
        return fitted_chain(Sequences.of(data), model.order, self.pseudocount, self.backoff)[0]


@dataclass(frozen=True)
class RefitSVI:
    """Fits a program's global sites, and its ``pyro.param`` sites, by stochastic variational inference.

    Gives the medians of the guide. The default guide, ``AutoDelta``, makes it the maximum a posteriori estimate, and
    the maximum-likelihood estimate for a program that has only ``pyro.param`` sites. The user's parameter store and
    random state stay as they are.

    :param guide: makes a guide from a program, such as ``AutoDelta`` or ``AutoNormal``; it must have ``median``.
    :param num_steps: of the optimizer. Take enough for convergence: a fit that stops early is another estimator.
    :param learning_rate: of Adam.
    :param seed: of the guide's initial values and draws.
    """

    guide: Callable[[Callable[..., Any]], Any] = AutoDelta
    num_steps: int = 300
    learning_rate: float = 0.05
    seed: Seed = 0

    def __post_init__(self) -> None:
        if not callable(self.guide):
            raise ValueError(
                f"guide: expected what makes a guide from a program, such as AutoDelta, found {found(self.guide)}"
            )
        check_number("num_steps", self.num_steps, least=1)
        check_positive("learning_rate", self.learning_rate)
        object.__setattr__(self, "seed", as_seed(self.seed))

    def __call__(self, program: Callable[..., Any], data: Sequences) -> dict[str, Tensor]:
        if not callable(program):
            raise ValueError(f"program: expected a Pyro program to refit, found {found(program)}")
        check_sequences("data", data)
        convention = convention_of(program, with_covariates=data.covariates is not None)
        arguments = convention.arguments(convention.rows(data), data.vectors).values()
        with session_kept(as_seed(self.seed)), torch.enable_grad():
            pyro.clear_param_store()
            trace = poutine.trace(program).get_trace(*arguments)
            latent, enumerated, params = _fitted_sites(trace)
            _refuse_local(trace, latent, len(data))
            _refuse_modules(params)
            guide: Any = self.guide(poutine.block(program, expose=latent)) if latent else _nothing
            elbo = TraceEnum_ELBO() if enumerated else Trace_ELBO()
            svi = SVI(program, guide, Adam({"lr": self.learning_rate}), elbo)
            for _ in range(self.num_steps):
                svi.step(*arguments)
            medians = guide.median(*arguments) if latent else {}
            learned = {name: pyro.param(name) for name in params}
        return {name: value.detach().clone() for name, value in {**medians, **learned}.items()}


def refitted(refit: Callable[..., Any], *arguments: Any) -> Any:
    """What a user's fit gives, in a session of its own that starts from the same state for all data sets.

    :raises ValueError: if it gives a program and leaves the values of its parameters in the parameter store, which is
        the user's.
    """
    with session_kept(seed=0):
        before = {name: value.detach().clone() for name, value in _learned()}
        found = refit(*arguments)
        after = dict(_learned())
    trained = [name for name, value in after.items() if name not in before or not torch.equal(value, before[name])]
    if trained and callable(found) and not isinstance(found, Distribution | SequenceModel):
        raise ValueError(
            f"refit: expected values of the parameters by name, found a program whose parameters {trained[:3]} the fit "
            "left in the parameter store, where the next fit would change them; return "
            "{name: pyro.param(name).detach().clone() for name in ...}"
        )
    return found


def _learned() -> Iterator[tuple[str, Tensor]]:
    """The parameters in the store, without the weights of modules, which the modules have themselves."""
    return ((name, value) for name, value in pyro.get_param_store().items() if MODULE_WEIGHT not in name)


def _fitted_sites(trace: poutine.Trace) -> tuple[list[str], list[str], list[str]]:
    """The names of the latent sites, of the enumerated ones among the others, and of the ``pyro.param`` sites."""
    unobserved = [(name, site) for name, site in sample_sites(trace) if not site["is_observed"]]
    enumerated = [name for name, site in unobserved if site["infer"].get("enumerate")]
    params = [name for name, site in trace.nodes.items() if site["type"] == "param"]
    return [name for name, _ in unobserved if name not in enumerated], enumerated, params


def _refuse_local(trace: poutine.Trace, latent: list[str], size: int) -> None:
    """Refuses latents that each sequence has: the best point of all of them together is no fit of the marginal."""
    local = [name for name in latent if any(frame.size == size for frame in trace.nodes[name]["cond_indep_stack"])]
    if local:
        raise ValueError(
            f"refit: found the latents {local[:3]} of each sequence, which RefitSVI does not integrate out; write a "
            "function refit(model, data) that gives values of the other parameters"
        )


def _refuse_modules(params: list[str]) -> None:
    inside = [name for name in params if MODULE_WEIGHT in name]
    if inside:
        raise ValueError(
            f"refit: found the parameters {inside[:3]} of a pyro.module, which training would change in place; write a "
            "function refit(model, data) that trains a copy of the network and gives a program with it"
        )


def _nothing(*arguments: Any) -> None:
    """The guide of a program without latent sites."""
