# SPDX-License-Identifier: Apache-2.0
"""Generators and seeds: repeatable, independent of each other, and without traces in torch's global state."""

from __future__ import annotations

import pytest
import torch

from pyro_ksd.common.random_numbers import check_generator, drawn_seed, global_random_state, seeded_generator


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


def test_the_global_state_is_seeded_by_the_generator_and_restored() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        expected = numbers()
        found = []
        for before in (0, 7):
            torch.manual_seed(before)
            with global_random_state(torch.Generator().manual_seed(1)):
                found.append(numbers())
        assert found[0] == found[1]
        torch.manual_seed(5)
        with global_random_state(torch.Generator().manual_seed(1)):
            numbers()
        assert numbers() == expected


def test_the_global_state_moves_the_generator_on() -> None:
    generator = torch.Generator().manual_seed(1)
    found = []
    for _ in range(2):
        with global_random_state(generator):
            found.append(numbers())
    assert found[0] != found[1]


def test_the_global_state_is_restored_after_an_error() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        expected = numbers()
        torch.manual_seed(5)
        with pytest.raises(RuntimeError, match="stop"), global_random_state(torch.Generator().manual_seed(1)):
            raise RuntimeError("stop")
        assert numbers() == expected


def test_without_a_generator_the_global_state_is_left_alone() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        expected = [numbers(), numbers()]
        torch.manual_seed(5)
        with global_random_state(None):
            inside = numbers()
        assert [inside, numbers()] == expected


def test_generators_are_those_of_torch() -> None:
    check_generator(torch.Generator())
    with pytest.raises(ValueError, match=r"^generator: expected a torch.Generator, such as .*, found 0$"):
        check_generator(0)
    with pytest.raises(ValueError, match="found the class Generator; pass an instance"):
        check_generator(torch.Generator)
