# SPDX-License-Identifier: Apache-2.0
"""How programs take sequences, and how they return those that they generate."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyro
import pytest
import torch
from pyro_programs import FEW_SEQUENCES as DATA
from pyro_programs import SIZE, chain_with_stop
from torch import Tensor

from pyro_ksd import MarkovSequence
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.programs.call_conventions import (
    PaddedTokens,
    Rows,
    TokensAndLengths,
    convention_of,
    generated_codes,
    generates,
    is_loop,
)
from pyro_ksd.sequences.container import Sequences


def three_arguments(sequences: Tensor, lengths: Tensor, table: Tensor) -> None:
    """Not called."""


MISTAKES: list[tuple[Callable[..., Any], str]] = [
    (three_arguments, "expected data with covariates for the parameter 'table' of the program, found none; pass"),
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
    rows = Rows(TOKENS, LENGTHS, torch.tensor([7, 8]))
    found = TokensAndLengths().arguments(rows)
    assert list(found) == ["sequences", "lengths"]
    assert found["sequences"] is TOKENS
    assert found["lengths"] is LENGTHS
    found = PaddedTokens().arguments(rows)
    assert list(found) == ["x"]
    assert found["x"].tolist() == [[0, 1, 2], [2, -1, -1]]
    assert list(TokensAndLengths(takes_covariates=True).arguments(rows)) == ["sequences", "lengths", "covariates"]
    assert PaddedTokens(takes_covariates=True).arguments(rows)["covariates"] is rows.covariates


def test_arguments_of_a_program_that_generates() -> None:
    values = torch.tensor([7, 8])
    assert TokensAndLengths().generating(values) == (None, None)
    assert PaddedTokens().generating(None) == (None,)
    assert TokensAndLengths(takes_covariates=True).generating(values) == (None, None, values)


def test_some_rows() -> None:
    rows = Rows(TOKENS, LENGTHS, {"group": torch.tensor([7, 8])}).take(torch.tensor([1]))
    assert (rows.tokens.tolist(), rows.lengths.tolist()) == ([[2, 0, 0]], [1])
    assert isinstance(rows.covariates, dict)
    assert rows.covariates["group"].tolist() == [8]
    assert Rows(TOKENS, LENGTHS).take(torch.tensor([1])).covariates is None


def test_sequences_without_covariates_are_refused_where_the_program_takes_them() -> None:
    convention = TokensAndLengths(takes_covariates=True)
    assert convention.rows(DATA.with_covariates(DATA.lengths)).covariates.equal(DATA.lengths)  # type: ignore[union-attr]
    with pytest.raises(ValueError, match=r"sequences: expected some with covariates.*pass sequences\.with_covariates"):
        convention.rows(DATA)


@pytest.mark.parametrize(
    ("program", "kind", "takes"),
    [
        (lambda sequences, lengths, covariates: None, TokensAndLengths, True),
        (lambda sequences, lengths, groups: None, TokensAndLengths, True),
        (lambda sequences, lengths, groups, num_sequences=0: None, TokensAndLengths, True),
        (lambda sequences=None, lengths=None, covariates=None, num_sequences=0: None, TokensAndLengths, True),
        (lambda sequences, lengths, temperature=None: None, TokensAndLengths, False),
        (lambda sequences, lengths, covariates=None, scale=2.0: None, TokensAndLengths, True),
        (lambda x, covariates: None, PaddedTokens, True),
        (lambda x=None, covariates=None, num_sequences=0: None, PaddedTokens, True),
        (lambda sequences, lengths: None, TokensAndLengths, False),
        (lambda sequences, lengths, scale=2.0: None, TokensAndLengths, False),
        (lambda x: None, PaddedTokens, False),
        (lambda x, beta=0.5: None, PaddedTokens, False),
    ],
)
def test_programs_that_take_covariates(program: Any, kind: type, takes: bool) -> None:
    found = convention_of(program, with_covariates=True)
    assert type(found) is kind
    assert found.takes_covariates is takes


def test_more_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match=r"found the parameters \['a', 'b', 'covariates', 'd'\]; set others before"):
        convention_of(lambda a, b, covariates, d: None, with_covariates=True)


def test_a_program_need_not_get_covariates() -> None:
    assert not convention_of(lambda sequences, lengths, groups=None: None).takes_covariates
    assert type(convention_of(lambda x, covariates=None: None)) is PaddedTokens
    with pytest.raises(ValueError, match="expected data with covariates for the parameter 'covariates'"):
        convention_of(lambda x, covariates: None)


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


def ising(x: Tensor, beta: float = 0.5) -> None:
    """An Ising chain on two symbols, whose second parameter is no length."""
    inside = (x[:, 1:] >= 0).double()
    with pyro.plate("sequences", len(x)):
        pyro.factor("pairs", beta * ((x[:, 1:] == x[:, :-1]).double() * inside).sum(1))
        pyro.factor("length", -2.0 * (x >= 0).double().sum(1))


def test_an_option_is_not_taken_for_the_lengths() -> None:
    data = Sequences.of([[0, 0, 1], [1, 1], [0]], 2)
    found = as_model(ising, data).log_joint(data)
    torch.testing.assert_close(found, torch.tensor([0.5 - 6, 0.5 - 4, -2.0]).double())


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        (lambda x, beta=0.5: None, PaddedTokens),
        (lambda x, num_sequences=0: None, PaddedTokens),
        (lambda sequences, lengths=None: None, TokensAndLengths),
        (lambda sequences=None, lengths=None, num_sequences=None: None, TokensAndLengths),
        (lambda sequences, lengths, scale=2.0: None, TokensAndLengths),
    ],
)
def test_conventions(program: Any, kind: type) -> None:
    assert type(convention_of(program)) is kind


def test_the_first_generated_vector_that_is_no_symbol_is_named() -> None:
    vectors = torch.tensor([[0, 0], [0, 1], [1, 0]])
    known = torch.tensor([[[0, 0], [0, 1]], [[1, 0], [0, 1]]])
    lengths = torch.tensor([2, 1])
    unknown = known.clone()
    unknown[0, 1] = torch.tensor([1, 1])
    unknown[1, 0] = torch.tensor([5, 5])
    assert generated_codes(known, vectors).tolist() == [[0, 1], [2, 1]]
    assert generated_codes((known, lengths), vectors)[0].tolist() == [[0, 1], [2, 0]]
    for value in (unknown, (unknown, lengths)):
        with pytest.raises(
            ValueError, match=r"the program generated the vector \[1, 1\], expected one of the alphabet"
        ):
            generated_codes(value, vectors)


@pytest.mark.parametrize(
    "value",
    [
        None,
        TOKENS,
        (TOKENS, LENGTHS, LENGTHS),
        (TOKENS, [3, 1]),
        (LENGTHS, LENGTHS),
        (TOKENS[:1], LENGTHS),
        (TOKENS, LENGTHS[:1]),
        (TOKENS, LENGTHS[:, None]),
        (TOKENS[..., None], LENGTHS),
    ],
)
def test_sequences_and_lengths_must_be_returned_for_all(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^the program was asked for 2 sequences \(num_sequences=2\) and returned"):
        TokensAndLengths().returned(value, 2)


@pytest.mark.parametrize("value", [None, LENGTHS, TOKENS[:1], (TOKENS,), TOKENS[..., None]])
def test_padded_sequences_must_be_returned_for_all(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^the program was asked for 2 sequences \(num_sequences=2\) and returned"):
        PaddedTokens().returned(value, 2)


@pytest.mark.parametrize(("lengths", "alive"), [([3, 0], 0), ([4, 1], 1), ([1, -1], 1), ([4, -1], 2)])
def test_generated_lengths_are_inside_of_what_was_generated(lengths: list[int], alive: int) -> None:
    if not alive:
        assert TokensAndLengths().returned((TOKENS, torch.tensor(lengths)), 2)[1].tolist() == lengths
        return
    with pytest.raises(ValueError, match=rf"^{alive} of 2 generated sequences were still alive after 3 steps"):
        TokensAndLengths().returned((TOKENS, torch.tensor(lengths)), 2)


def test_vectors_in_place_of_codes() -> None:
    vectors = torch.tensor([[0.0, 5.0], [1.0, 6.0], [2.0, 7.0]])
    rows = Rows(TOKENS, LENGTHS)
    found = TokensAndLengths().arguments(rows, vectors)
    assert found["sequences"].tolist() == vectors[TOKENS].tolist()
    assert found["lengths"] is LENGTHS
    padded = PaddedTokens().arguments(rows, vectors)["x"].tolist()
    assert padded == [vectors[TOKENS[0]].tolist(), [[2.0, 7.0], [-1.0, -1.0], [-1.0, -1.0]]]


def test_codes_of_what_was_generated() -> None:
    vectors = torch.tensor([[0, 0], [0, 1], [1, 0]])
    padded = torch.tensor([[[0, 1], [1, 0]], [[0, 0], [-1, -1]]])
    assert generated_codes(padded, vectors).tolist() == [[1, 2], [0, -1]]
    half = torch.tensor([[[0, 1], [1, 0]], [[0, 0], [-1, 0]]])  # not all of it is padding
    with pytest.raises(ValueError, match=r"the program generated the vector \[-1, 0\]"):
        generated_codes(half, vectors)
    codes, lengths = generated_codes([half, torch.tensor([2, 1])], vectors)
    assert codes.tolist() == [[1, 2], [0, 0]]
    assert lengths.tolist() == [2, 1]
    for other in (None, TOKENS, (TOKENS, LENGTHS), (padded, LENGTHS, LENGTHS)):
        assert generated_codes(other, vectors) is other
    codes, lengths = generated_codes((padded[:1], [2]), vectors)  # the lengths are looked at later
    assert (codes.tolist(), lengths) == ([[1, 2]], [2])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "nothing"),
        (TOKENS, "a tensor [2, 3]"),
        ("abc", "str"),
        ((TOKENS, None), "tuple of 2: a tensor [2, 3], nothing"),
        ([None, 1, 2, 3], "list of 4: nothing, int, int"),
    ],
)
def test_what_was_returned_is_shown(value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"and returned {words}, expected (sequences, lengths)")):
        TokensAndLengths().returned(value, 7)


def test_covariates_after_the_third_parameter_are_refused() -> None:
    with pytest.raises(ValueError, match=r"found the parameters \['a', 'b', 'c', 'covariates'\]; set others before"):
        convention_of(lambda a, b, c, covariates: None, with_covariates=True)
    assert not convention_of(lambda a, b, c=1, covariates=None: None, with_covariates=True).takes_covariates
