# SPDX-License-Identifier: Apache-2.0
"""Running a user's Pyro program without changing the user's session: random states, parameters, settings."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyro
import torch
from pyro import settings
from pyro.util import get_rng_state, set_rng_state

from pyro_ksd.models.programs.training_mode import in_evaluation_mode

_NUMPY_SEEDS = 2**32


@contextmanager
def isolated(*, validate: bool, seed: int | None = None) -> Iterator[None]:
    """Keeps the user's session as it is, also after an exception.

    That is: the random states of torch, numpy and ``random``, the default dtype, the parameter store and the validation
    settings.

    :param validate: whether Pyro validates within. It costs half the speed.
    :param seed: of all random states within; ``None`` to go on from the states outside.
    """
    settings_kept = pyro.validation_enabled(validate)
    with random_states_kept(seed), default_dtype_kept(), settings_kept, params_kept(), as_a_model():
        yield


@contextmanager
def as_a_model() -> Iterator[None]:
    """Runs without gradients, and refuses modules in training mode."""
    with torch.no_grad(), in_evaluation_mode():
        yield


@contextmanager
def random_states_kept(seed: int | None = None) -> Iterator[None]:
    """Restores the random states of torch, numpy and ``random``.

    :param seed: of all random states within; ``None`` to go on from the states outside.
    """
    states = get_rng_state()
    with torch.random.fork_rng():
        try:
            if seed is not None:
                torch.manual_seed(seed)
                random.seed(seed)
                np.random.seed(seed % _NUMPY_SEEDS)  # noqa: NPY002
            yield
        finally:
            set_rng_state(states)


@contextmanager
def default_dtype_kept() -> Iterator[None]:
    """Restores torch's default dtype."""
    dtype = torch.get_default_dtype()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)


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
