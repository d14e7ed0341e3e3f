# SPDX-License-Identifier: Apache-2.0
"""Ready-made inferences of a posterior, for checks that fit a program several times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from pyro.infer import MCMC, NUTS, Predictive
from pyro.infer.autoguide import AutoNormal
from torch import Tensor

from pyro_ksd.common.checkpoints import digest
from pyro_ksd.common.option_checks import check_number
from pyro_ksd.common.random_numbers import Seed, as_seed, drawn_seed
from pyro_ksd.models.fitting.svi_training import MakeGuide, check_training, fitting_arguments, trained_guide
from pyro_ksd.models.session_state import session_kept
from pyro_ksd.sequences.container import Sequences

_DIGITS = 15  # hexadecimal ones, of 60 bits


@dataclass(frozen=True)
class FitNUTS:
    """Draws from the posterior of a program's sample sites, by the No-U-Turn sampler.

    The user's parameter store and random state stay as they are.

    :param num_samples: draws of the posterior.
    :param warmup_steps: steps before them.
    :param seed: of all random numbers, which are other ones for other data.

    >>> import pyro
    >>> from pyro_ksd import MarkovSequence
    >>> def program(x=None, num_sequences=None):
    ...     stop = pyro.sample("stop", pyro.distributions.Beta(2.0, 2.0))
    ...     chain = MarkovSequence.from_transitions(torch.ones(2) / 2, torch.ones(2, 2) / 2, stop)
    ...     with pyro.plate("sequences", num_sequences if x is None else len(x)):
    ...         return pyro.sample("x", chain, obs=x)
    >>> draws = FitNUTS(num_samples=20, warmup_steps=10)(program, Sequences.of(["ab", "b", "aba", "aa"]))
    >>> draws["stop"].shape
    torch.Size([20])
    """

    num_samples: int = 500
    warmup_steps: int = 200
    seed: Seed = 0

    def __post_init__(self) -> None:
        check_number("num_samples", self.num_samples, least=1)
        check_number("warmup_steps", self.warmup_steps, least=0)
        object.__setattr__(self, "seed", as_seed(self.seed))

    def __call__(self, program: Callable[..., Any], data: Sequences) -> dict[str, Tensor]:
        arguments = fitting_arguments(program, data, "fit")
        with session_kept(_seed_for(data, self.seed)), torch.enable_grad():
            mcmc = MCMC(
                NUTS(program), num_samples=self.num_samples, warmup_steps=self.warmup_steps, disable_progbar=True
            )
            mcmc.run(*arguments)
            draws: dict[str, Tensor] = mcmc.get_samples()
        return draws


@dataclass(frozen=True)
class FitSVI:
    """Draws from a guide of a program's sample sites, trained by stochastic variational inference.

    The program's own ``pyro.param`` sites are learned as well: all draws have the same values of them. The user's
    parameter store and random state stay as they are.

    :param guide: makes a guide from a program, such as ``AutoNormal`` or ``AutoMultivariateNormal``. ``AutoDelta`` has
        no posterior, only a point.
    :param num_samples: draws from the guide.
    :param num_steps: of the optimizer. Take enough for convergence.
    :param learning_rate: of Adam.
    :param seed: of the guide's initial values and draws, which are other ones for other data.

    >>> import pyro
    >>> from pyro_ksd import MarkovSequence
    >>> def program(x=None, num_sequences=None):
    ...     stop = pyro.sample("stop", pyro.distributions.Beta(2.0, 2.0))
    ...     chain = MarkovSequence.from_transitions(torch.ones(2) / 2, torch.ones(2, 2) / 2, stop)
    ...     with pyro.plate("sequences", num_sequences if x is None else len(x)):
    ...         return pyro.sample("x", chain, obs=x)
    >>> draws = FitSVI(num_steps=20)(program, Sequences.of(["ab", "b", "aba", "aa"]))
    >>> draws["stop"].shape
    torch.Size([500])
    """

    guide: MakeGuide = AutoNormal
    num_samples: int = 500
    num_steps: int = 1000
    learning_rate: float = 0.05
    seed: Seed = 0

    def __post_init__(self) -> None:
        check_training(self.guide, self.num_steps, self.learning_rate)
        check_number("num_samples", self.num_samples, least=1)
        object.__setattr__(self, "seed", as_seed(self.seed))

    def __call__(self, program: Callable[..., Any], data: Sequences) -> dict[str, Tensor]:
        arguments = fitting_arguments(program, data, "fit")
        with trained_guide(
            program,
            arguments,
            self.guide,
            num_sequences=len(data),
            num_steps=self.num_steps,
            learning_rate=self.learning_rate,
            seed=_seed_for(data, self.seed),
            option="fit",
        ) as trained:
            drawn: dict[str, Tensor] = {}
            if trained.latent:
                with torch.no_grad():
                    drawn = Predictive(trained.guide, num_samples=self.num_samples)(*arguments)
        draws = {name: value for name, value in drawn.items() if name in trained.latent}
        same = {name: value.expand(self.num_samples, *value.shape) for name, value in trained.learned.items()}
        return {name: value.detach().clone() for name, value in {**draws, **same}.items()}


def _seed_for(data: Sequences, seed: Seed) -> int:
    """A seed that other data do not have, so that the fits of several folds are independent."""
    generator = torch.Generator().manual_seed(as_seed(seed))
    return drawn_seed(generator) ^ int(digest(data.tokens, data.lengths)[:_DIGITS], 16)
