# SPDX-License-Identifier: Apache-2.0
"""Running what a user wrote without changing the user's session: random states, default dtype, parameters, settings.

The engine imports this module, so Pyro is loaded only where something runs.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pyro_ksd.models.training_mode import in_evaluation_mode

_NUMPY_SEEDS = 2**32

_ONE_THREAD = threading.RLock()


@contextmanager
def session_kept(seed: int) -> Iterator[None]:
    """Keeps the user's session as it is, also after an exception.

    That is: the random states of torch, numpy and ``random``, the default dtype, the parameter store and Pyro's
    settings. All threads share them, and Pyro's handlers, too: so one thread at a time may be within.

    :param seed: of all random states within.

    >>> with session_kept(seed=0):
    ...     one = torch.rand(1), random.random()
    ...     torch.set_default_dtype(torch.double)
    >>> with session_kept(seed=0):
    ...     one == (torch.rand(1), random.random())
    True
    """
    with _ONE_THREAD, random_states_kept(seed), default_dtype_kept(), settings_kept(), params_kept():
        yield


@contextmanager
def isolated(*, validate: bool | None = None, seed: int = 0) -> Iterator[None]:
    """Runs what a user wrote as a model: without gradients, not in training mode, and with the session kept.

    :param validate: whether Pyro validates within, which costs half the speed; as in the session if left out.
    :param seed: of all random states within.
    """
    with session_kept(seed), torch.no_grad(), in_evaluation_mode():
        if validate is not None:
            import pyro

            pyro.enable_validation(validate)
        yield


@contextmanager
def random_states_kept(seed: int) -> Iterator[None]:
    """Restores the random states of torch, numpy and ``random``.

    :param seed: of all random states within.
    """
    states = random_states()
    with torch.random.fork_rng():
        try:
            # torch.manual_seed looks for devices of all kinds, which takes long.
            torch.default_generator.manual_seed(seed)
            if torch.cuda.is_initialized():
                torch.cuda.manual_seed_all(seed)
            random.seed(seed)
            np.random.seed(seed % _NUMPY_SEEDS)  # noqa: NPY002
            yield
        finally:
            random.setstate(states["random"])
            np.random.set_state(states["numpy"])  # noqa: NPY002


def random_states() -> dict[str, Any]:
    """The random states of torch, numpy and ``random``."""
    return {
        "torch": torch.get_rng_state(),
        "numpy": np.random.get_state(),  # noqa: NPY002
        "random": random.getstate(),
    }


@contextmanager
def default_dtype_kept() -> Iterator[None]:
    """Restores torch's default dtype."""
    dtype = torch.get_default_dtype()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)


@contextmanager
def settings_kept() -> Iterator[None]:
    """Restores Pyro's settings, those of the validation among them."""
    from pyro import settings

    kept = settings.get()
    try:
        yield
    finally:
        settings.set(**kept)


@contextmanager
def params_kept() -> Iterator[None]:
    """Forgets the parameters that a program creates; those that were there before stay the same tensors."""
    import pyro

    store = vars(pyro.get_param_store())
    kept = {name: dict(value) for name, value in store.items() if isinstance(value, dict)}
    try:
        yield
    finally:
        store.update(kept)


@dataclass(frozen=True, eq=False)
class Session:
    """What of a user's session the scores of a model may depend on, to be sent to other processes.

    :param process: the number of the process.
    :param default_dtype: that of torch.
    :param params: the state of Pyro's parameter store.
    """

    process: int
    default_dtype: torch.dtype
    params: Mapping[str, Any]

    @staticmethod
    def now() -> Session:
        """The session of this process."""
        import pyro

        return Session(os.getpid(), torch.get_default_dtype(), pyro.get_param_store().get_state())

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Has another process do as this one would; nothing changes in the process itself.

        >>> with Session.now().entered():
        ...     torch.get_default_dtype()
        torch.float32
        """
        if os.getpid() == self.process:
            yield
            return
        import pyro

        with _ONE_THREAD, default_dtype_kept(), params_kept():
            torch.set_default_dtype(self.default_dtype)
            store = pyro.get_param_store()
            store.clear()
            store.set_state(self.params)
            yield


@contextmanager
def unvalidated() -> Iterator[None]:
    """Switches off the validation of distributions, which is slow, and data-dependent control flow under vmap."""
    from pyro import settings

    with _ONE_THREAD, settings.context(validate_distributions_pyro=False, validate_distributions_torch=False):
        yield
