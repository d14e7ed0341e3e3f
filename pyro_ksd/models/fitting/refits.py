# SPDX-License-Identifier: Apache-2.0
"""Ready-made fits for the bootstrap of models whose parameters were estimated from the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyro
import torch
from pyro.infer.autoguide import AutoDelta
from torch import Tensor
from torch.distributions import Distribution

from pyro_ksd.common.option_checks import found
from pyro_ksd.common.random_numbers import Seed, as_seed
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.distributions.markov import MarkovSequence
from pyro_ksd.models.fitting.counting import check_smoothing, fitted_chain
from pyro_ksd.models.fitting.svi_training import check_training, fitting_arguments, trained_guide
from pyro_ksd.models.programs.repeatability import MODULE_WEIGHT
from pyro_ksd.models.session_state import session_kept
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
        check_training(self.guide, self.num_steps, self.learning_rate)
        object.__setattr__(self, "seed", as_seed(self.seed))

    def __call__(self, program: Callable[..., Any], data: Sequences) -> dict[str, Tensor]:
        arguments = fitting_arguments(program, data, "refit")
        with trained_guide(
            program,
            arguments,
            self.guide,
            num_sequences=len(data),
            num_steps=self.num_steps,
            learning_rate=self.learning_rate,
            seed=as_seed(self.seed),
            option="refit",
        ) as trained:
            medians = trained.guide.median(*arguments) if trained.latent else {}
        return {name: value.detach().clone() for name, value in {**medians, **trained.learned}.items()}


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
