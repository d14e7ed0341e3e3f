# SPDX-License-Identifier: Apache-2.0
"""Generators of random numbers, and seeds drawn from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from pyro_ksd.common.option_checks import check_instance, check_seed

_SEEDS = 2**62


def seeded_generator(seed: int) -> torch.Generator:
    """A generator that does not repeat ``manual_seed(seed)``.

    Data are often drawn with the same small seed as the check uses. If the model then drew the same random numbers, its
    samples would resemble the data however wrong the model.

    >>> one, other = seeded_generator(0), torch.Generator().manual_seed(0)
    >>> torch.rand(1, generator=one).equal(torch.rand(1, generator=other))
    False
    """
    return torch.Generator().manual_seed(drawn_seed(torch.Generator().manual_seed(check_seed(seed))))


def check_generator(generator: object) -> None:
    """Checks that an argument can give random numbers.

    >>> check_generator(0)
    Traceback (most recent call last):
    ValueError: generator: expected a torch.Generator, such as torch.Generator().manual_seed(0), found 0
    """
    words = "a torch.Generator, such as torch.Generator().manual_seed(0)"
    check_instance("generator", generator, torch.Generator, words)


def drawn_seed(generator: torch.Generator | None = None) -> int:
    """A seed drawn from a generator (or from torch's global one), for code that takes seeds or global random states.

    >>> drawn_seed(torch.Generator().manual_seed(0)) == drawn_seed(torch.Generator().manual_seed(0))
    True
    """
    return int(torch.randint(_SEEDS, (), generator=generator))


@contextmanager
def global_random_state(generator: torch.Generator | None) -> Iterator[None]:
    """Seeds torch's global random state by a generator, for code that draws from no other, and restores it.

    >>> with global_random_state(torch.Generator().manual_seed(0)):
    ...     one = torch.rand(1)
    >>> with global_random_state(torch.Generator().manual_seed(0)):
    ...     one.equal(torch.rand(1))
    True
    """
    if generator is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(drawn_seed(generator))
        yield
