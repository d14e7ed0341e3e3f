# SPDX-License-Identifier: Apache-2.0
"""Models whose samples come from a sampler that the user passes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from example_models import Unsampled, small_mrf, walk

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models.wrappers.sampler import with_sampler
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.covariates import Covariates

SIZE = 3


def test_with_sampler_replaces_the_sampler_and_nothing_else() -> None:
    inner, data = small_mrf(), Sequences.of([[0, 1], [2]], SIZE)
    asked: list[Any] = []

    def sampler(num_sequences: int, generator: torch.Generator) -> Sequences:
        asked.append((num_sequences, generator))
        return data

    model, generator, edits = with_sampler(inner, sampler), torch.Generator(), zs().edits(data)
    assert model.draw(2, generator) is data
    assert asked == [(2, generator)]
    assert model.alphabet_size == SIZE
    assert torch.equal(model.log_joint(data), inner.log_joint(data))
    assert torch.equal(model.log_ratio(data, edits), inner.log_ratio(data, edits))


@pytest.mark.parametrize(
    ("drawn", "number", "message"),
    [
        ([[0], [1]], 2, "sampler: expected Sequences, found list; convert with"),
        (
            Sequences.of([[0]], SIZE),
            2,
            "sampler: expected 2 sequences over the model's 3 symbols, found 1 over 3; draw as",
        ),
        (
            Sequences.of([[0]], 2),
            1,
            "sampler: expected 1 sequences over the model's 3 symbols, found 1 over 2; draw as",
        ),
        (Sequences.of([[0]], SIZE), 0, "num_sequences: expected an integer of at least 1, found 0"),
    ],
)
def test_a_bad_sampler(drawn: Any, number: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        with_sampler(small_mrf(), lambda n, g: drawn).draw(number)


def test_without_a_generator_the_global_random_state_seeds_the_sampler() -> None:
    model = with_sampler(Unsampled(walk()), walk().draw)
    assert model.can_draw
    torch.manual_seed(3)
    first, second = model.draw(20).to_lists(), model.draw(20).to_lists()
    torch.manual_seed(3)
    assert model.draw(20).to_lists() == first != second


def test_the_sampler_goes_before_the_draws_of_the_model() -> None:
    other = walk(hold=0.5)
    found = with_sampler(walk(), other.draw).draw(10, torch.Generator().manual_seed(1))
    assert found.to_lists() == other.draw(10, torch.Generator().manual_seed(1)).to_lists()


def test_draws_for_covariates() -> None:
    covariates = Covariates.of({"first": torch.tensor([2, 0, 1, 1])}, 4)

    def given(num_sequences: int, generator: torch.Generator, covariates: Any) -> Sequences:
        assert num_sequences == 4
        return Sequences.of(covariates["first"][:, None], SIZE)

    found = with_sampler(small_mrf(), given).draw_given(covariates)
    assert found.to_lists() == [[2], [0], [1], [1]]
    assert found.covariates is not None
    ignored = with_sampler(small_mrf(), lambda n, g: Sequences.of([[0]] * n, SIZE)).draw_given(covariates)
    assert ignored.to_lists() == [[0]] * 4
    assert ignored.covariates is not None
    with pytest.raises(ValueError, match="covariates: expected those of sequences"):
        with_sampler(small_mrf(), given).draw_given(torch.arange(4))  # type: ignore[arg-type]


def test_a_sampler_may_hide_its_arguments() -> None:
    class Hidden:
        """As functions written in C."""

        @property
        def __signature__(self) -> Any:
            raise ValueError("no signature found")

        def __call__(self, num_sequences: int, generator: torch.Generator) -> Sequences:
            return Sequences.of([[1]] * num_sequences, SIZE)

    covariates = Covariates.of({"dose": torch.zeros(2)}, 2)
    assert with_sampler(small_mrf(), Hidden()).draw_given(covariates).to_lists() == [[1], [1]]


def test_lengths_are_those_of_the_model() -> None:
    found = with_sampler(walk(), lambda size, generator: walk().draw(size, generator)).length_distribution()
    expected = walk().length_distribution()
    assert found is not None
    assert expected is not None
    assert found.probability.equal(expected.probability)


def test_a_wrong_generator_is_refused() -> None:
    model = with_sampler(small_mrf(), lambda size, generator: Sequences.of([[0]] * size, 3))
    with pytest.raises(ValueError, match="generator: expected"):
        model.draw(3, 5)  # type: ignore[arg-type]
