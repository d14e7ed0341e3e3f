# SPDX-License-Identifier: Apache-2.0
"""Vectorized Pyro programs against brute force."""

from __future__ import annotations

import math
from typing import Any

import pyro
import pyro.distributions as dist
import pyro_programs as programs
import pytest
import torch
from pyro_programs import EXAMPLES, SIZE

from pyro_ksd import MarkovSequence, ksd_check
from pyro_ksd.edits.neighborhoods import DoubleSubstitutions, zs
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.evaluation import distinct
from pyro_ksd.models.programs.vectorized import VectorizedProgram
from pyro_ksd.sequences.container import Sequences

DATA = Sequences.of([[0, 1, 1, 2], [2], [1, 1, 0], [0, 0], [2, 1, 0, 1, 1]], SIZE)


@pytest.mark.parametrize("name", EXAMPLES)
def test_log_joint_against_plain_python(name: str) -> None:
    example = EXAMPLES[name]
    data = Sequences.of([x for x in DATA.to_lists() if example.log_joint(x) > -math.inf], SIZE)
    found = as_model(example.program, data).log_joint(data).tolist()
    expected = [example.log_joint(x) for x in data.to_lists()]
    offset = found[0] - expected[0]  # a log-joint is known up to a constant
    assert [value - offset for value in found] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("name", EXAMPLES)
def test_log_ratios_of_all_edits_against_plain_python(name: str) -> None:
    example = EXAMPLES[name]
    data = Sequences.of([x for x in DATA.to_lists() if example.log_joint(x) > -math.inf], SIZE)
    edits = zs().edits(data)
    found = as_model(example.program, data).log_ratio(data, edits).tolist()
    own = data.to_lists()
    for ratio, owner, y in zip(found, edits.owner.tolist(), edits.apply(data).to_lists(), strict=True):
        expected = example.log_joint(y) - example.log_joint(own[owner])
        assert ratio == pytest.approx(expected, abs=1e-10)


def test_five_styles_of_one_chain_give_the_same_ratios() -> None:
    edits = zs().edits(DATA)
    expected = programs.CHAIN.log_ratio(DATA, edits)
    styles = ["chain_with_stop", "chain_with_end_symbol", "chain_as_one_site", "chain_in_a_loop", "chain_without_loop"]
    for style in styles:
        found = as_model(getattr(programs, style), DATA).log_ratio(DATA, edits)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10, msg=style)


def test_repeated_neighbors_are_scored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Sequences.of([[0, 1], [0, 1], [1, 0], [0, 1]], SIZE)
    model = VectorizedProgram(programs.chain_with_stop, data)
    edits = zs().edits(data)
    neighbors = {tuple(y) for y in edits.apply(data).to_lists()}
    scored: list[tuple[object, ...]] = []
    inner = VectorizedProgram._evaluate

    def counted(self: VectorizedProgram, sequences: Sequences) -> torch.Tensor:
        scored.extend(map(tuple, sequences.to_lists()))
        return inner(self, sequences)

    monkeypatch.setattr(VectorizedProgram, "_evaluate", counted)
    model.log_ratio(data, edits)
    assert len(edits) > len(neighbors)
    assert sorted(scored) == sorted(neighbors | {tuple(x) for x in data.to_lists()})


def test_chunks_do_not_change_the_log_joints(monkeypatch: pytest.MonkeyPatch) -> None:
    for program in (programs.chain_with_stop, programs.hmm):
        model = as_model(program, DATA)
        neighbors = zs().edits(DATA).apply(DATA)
        whole = model.log_joint(neighbors)
        monkeypatch.setattr("pyro_ksd.models.evaluation.EVALUATED_SEQUENCES", 7)
        torch.testing.assert_close(model.log_joint(neighbors), whole, rtol=1e-12, atol=1e-12)


def test_distinct_survives_a_collision_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "randint", lambda low, high, size, **_: torch.zeros(size, dtype=torch.long))
    data = Sequences.of([[0, 2], [1, 1], [2, 0], [1, 1], [0, 2]], SIZE)  # all rows have the same sum
    first, inverse = distinct(data.tokens)
    assert len(first) == 3
    assert [data.to_lists()[i] for i in first[inverse].tolist()] == data.to_lists()


def test_long_hidden_chains_do_not_run_out_of_dimensions() -> None:
    from pyro_ksd.models import HiddenMarkovSequence

    truth = HiddenMarkovSequence(programs.HIDDEN_START, programs.HIDDEN_MOVES, programs.EMISSION, programs.STOP)
    tokens = torch.randint(0, SIZE, (4, 60), generator=torch.Generator().manual_seed(0))
    data = Sequences.of(tokens, SIZE, lengths=[60, 1, 37, 59])
    found = as_model(programs.hmm, data).log_joint(data)
    torch.testing.assert_close(found, truth.log_joint(data), rtol=1e-10, atol=1e-10)


