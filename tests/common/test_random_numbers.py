# SPDX-License-Identifier: Apache-2.0
"""Generators and seeds: repeatable, independent of each other, and without traces in torch's global state."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from pyro_ksd.common.random_numbers import as_seed, check_generator, drawn_seed, following_seed, seeded_generator


def numbers(generator: torch.Generator | None = None) -> list[float]:
    return torch.rand(5, generator=generator).tolist()


def test_a_seeded_generator_repeats_itself() -> None:
    assert numbers(seeded_generator(3)) == numbers(seeded_generator(3))


def test_seeds_give_different_numbers() -> None:
    assert len({tuple(numbers(seeded_generator(seed))) for seed in range(50)}) == 50


@pytest.mark.parametrize("seed", range(5))
def test_a_seeded_generator_does_not_repeat_the_plain_one(seed: int) -> None:
    plain = torch.rand(1000, generator=torch.Generator().manual_seed(seed)).tolist()
    assert not set(plain) & set(numbers(seeded_generator(seed)))


def test_drawn_seeds_follow_the_generator() -> None:
    one, other = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)
    seeds = [drawn_seed(one) for _ in range(20)]
    assert seeds == [drawn_seed(other) for _ in range(20)]
    assert len(set(seeds)) == 20
    assert all(type(seed) is int and 0 <= seed < 2**62 for seed in seeds)


def test_seeds_are_drawn_from_the_global_state_if_there_is_no_generator() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(4)
        seeds = [drawn_seed(), drawn_seed()]
        torch.manual_seed(4)
        assert [drawn_seed(), drawn_seed()] == seeds
    assert seeds[0] != seeds[1]


@pytest.mark.parametrize(
    "seed", [3, np.int64(3), np.uint8(3), np.array(3), torch.tensor(3), torch.tensor(3, dtype=torch.uint8)]
)
def test_seeds_are_integers_of_any_kind(seed: object) -> None:
    assert as_seed(seed) == 3
    assert type(as_seed(seed)) is int


def test_the_largest_seed() -> None:
    assert as_seed(2**63 - 1) == 2**63 - 1
    seeded_generator(2**63 - 1)


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        (-1, "-1"),
        (2**63, "9223372036854775808"),
        (None, "None"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (True, "True"),
        (np.True_, "np.True_"),
        ("0", "'0'"),
        (torch.tensor(0.0), "tensor(0.)"),
        (torch.tensor(True), "tensor(True)"),
        (torch.tensor([0]), "Tensor of shape [1]"),
        (np.array([0, 1]), "ndarray of shape [2]"),
        (np.random.default_rng(0), "Generator(PCG64)"),
        (torch.Generator, "the class Generator"),
    ],
)
def test_what_is_no_seed(wrong: object, shown: str) -> None:
    message = f"seed: expected an integer from 0 to 9223372036854775807 or a torch.Generator, found {shown}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        as_seed(wrong)


def test_a_generator_gives_another_seed_each_time() -> None:
    generator, again = (torch.Generator().manual_seed(1) for _ in range(2))
    seeds = [as_seed(generator) for _ in range(3)]
    assert seeds == [as_seed(again) for _ in range(3)]
    assert len(set(seeds)) == 3


def test_a_following_seed_leaves_the_generator_where_it_is() -> None:
    generator = torch.Generator().manual_seed(2)
    seeds = [following_seed(generator), following_seed(generator), drawn_seed(generator), following_seed(generator)]
    assert seeds[0] == seeds[1] == seeds[2] != seeds[3]
    with torch.random.fork_rng():
        torch.manual_seed(4)
        assert following_seed(None) != following_seed(None)  # without a generator it is drawn


def test_generators_are_those_of_torch() -> None:
    check_generator(torch.Generator())
    with pytest.raises(ValueError, match=r"^generator: expected a torch.Generator, such as .*, found 0$"):
        check_generator(0)
    with pytest.raises(ValueError, match="found the class Generator; pass an instance"):
        check_generator(torch.Generator)
