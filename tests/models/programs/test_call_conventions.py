# SPDX-License-Identifier: Apache-2.0
"""How programs take sequences, and how they return those that they generate."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyro
import pytest
import torch
from pyro.nn import PyroModule
from pyro_programs import FEW_SEQUENCES as DATA
from pyro_programs import SIZE, chain_with_stop
from torch import Tensor

from pyro_ksd import MarkovSequence, ksd_check
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.programs.call_conventions import (
    PaddedTokens,
    TokensAndLengths,
    called_with,
    convention_of,
    generates,
    is_loop,
)


def three_arguments(sequences: Tensor, lengths: Tensor, table: Tensor) -> None:
    """Not called."""


MISTAKES: list[tuple[Callable[..., Any], str]] = [
    (three_arguments, "found the parameters ['sequences', 'lengths', 'table']"),
]


@pytest.mark.parametrize(("program", "message"), MISTAKES, ids=[program.__name__ for program, _ in MISTAKES])
def test_mistake_is_named(program: Callable[..., Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        as_model(program, DATA)


def returns_nothing(sequences: Any = None, lengths: Any = None, num_sequences: int = 0) -> None:
    if lengths is not None:
        chain_with_stop(sequences, lengths)


def returns_tokens_only(sequences: Any = None, lengths: Any = None, num_sequences: int = 0) -> Any:
    if lengths is not None:
        return chain_with_stop(sequences, lengths)
    return torch.zeros(num_sequences, 4, dtype=torch.long)


def stops_generating_early(sequences: Any = None, lengths: Any = None, num_sequences: int = 0) -> Any:
    if lengths is not None:
        return chain_with_stop(sequences, lengths)
    tokens, lengths = chain_with_stop(num_sequences=num_sequences)
    return tokens[:, :3], lengths


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (returns_nothing, "the program was asked for 8 sequences (num_sequences=8) and returned nothing, expected"),
        (returns_tokens_only, "returned a tensor [8, 4], expected (sequences, lengths) of shapes [8, T] and [8]"),
        (stops_generating_early, "of 8 generated sequences were still alive after 3 steps"),
    ],
)
def test_generation_is_checked(program: Callable[..., Any], message: str) -> None:
    model = as_model(program, DATA)
    with pytest.raises(ValueError, match=re.escape(message)):
        model.draw(8, torch.Generator().manual_seed(0))  # type: ignore[attr-defined]


def returns_a_pair(x: Any = None, num_sequences: int = 0) -> Any:
    from pyro_programs import CHAIN

    with pyro.plate("sequences", num_sequences if x is None else len(x)):
        return pyro.sample("x", CHAIN, obs=x), None


def test_generation_of_one_tensor_is_checked() -> None:
    model = as_model(returns_a_pair, DATA)
    with pytest.raises(ValueError, match=re.escape("expected a tensor [4, T] filled with -1 after the end")):
        model.draw(4)  # type: ignore[attr-defined]


def test_error_of_a_program_tells_what_it_was_called_with() -> None:
    def too_few_weights(x: Tensor) -> None:
        with pyro.plate("sequences", len(x)):
            pyro.factor("taste", torch.ones(SIZE - 1)[x.clamp(min=0)].sum(1))

    with pytest.raises(IndexError) as error:
        as_model(too_few_weights, DATA)
    assert error.value.__notes__ == [
        "The program was called as program(x) with the codes 0..2 of the symbols, long [5, 5], filled with -1 after "
        "the ends."
    ]


@pytest.mark.parametrize("posterior", [None, {"weight": torch.zeros(2)}])
def test_network_is_told_from_a_program(posterior: dict[str, Tensor] | None) -> None:
    with pytest.raises(IndexError) as error:
        ksd_check(torch.nn.Embedding(SIZE, 4), DATA, posterior=posterior)
    assert "see pyro_ksd.models.AutoregressiveModel" in error.value.__notes__[-1]


@pytest.mark.parametrize("arity", [1, 2])
def test_program_may_generate_sequences_as_they_are(arity: int) -> None:
    law = MarkovSequence.from_transitions(torch.ones(SIZE) / SIZE, torch.ones(SIZE, SIZE) / SIZE, stop=0.4)

    def one(x: Any = None, num_sequences: int | None = None) -> Any:
        if num_sequences is not None:
            return law.draw(num_sequences)
        with pyro.plate("sequences", len(x)):
            return pyro.sample("x", law, obs=x)

    def two(sequences: Any = None, lengths: Any = None, num_sequences: int | None = None) -> Any:
        if num_sequences is not None:
            return law.draw(num_sequences)
        behind = torch.arange(sequences.shape[1]) >= lengths[:, None]
        return one(sequences.masked_fill(behind, -1))

    model = as_model(one if arity == 1 else two, DATA)
    assert model.can_draw
    drawn = model.draw(7, torch.Generator().manual_seed(0))
    assert len(drawn) == 7
    torch.testing.assert_close(model.log_joint(drawn), law.log_joint(drawn).double())


def test_generated_fractions_are_refused() -> None:
    def program(x: Any = None, num_sequences: int | None = None) -> Any:
        if num_sequences is not None:
            return torch.full((num_sequences, 1), 0.5)
        with pyro.plate("sequences", len(x)):
            return pyro.factor("any", (x != -1).sum(1).double())

    model = as_model(program, DATA)
    assert model.can_draw
    with pytest.raises(ValueError, match=r"expected codes and lengths from the program, found 0\.5; generate integers"):
        model.draw(2)


TOKENS, LENGTHS = torch.tensor([[0, 1, 2], [2, 0, 0]]), torch.tensor([3, 1])


def test_arguments_of_both_conventions() -> None:
    tokens, lengths = TokensAndLengths().arguments(TOKENS, LENGTHS)
    assert tokens is TOKENS
    assert lengths is LENGTHS
    (padded,) = PaddedTokens().arguments(TOKENS, LENGTHS)
    assert padded.tolist() == [[0, 1, 2], [2, -1, -1]]
    assert (TokensAndLengths.arity, PaddedTokens.arity) == (2, 1)


def test_what_is_returned_in_both_conventions() -> None:
    tokens, lengths = TokensAndLengths().returned([TOKENS.double(), LENGTHS.double()], 2)
    assert (tokens.dtype, lengths.dtype) == (torch.long, torch.long)
    assert lengths.tolist() == [3, 1]
    _, lengths = PaddedTokens().returned(torch.tensor([[0, 1], [2, -1]]), 2)
    assert lengths.tolist() == [2, 1]


class Module(torch.nn.Module):
    def forward(self, sequences: Any, lengths: Any = None) -> None:
        """Not called."""


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda sequences, lengths: None, TokensAndLengths),
        (lambda sequences=None, lengths=None, num_sequences=0: None, TokensAndLengths),
        (lambda sequences, lengths, temperature=1.0: None, TokensAndLengths),
        (Module(), TokensAndLengths),
        (lambda x: None, PaddedTokens),
        (lambda x=None, num_sequences=0: None, PaddedTokens),
        (lambda x, *, num_sequences=0: None, PaddedTokens),
    ],
)
def test_the_number_of_arguments_tells_the_convention(program: Any, expected: type) -> None:
    assert type(convention_of(program)) is expected
    assert not is_loop(program)


def test_programs_that_generate_and_programs_in_a_loop() -> None:
    assert generates(lambda x=None, num_sequences=0: None)
    assert generates(lambda sequences=None, lengths=None, *, num_sequences=0: None)
    assert not generates(lambda sequences, lengths: None)
    assert not generates(Module())
    assert is_loop(lambda: None)


def test_a_program_with_nothing_but_the_number_takes_no_sequences() -> None:
    with pytest.raises(ValueError, match=r"found the parameters \['num_sequences'\]"):
        convention_of(lambda num_sequences: None)


def test_notes_of_errors() -> None:
    def notes(program: Any, *arguments: Tensor) -> list[str]:
        with pytest.raises(KeyError) as error, called_with(program, arguments, 4):
            raise KeyError
        return getattr(error.value, "__notes__", [])

    (pair,) = notes(len, TOKENS, LENGTHS)
    assert pair == (
        "The program was called as program(sequences, lengths) with the codes 0..3 of the symbols, long [2, 3], and "
        "the lengths."
    )
    assert notes(len) == []
    assert "see pyro_ksd.models.AutoregressiveModel" in notes(torch.nn.Linear(1, 1), TOKENS)[-1]
    assert len(notes(PyroModule(), TOKENS)) == 1