def test_edits_that_change_several_symbols() -> None:
    edits = DoubleSubstitutions().edits(DATA)
    found = as_model(programs.chain_with_stop, DATA).log_ratio(DATA, edits)
    torch.testing.assert_close(found, programs.CHAIN.log_ratio(DATA, edits), rtol=0, atol=1e-10)


@pytest.mark.parametrize("style", ["chain_with_stop", "chain_as_one_site", "chain_in_a_loop"])
def test_generated_sequences_follow_the_model(style: str) -> None:
    model = as_model(getattr(programs, style), DATA)
    count = 600 if style == "chain_in_a_loop" else 20_000
    drawn = model.draw(count, torch.Generator().manual_seed(0))  # type: ignore[attr-defined]
    first = torch.bincount(drawn.tokens[:, 0], minlength=SIZE) / count
    assert (first - programs.INITIAL).abs().max() < 4 * (0.25 / count) ** 0.5
    assert float(drawn.lengths.double().mean()) == pytest.approx(5, abs=4 * 20**0.5 / count**0.5)
    again = model.draw(count, torch.Generator().manual_seed(0))  # type: ignore[attr-defined]
    assert torch.equal(drawn.tokens, again.tokens)


def generative_hmm(sequences: Any = None, lengths: Any = None, num_sequences: int = 0) -> Any:
    if lengths is not None:
        return programs.hmm(sequences, lengths)
    columns: list[torch.Tensor] = []
    lengths = torch.zeros(num_sequences, dtype=torch.long)
    z: Any = None
    with pyro.plate("sequences", num_sequences):
        while (alive := lengths == 0).any():
            t = len(columns)
            start = programs.HIDDEN_START.expand(num_sequences, -1)
            z = pyro.sample(f"z_{t}", dist.Categorical(start if z is None else programs.HIDDEN_MOVES[z]))
            columns.append(pyro.sample(f"x_{t}", dist.Categorical(programs.EMISSION[z])))
            lengths[alive & pyro.sample(f"stop_{t}", programs.bernoulli()).bool()] = t + 1
    return torch.stack(columns, 1), lengths


def test_an_hmm_that_generates_is_checked_by_the_parametric_bootstrap() -> None:
    model = as_model(generative_hmm, DATA)
    drawn = model.draw(20_000, torch.Generator().manual_seed(0))  # type: ignore[attr-defined]
    singles = Sequences.of([[a] for a in range(SIZE)], SIZE)
    expected = model.log_joint(singles).exp()
    alone = drawn.tokens[drawn.lengths == 1, 0]
    found = torch.bincount(alone, minlength=SIZE) / len(drawn)
    assert (found - expected).abs().max() < 4 * (0.25 / len(drawn)) ** 0.5
    assert ksd_check(generative_hmm, drawn[:30], num_bootstrap=20, progress=False)["ksd"].attrs["kind"] == "parametric"


def test_no_sequences_and_empty_sequences() -> None:
    model = as_model(programs.length_first, DATA)
    assert model.log_joint(DATA[:0]).shape == (0,)
    empty = Sequences.of([[], [], []], SIZE)
    assert model.log_joint(empty).tolist() == pytest.approx([-2.0] * 3)  # Poisson(2) at 0
    check = ksd_check(programs.length_first, Sequences.of([[], [0], [1, 1]], SIZE), num_bootstrap=5, progress=False)
    assert 0 < float(check["ksd"]["p_value_overall"]) <= 1


@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_categorical_sites_score_as_the_distribution_does(kind: str) -> None:
    """Looked up before or after the logarithm, to the last bit, with the clamping of zeros that Categorical does."""
    table = programs.MOVES.clone()
    table[1] = torch.tensor([0.0, 1.0, 0.0])

    def program(sequences: torch.Tensor, lengths: torch.Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("x", dist.Categorical(**{kind: table[sequences[:, 0]]}), obs=sequences[:, -1])

    tokens, lengths = torch.tensor([[0, 1], [1, 0], [1, 1], [2, 2], [1, 2]]), torch.full((5,), 2)
    found = VectorizedProgram(program, DATA).run(tokens, lengths)
    expected = dist.Categorical(**{kind: table[tokens[:, 0]]}).log_prob(tokens[:, 1])
    assert torch.equal(found, expected)


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
