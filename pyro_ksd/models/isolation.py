# SPDX-License-Identifier: Apache-2.0
"""Running a user's Pyro program without leaving traces in the user's session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyro
import torch


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


def seed_from(generator: torch.Generator | None) -> int | None:
    """A seed drawn from a generator, for code that knows only the global random state."""
    if generator is None:
        return None
    return int(torch.randint(2**62, (), generator=generator, device=generator.device))
