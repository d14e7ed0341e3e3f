# SPDX-License-Identifier: Apache-2.0
"""Symbols that are vectors."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from torch import Tensor

from pyro_ksd import Sequences, default_views, ksd_check
from pyro_ksd.edits import Substitutions, one_channel, zs
from pyro_ksd.models.conversion import as_model
from pyro_ksd.sequences.vector_symbols import Vector, VectorAlphabet, as_vector_alphabet, is_vectors, vector_codes

ROWS = [torch.tensor([[0, 1], [1, 1]]), torch.tensor([[1, 1]]), torch.tensor([[0, 0], [0, 1], [0, 0]])]


def test_each_distinct_row_is_a_symbol() -> None:
    data = Sequences.of(ROWS)
    assert data.alphabet == ((0, 0), (0, 1), (1, 0), (1, 1))  # also the one that the data lack
    assert not data.alphabet.of_data  # type: ignore[union-attr]
    assert data.to_lists() == [[(0, 1), (1, 1)], [(1, 1)], [(0, 0), (0, 1), (0, 0)]]
    assert data.lengths.tolist() == [2, 1, 3]
    assert data.vectors is not None
    assert data.vectors.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert repr(data) == "Sequences(3 over ({}, {1}, {0}, {0,1}): [{1}, {0,1}], [{0,1}], [{}, {1}, {}])"
    assert Sequences.of(["ab"]).vectors is None


def test_other_forms_give_the_same() -> None:
    expected = Sequences.of(ROWS)
    padded = torch.nn.utils.rnn.pad_sequence(ROWS, batch_first=True)
    for found in (
        Sequences.of([row.numpy() for row in ROWS]),
        Sequences.of(tuple(ROWS)),
        Sequences.of(padded, lengths=[2, 1, 3]),
        Sequences.of(padded.numpy(), lengths=np.array([2, 1, 3])),
        Sequences.of(ROWS, alphabet=expected.alphabet),
        Sequences.of(ROWS, alphabet=torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])),
    ):
        assert torch.equal(found.tokens, expected.tokens)
        assert torch.equal(found.lengths, expected.lengths)
        assert found.alphabet == expected.alphabet
    assert Sequences.of(padded).lengths.tolist() == [3, 3, 3]


def test_an_alphabet_that_cannot_have_all_vectors_has_those_near_the_data() -> None:
    rows = torch.tensor([[0, 1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 1]])
    data = Sequences.of([rows, rows[:1]])
    assert isinstance(data.alphabet, VectorAlphabet)
    assert data.alphabet.of_data
    distances = (data.alphabet.vectors[:, None] != rows).sum(2).amin(1)
    assert distances.max() == 1
    assert data.alphabet_size == len(set(data.alphabet)) == 2 + 2 * 7 - 2  # all neighbors of both, which share two
    assert data.to_lists() == [[tuple(row) for row in rows.tolist()], [tuple(rows[0].tolist())]]
    counts = torch.tensor([[0, 5, 1, 1, 1, 1, 1, 1], [3, 5, 0, 0, 0, 0, 0, 0], [3, 6, 0, 0, 0, 0, 0, 0]])
    other = Sequences.of([counts])
    assert (3, 5, 1, 0, 0, 0, 0, 0) in other.symbols  # values that a channel has in the data
    assert (1, 5, 1, 1, 1, 1, 1, 1) not in other.symbols


def test_too_many_vectors_are_refused() -> None:
    rows = torch.randint(2, (1100, 200), generator=torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="found 1100 distinct vectors with 200 channels, which have more than 200000"):
        Sequences.of([rows])


def test_the_alphabet_may_have_further_vectors_in_any_order() -> None:
    data = Sequences.of(ROWS, alphabet=np.array([[1, 1], [1, 0], [0, 1], [0, 0]]))
    assert data.tokens[0, :2].tolist() == [2, 0]
    with pytest.raises(ValueError, match=r"sequence 2, position 0: found the symbol \{\}, expected one of the"):
        Sequences.of(ROWS, alphabet=torch.tensor([[0, 1], [1, 1]]))


def test_programs_get_the_dtype_of_the_data() -> None:
    for dtype in (torch.float, torch.double, torch.bool, torch.long):
        data = Sequences.of([row.to(dtype) for row in ROWS])
        assert data.vectors is not None
        assert data.vectors.dtype == dtype
        assert data[1:].vectors is not None


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ([torch.zeros(2, 2), torch.zeros(1, 3)], {}, r"with the same number of channels, found \[2, 3\]"),
        ([torch.full((2, 2), 0.5)], {}, r"sequence 0, position 0: found the vector \[0.5, 0.5\], expected whole"),
        ([torch.full((1, 2), math.nan)], {}, "expected whole numbers"),
        ([torch.zeros(0, 2), torch.zeros(0, 2)], {}, "expected symbols, found 2 empty sequences only"),
        ([torch.zeros(2, 0)], {}, "expected vectors, an array"),
        (torch.zeros(2, 2, 2), {"pad": -1}, "pad: expected none for symbols that are vectors"),
        (torch.zeros(2, 2, 2), {"sep": " "}, "sep: expected none for symbols that are vectors"),
        (torch.zeros(2, 2, 2), {"lengths": [1]}, "lengths: expected 2 integers from 0 to 2"),
        (torch.zeros(2, 2, 2), {"lengths": [1, 3]}, "lengths: expected 2 integers from 0 to 2"),
        (ROWS, {"lengths": [1, 1, 1]}, "lengths: expected a padded array"),
        (torch.zeros(2, 2, 2, 2), {}, "expected a padded array with 2 dimensions, found shape"),
    ],
)
def test_refuses(data: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sequences.of(data, **options)


def test_what_is_taken_for_vectors() -> None:
    assert is_vectors(ROWS)
    assert is_vectors(torch.zeros(1, 2, 3))
    assert not is_vectors([])
    assert not is_vectors([[0, 1]])
    assert not is_vectors([torch.zeros(2)])
    assert not is_vectors(torch.zeros(2, 3))


def test_vectors_are_shown_by_their_channels() -> None:
    assert str(Vector([1, 0, 1])) == "{0,2}"
    assert str(Vector([3, 0])) == "(3,0)"
    assert isinstance(as_vector_alphabet([[0, 1], [2, 2]]), VectorAlphabet)


def test_codes_of_vectors() -> None:
    vectors = torch.tensor([[1, 1], [0, 1]])
    values = torch.tensor([[[0, 1], [1, 1]], [[0, 0], [1, 1]]])
    assert vector_codes(values, vectors).tolist() == [[1, 0], [-1, 0]]


# ---------------------------------------------------------------------------------- programs

MOVES = torch.tensor([[0.9, 0.1], [0.2, 0.8]], dtype=torch.double)
TONES = torch.tensor([[0.1, 0.7, 0.2], [0.8, 0.2, 0.5]], dtype=torch.double)
STOP = 0.3


def tones(sequences: Tensor, lengths: Tensor, probs: Tensor = TONES) -> None:
    """A hidden chain that sounds three tones at each step, in the layout of Pyro's HMM example."""
    count, width, channels = sequences.shape
    with pyro.plate("sequences", count, dim=-2):
        z: Any = 0
        for t in pyro.markov(range(width)):
            with poutine.mask(mask=(t < lengths)[:, None]):
                z = pyro.sample(f"z_{t}", dist.Categorical(MOVES[z]), infer={"enumerate": "parallel"})
                stop = dist.Bernoulli(torch.tensor(STOP, dtype=torch.double))
                pyro.sample(f"stop_{t}", stop, obs=(lengths == t + 1).double()[:, None])
                with pyro.plate(f"tones_{t}", channels, dim=-1):
                    pyro.sample(f"y_{t}", dist.Bernoulli(probs[z.squeeze(-1)]), obs=sequences[:, t])


