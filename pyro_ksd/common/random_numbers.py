# SPDX-License-Identifier: Apache-2.0
"""Generators of random numbers, and seeds drawn from them."""

from __future__ import annotations

from numbers import Integral

import numpy as np
import torch
from torch import Tensor

from pyro_ksd.common.option_checks import check_instance, found

Seed = int | torch.Generator
"""What users pass as ``seed=``: an integer, or a generator from which a seed is drawn."""

_SEEDS = 2**62
_LARGEST_SEED = 2**63 - 1


def as_seed(seed: object) -> int:
    """The seed of random numbers, as an integer of Python.

    :param seed: an integer of Python, numpy or torch (a tensor without dimensions), or a generator, from which a seed
        is drawn.

    >>> as_seed(np.int64(3)), as_seed(torch.tensor(3))
    (3, 3)
    >>> as_seed(torch.Generator().manual_seed(0)) == as_seed(torch.Generator().manual_seed(0))
    True
    >>> as_seed(0.5)
    Traceback (most recent call last):
    ValueError: seed: expected an integer from 0 to 9223372036854775807 or a torch.Generator, found 0.5
    """
    if isinstance(seed, torch.Generator):
        return drawn_seed(seed)
    number = seed.item() if isinstance(seed, Tensor | np.ndarray) and seed.ndim == 0 else seed
    if isinstance(number, Integral) and not isinstance(number, bool) and 0 <= int(number) <= _LARGEST_SEED:
        return int(number)
    raise ValueError(f"seed: expected an integer from 0 to {_LARGEST_SEED} or a torch.Generator, found {found(seed)}")


def seeded_generator(seed: Seed) -> torch.Generator:
    """A generator that does not repeat ``manual_seed(seed)``.

    Data are often drawn with the same small seed as the check uses. If the model then drew the same random numbers, its
    samples would resemble the data however wrong the model.

    >>> one, other = seeded_generator(0), torch.Generator().manual_seed(0)
    >>> torch.rand(1, generator=one).equal(torch.rand(1, generator=other))
    False
    """
    return torch.Generator().manual_seed(drawn_seed(torch.Generator().manual_seed(as_seed(seed))))


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


def following_seed(generator: torch.Generator | None) -> int:
    """The seed that :func:`drawn_seed` would draw from a generator, which stays where it is.

    For code that gets the generator, and may use global random states beside it.

    >>> generator = torch.Generator().manual_seed(0)
    >>> following_seed(generator) == following_seed(generator) == drawn_seed(generator)
    True
    """
    return drawn_seed(None if generator is None else torch.Generator().set_state(generator.get_state()))
