# SPDX-License-Identifier: Apache-2.0
"""Programs that do not score each sequence by itself, and what users are told."""

from __future__ import annotations

import re
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from pyro_programs import EXAMPLES, INITIAL, SIZE, bernoulli, chain_steps, stops
from pyro_programs import FEW_SEQUENCES as DATA
from torch import Tensor

from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.programs.validation import check_program
from pyro_ksd.models.programs.vectorized import VectorizedProgram
from pyro_ksd.sequences.container import Sequences


def factor_summed_over_the_batch(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        chain_steps(sequences, lengths)
        pyro.factor("taste", sequences.sum().double())


def missing_mask(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            pyro.sample(f"x_{t}", dist.Categorical(INITIAL), obs=sequences[:, t])
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"stop_{t}", bernoulli(), obs=stops(lengths, t))


def ignores_lengths(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            pyro.sample(f"x_{t}", dist.Categorical(INITIAL), obs=sequences[:, t])


def padding_is_no_symbol(x: Tensor) -> None:
    with pyro.plate("sequences", len(x)):
        for t in range(x.shape[1]):
            pyro.sample(f"x_{t}", dist.Categorical(INITIAL), obs=x[:, t])


def unknown_symbols(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Categorical(torch.ones(2) / 2), obs=sequences[:, t])


MISTAKES: list[tuple[Callable[..., Any], str]] = [
    (factor_summed_over_the_batch, "log-joint of a sequence changes with the other sequences of the batch"),
    (missing_mask, "log-joint of a sequence changes with the padding after its end"),
    (ignores_lengths, "put them under poutine.mask(mask=t < lengths)"),
    (padding_is_no_symbol, "filled with -1 after the ends: a value that is no symbol"),
    (unknown_symbols, "site 'x_0': found a distribution of 2 symbols, but the alphabet of the data has 3: perhaps"),
]


@pytest.mark.parametrize(("program", "message"), MISTAKES, ids=[program.__name__ for program, _ in MISTAKES])
def test_mistake_is_named(program: Callable[..., Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        as_model(program, DATA)


@pytest.mark.parametrize("name", EXAMPLES)
def test_right_programs_pass(name: str) -> None:
    check_program(VectorizedProgram(EXAMPLES[name].program, DATA), DATA)


def test_mistakes_in_a_factor_are_told_apart() -> None:
    def program(sequences: Tensor, lengths: Tensor, mistake: str) -> None:
        width = sequences.shape[1]
        inside = torch.arange(width) < lengths[:, None]
        terms = {
            "none": (sequences * inside).sum(1),
            "padding": sequences.sum(1),
            "width": lengths + width,
            "mates": (sequences * inside).sum().expand(len(lengths)),
        }
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("score", -terms[mistake].double())

    for mistake, message in (
        ("padding", "changes with the padding after its end"),
        ("width", "changes with the padding after its end"),
        ("mates", "changes with the other sequences of the batch"),
    ):
        wrong = VectorizedProgram(lambda sequences, lengths, m=mistake: program(sequences, lengths, m), DATA)
        with pytest.raises(ValueError, match=message):
            check_program(wrong, DATA)
    right = VectorizedProgram(lambda sequences, lengths: program(sequences, lengths, "none"), DATA)
    check_program(right, DATA)


def test_faults_at_late_steps_and_with_a_least_length_are_seen() -> None:
    """A mask that is missing from step 30 on, in a model of at least 25 symbols."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("length", torch.where(lengths >= 25, -2.0 * lengths, -torch.inf))
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=(t < lengths) | (t >= 30)):
                    pyro.sample(f"x_{t}", dist.Categorical(INITIAL), obs=sequences[:, t])

    generator = torch.Generator().manual_seed(0)
    data = Sequences.of(torch.randint(SIZE, (10, 40), generator=generator), SIZE, lengths=torch.arange(30, 40))
    with pytest.raises(ValueError, match="log-joint of a sequence changes with the padding after its end"):
        check_program(VectorizedProgram(program, data), data)


@pytest.mark.parametrize(("kind", "message"), [("mates", "the other sequences of the batch"), ("width", "the padding")])
def test_small_mistakes_are_seen(kind: str, message: str) -> None:
    """The log-joints, between -20 and -2, change by about 0.005; rounding would be far smaller."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        extra = len(lengths) if kind == "mates" else sequences.shape[1]
        with pyro.plate("sequences", len(lengths)):
            chain_steps(sequences, lengths)
            pyro.factor("tiny", torch.full((len(lengths),), 0.002 * extra, dtype=torch.double))

    with pytest.raises(ValueError, match=f"changes with {message}"):
        check_program(VectorizedProgram(program, DATA), DATA)


def test_a_site_with_nan_is_named() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            chain_steps(sequences, lengths)
            pyro.sample("noise", dist.Normal(torch.tensor(0.0).double(), 1.0), obs=lengths.double() * torch.nan)

    with pytest.raises(ValueError, match=r"^site 'noise': found NaN"):
        as_model(program, DATA)


GROUPS = torch.arange(4000) % 2
BIASED = torch.tensor([[0.6, 0.2, 0.2], [0.2, 0.2, 0.6]])


def by_row(groups: Tensor) -> Callable[..., Any]:
    """A program whose symbols depend on the group of the row."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)) as rows:
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(BIASED[groups[rows]]), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", bernoulli(), obs=stops(lengths, t))

    return program


def with_factor(values: Callable[[int], Any]) -> Callable[..., Any]:
    """A program with a factor that knows only how many rows there are."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            chain_steps(sequences, lengths)
            pyro.factor("more", torch.as_tensor(values(len(lengths))))

    return program


MANY = Sequences.of([[0, 1, 2][: 1 + row % 3] for row in range(150)], SIZE)
ROW = re.escape("depends on the row of the batch") + ".*" + re.escape("covariates: Sequences.with_covariates(...)")


@pytest.mark.parametrize(
    "groups",
    [GROUPS, GROUPS.sort().values[1900:], GROUPS.new_zeros(4000).index_fill_(0, torch.tensor([77]), 1)],
    ids=["alternating", "sorted", "one row"],
)
def test_scores_by_row_are_refused(groups: Tensor) -> None:
    with pytest.raises(ValueError, match=ROW):
        as_model(by_row(groups), MANY)
    as_model(by_row(groups.new_ones(4000)), MANY)


def test_programs_that_are_models_already_are_checked_too() -> None:
    with pytest.raises(ValueError, match=ROW):
        as_model(VectorizedProgram(by_row(GROUPS), MANY), MANY)


def test_groups_as_covariates_pass() -> None:
    def program(sequences: Tensor, lengths: Tensor, covariates: Tensor) -> None:
        by_row(covariates)(sequences, lengths)

    as_model(program, MANY.with_covariates(torch.arange(len(MANY)) % 2))


@pytest.mark.parametrize("size", [len(MANY), 30])
def test_tables_by_row_that_are_too_short_are_named(size: int) -> None:
    called = "[151, 3]" if size > 48 else "[48, 3]"  # a few sequences in many rows, or random symbols
    message = re.escape(called) + ".*if by the row of the batch, pass what differs between sequences as covariates"
    with pytest.raises(ValueError, match=rf"IndexError: .*{message}"):
        as_model(by_row(GROUPS[:size]), MANY)


def test_a_fixed_seed_makes_numbers_by_row() -> None:
    with pytest.raises(ValueError, match=ROW):
        as_model(with_factor(lambda size: np.random.default_rng(0).normal(size=size)), MANY)


def changing(kind: str) -> Callable[[int], Any]:
    generator = np.random.default_rng(0)
    runs = iter(range(1000))
    return {
        "generator": lambda size: generator.normal(size=size),
        "counter": lambda size: np.full(size, 0.1 * next(runs)),
        "clock": lambda size: np.full(size, perf_counter() % 10),
        "toggle": lambda size: np.full(size, 0.1 * (next(runs) % 2)),
    }[kind]


@pytest.mark.parametrize("kind", ["generator", "counter", "clock", "toggle"])
def test_scores_that_are_not_repeatable_are_not_blamed_on_the_batch(kind: str) -> None:
    message = "log-joint of a sequence is not repeatable: the same batch gave .*no random numbers, .*no clock"
    with pytest.raises(ValueError, match=message):
        as_model(with_factor(changing(kind)), MANY)


def test_scores_that_change_late_are_not_blamed_on_the_padding() -> None:
    runs = iter(range(1000))
    # Three runs find the layout, one is the first score, one is that of many rows, and the next has more padding.
    program = with_factor(lambda size: np.full(size, 0.1 * max(0, next(runs) - 4)))
    with pytest.raises(ValueError, match="log-joint of a sequence is not repeatable"):
        as_model(program, MANY)


def test_programs_may_need_all_columns() -> None:
    """Three steps that are written out, in a program for sequences of up to three symbols."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(3):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(INITIAL), obs=sequences[:, t])

    as_model(program, MANY)
