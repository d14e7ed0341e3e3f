# SPDX-License-Identifier: Apache-2.0
"""Running a user's Pyro program without changing the user's session: random state, parameters, validation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyro
import torch
from pyro import settings
from pyro.params.param_store import ParamStoreDict
from pyro.util import get_rng_state, set_rng_state


@contextmanager
def isolated(*, validate: bool, seed: int | None = None) -> Iterator[None]:
    """Keeps the random state, the parameter store and the validation settings as they are, also after an exception.

    :param validate: whether Pyro validates within. It costs half the speed.
    :param seed: of the random state within; ``None`` to go on from the state outside.
    """
    with torch.random.fork_rng(), pyro.validation_enabled(validate), torch.no_grad(), params_kept():
        if seed is not None:
            torch.manual_seed(seed)
        yield


@contextmanager
def params_kept() -> Iterator[None]:
    """Forgets the parameters that a program creates; those that were there before stay the same tensors."""
    store = vars(pyro.get_param_store())
    kept = {name: dict(value) for name, value in store.items() if isinstance(value, dict)}
    try:
        yield
    finally:
        store.update(kept)


@contextmanager
def unvalidated() -> Iterator[None]:
    """Switches off the validation of distributions, which is slow, and data-dependent control flow under vmap."""
    with settings.context(validate_distributions_pyro=False, validate_distributions_torch=False):
        yield


@contextmanager
def without_randomness(params: ParamStoreDict) -> Iterator[None]:
    """Checks that a run of a program draws no random numbers, except to initialize parameters.

    :param params: where the program's new parameters go.
    """
    state = torch.get_rng_state()
    known = len(params)
    try:
        yield
        if len(params) > known:
            state = torch.get_rng_state()
        elif not torch.equal(state, torch.get_rng_state()):
            raise ValueError(
                "the program draws random numbers although all its sites have values, expected the same "
                "log-probability from every run; look for dropout (call .eval() on modules), blocked sites, torch.rand"
            )
    finally:
        torch.set_rng_state(state)


@contextmanager
def all_seeded(generator: torch.Generator) -> Iterator[None]:
    """Seeds all random states by the generator, and restores them."""
    seed = int(torch.randint(2**31, (), generator=generator))
    state = get_rng_state()
    with torch.random.fork_rng():
        try:
            pyro.set_rng_seed(seed)
            yield
        finally:
            set_rng_state(state)