def log_tones(x: list[Any]) -> float:
    if not x:
        return -math.inf
    moves, probs = MOVES.tolist(), TONES.tolist()
    heard = [[math.prod(p if on else 1 - p for p, on in zip(row, chord, strict=True)) for row in probs] for chord in x]
    total = 0.0
    for path in product(range(2), repeat=len(x)):
        weight, before = 1.0, 0
        for t, z in enumerate(path):
            weight *= moves[before][z] * heard[t][z]
            before = z
        total += weight
    return math.log(total) + (len(x) - 1) * math.log(1 - STOP) + math.log(STOP)


def drawn(count: int, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(count):
        chords, z = [], 0
        while not chords or torch.rand((), generator=generator) > STOP:
            z = int(torch.multinomial(MOVES[z], 1, generator=generator))
            chords.append(torch.bernoulli(TONES[z], generator=generator))
        found.append(torch.stack(chords))
    return found


def test_ratios_against_plain_python() -> None:
    data = Sequences.of(drawn(6))
    edits = zs().edits(data)
    found = as_model(tones, data).log_ratio(data, edits).tolist()
    pairs = zip(edits.owner.tolist(), edits.apply(data).to_lists(), strict=True)
    before = [log_tones(x) for x in data.to_lists()]
    expected = [log_tones(y) - before[owner] for owner, y in pairs]
    assert found == pytest.approx(expected, abs=1e-10)


def test_the_true_model_is_accepted_and_a_wrong_one_rejected() -> None:
    every = torch.tensor(list(product([0.0, 1.0], repeat=3)), dtype=torch.double)
    data = Sequences.of(drawn(150), alphabet=every)
    options: dict[str, Any] = {"num_bootstrap": 200, "progress": False}
    check = ksd_check(tones, data, **options)
    assert float(check["ksd"]["p_value_overall"]) > 0.05
    wrong = ksd_check(lambda sequences, lengths: tones(sequences, lengths, TONES.flip(1)), data, **options)
    assert float(wrong["ksd"]["p_value_overall"]) < 0.05
    near = Substitutions(symbols=one_channel(data))
    few = ksd_check(tones, data, neighborhood=near, views="content-2", **options)
    assert float(few["ksd"]["p_value_overall"]) > 0.05


def generative(sequences: Any = None, lengths: Any = None, num_sequences: int = 0) -> Any:
    if lengths is not None:
        return tones(sequences, lengths)
    rows = drawn(num_sequences, int(torch.randint(10**6, ())))
    sizes = torch.tensor([len(row) for row in rows])
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True), sizes


