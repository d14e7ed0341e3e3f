# SPDX-License-Identifier: Apache-2.0
"""Programs that know more or fewer symbols than the alphabet of the data has."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from pyro_programs import EXAMPLES, simplex, stops
from torch import Tensor

from pyro_ksd import ksd_check
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.programs.symbol_sites import check_symbol_sites, random_sequences
from pyro_ksd.sequences.container import Sequences

Program = Callable[..., None]


def stop() -> Any:
    return dist.Bernoulli(torch.tensor(0.3, dtype=torch.double))


def by_steps(size: int) -> Program:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(simplex(size)), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", stop(), obs=stops(lengths, t))

    return program


def by_logits_and_masks(size: int) -> Program:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                inside = t < lengths
                fn = dist.Categorical(logits=simplex(size).log())
                pyro.sample(f"x_{t}", fn.expand([len(lengths)]).mask(inside), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", stop().expand([len(lengths)]).mask(inside), obs=stops(lengths, t))

    return program


def by_columns(size: int) -> Program:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        width = sequences.shape[1]
        mask = poutine.mask(mask=torch.arange(width) < lengths[:, None])
        with pyro.plate("sequences", len(lengths), dim=-2), pyro.plate("steps", width, dim=-1), mask:
            pyro.sample("x", dist.Categorical(simplex(size)), obs=sequences)
            pyro.sample("stop", stop(), obs=(torch.arange(width) + 1 == lengths[:, None]).double())

    return program


def by_one_hot(size: int) -> Program:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    rows = torch.nn.functional.one_hot(sequences[:, t].clamp(max=size - 1), size).double()
                    pyro.sample(f"x_{t}", dist.OneHotCategorical(simplex(size)), obs=rows)
                    pyro.sample(f"stop_{t}", stop(), obs=stops(lengths, t))

    return program


def of_hidden_states(size: int) -> Program:
    emission = simplex(2, size)

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths), dim=-1):
            for t in pyro.markov(range(sequences.shape[1])):
                with poutine.mask(mask=t < lengths):
                    z = pyro.sample(f"z_{t}", dist.Categorical(simplex(2)), infer={"enumerate": "parallel"})
                    pyro.sample(f"x_{t}", dist.Categorical(emission[z]), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", stop(), obs=stops(lengths, t))

    return program


def in_a_loop(size: int) -> Program:
    def program() -> None:
        t, over = 0, False
        while not over:
            pyro.sample(f"x_{t}", dist.Categorical(simplex(size)))
            over = bool(pyro.sample(f"stop_{t}", stop()))
            t += 1

    return program


STYLES = [by_steps, by_logits_and_masks, by_columns, by_one_hot, of_hidden_states]
CODES = Sequences.of([[0, 1, 2], [2], [1, 1], [0, 0, 2, 1], [1], [2, 2]])
WORDS = Sequences.of(["ac", "c", "acca", "aa", "ca"])  # the program knows 'b' too


@pytest.mark.parametrize("style", STYLES)
def test_programs_that_know_the_alphabet_pass(style: Callable[[int], Program]) -> None:
    as_model(style(3), CODES).log_joint(CODES)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("data", "known"), [(CODES, 4), (WORDS, 3)])
def test_missing_symbols(style: Callable[[int], Program], data: Sequences, known: int) -> None:
    found = f"found a distribution of {known} symbols, but the alphabet of the data has {known - 1}"
    with pytest.raises(ValueError, match=found) as error:
        ksd_check(style(known), data, progress=False)
    assert f"in the order of their codes: Sequences.of(data, alphabet={known})" in str(error.value)
    named = Sequences.of(data.to_lists(), [0, 1, 2, 3] if data is CODES else "abc")
    as_model(style(known), named).log_joint(named)


@pytest.mark.parametrize("style", [by_steps, by_logits_and_masks, by_columns, of_hidden_states])
def test_too_many_symbols(style: Callable[[int], Program]) -> None:
    found = "found a distribution of 2 symbols, but the alphabet of the data has 3: perhaps it does not know 2 (5 "
    with pytest.raises(ValueError, match=re.escape(found + "times, first in sequence 0); widen the program")):
        as_model(style(2), CODES)


def test_an_unknown_symbol_is_shown_with_its_sequence() -> None:
    data = ["ab", "", "ba", "aab\n", "bbb"]
    message = r"has 3: perhaps it does not know '\\n' \(once, first in sequence 3\); .* line.strip\(\); widen"
    with pytest.raises(ValueError, match=message):
        as_model(by_steps(2), data)


def test_loops() -> None:
    missing = r"site 'x_\d': found a distribution of 4 symbols, but the alphabet of the data has 3"
    with pytest.raises(ValueError, match=missing):
        as_model(in_a_loop(4), CODES).log_joint(CODES)
    with pytest.raises(ValueError, match=re.escape("expected 0..1, the support of its distribution")):
        as_model(in_a_loop(2), CODES).log_joint(CODES)


def test_tables_that_are_too_small() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("weight", -simplex(2)[sequences].sum(1))

    with pytest.raises(ValueError, match=r"IndexError.*if it looks up tables by symbols, they need 3 rows"):
        as_model(program, CODES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_false_alarm(name: str) -> None:
    """Among the programs are lengths, stops, features of symbols, and an end symbol outside of the alphabet."""
    as_model(EXAMPLES[name].program, Sequences.of([[0, 1, 2, 1], [2], [1, 1, 0]], 3))


def test_other_values_that_are_no_symbols() -> None:
    """A class of each symbol, and the length, with distributions of other sizes than the alphabet."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("length", dist.Categorical(simplex(30)), obs=lengths)
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"kind_{t}", dist.Categorical(simplex(2)), obs=sequences[:, t] // 2)

    as_model(program, CODES)
    as_model(program, Sequences.of([[1], [1]], 2))


def test_random_sequences_are_as_long_as_the_longest() -> None:
    found = random_sequences(CODES)
    assert found.lengths.unique().tolist() == [4]
    assert found.tokens.unique().tolist() == [0, 1, 2]
    assert len(found.tokens.unique(dim=1).T) == 4  # no two columns are equal


def test_a_site_without_rows_that_count_says_nothing() -> None:
    tokens = torch.zeros(2, 3, dtype=torch.long)
    site = {"fn": dist.Categorical(simplex(5)).expand([2]), "value": torch.zeros(2), "is_observed": True}
    for mask in (torch.zeros(2, dtype=torch.bool), False):
        check_symbol_sites([("x", {**site, "mask": mask})], tokens, -1, CODES)
    with pytest.raises(ValueError, match="of 5 symbols, but the alphabet of the data has 3"):
        check_symbol_sites([("x", {**site, "mask": None})], tokens, -1, CODES)
    check_symbol_sites([("x", {**site, "mask": None, "is_observed": False})], tokens, -1, CODES)