def padded(x: Any = None, num_sequences: int = 0) -> Any:
    """One argument, filled with -1 in all channels after the ends."""
    if x is not None:
        inside = (x >= 0).all(-1)
        return tones(x.clamp(min=0), inside.sum(1))
    rows = drawn(num_sequences, int(torch.randint(10**6, ())))
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1)


@pytest.mark.parametrize("program", [generative, padded])
def test_generated_vectors(program: Any) -> None:
    every = torch.tensor(list(product([0.0, 1.0], repeat=3)), dtype=torch.double)
    data = Sequences.of(drawn(20), alphabet=every)
    check = ksd_check(program, data, num_bootstrap=10, progress=False)
    assert check["ksd"].attrs["kind"] == "parametric"
    model = as_model(program, data)
    assert model.draw(7).alphabet_size == 8
    torch.testing.assert_close(model.log_joint(data), as_model(tones, data).log_joint(data))
    few = Sequences.of([torch.zeros(2, 3).double(), torch.ones(1, 3).double()] * 3, alphabet=every[[0, 7]])
    with pytest.raises(ValueError, match=r"the program generated the vector .*, expected one of the alphabet"):
        as_model(program, few).draw(50)


def test_loops_make_single_symbols() -> None:
    with pytest.raises(ValueError, match="for symbols that are vectors, found one without arguments"):
        as_model(lambda: None, Sequences.of(ROWS))


def test_posterior_draws_and_errors() -> None:
    def program(sequences: Any = None, lengths: Any = None, num_sequences: int = 0) -> Any:
        weight = pyro.sample("weight", dist.Beta(1.0, 1.0))
        if lengths is None:
            return generative(num_sequences=num_sequences)
        return tones(sequences, lengths, TONES * weight.double())

    every = torch.tensor(list(product([0.0, 1.0], repeat=3)), dtype=torch.double)
    data = Sequences.of(drawn(20), alphabet=every)
    draws = {"weight": torch.tensor([0.9, 0.95, 0.99])}
    check = ksd_check(program, data, posterior=draws, progress=False)
    assert check["ksd_ppc"]["realized"].shape == (1, 3, len(default_views()))

    def broken(sequences: Tensor, lengths: Tensor) -> None:
        raise ArithmeticError("on purpose")

    with pytest.raises(ValueError, match=r"with the vectors \(torch.float64\) of the symbols, \[\d, \d+, 3\]"):
        as_model(broken, data)
