# SPDX-License-Identifier: Apache-2.0
"""Vectorized Pyro programs against brute force."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import product
from typing import Any

import pyro
import pyro.distributions as dist
import pyro_programs as programs
import pytest
import torch
from bayesian_chain import bayesian, chain, point
from pyro import poutine
from pyro.nn import PyroModule
from pyro_programs import EXAMPLES, SIZE, chain_steps, stops
from pyro_programs import FEW_SEQUENCES as DATA
from torch import Tensor

from pyro_ksd import ksd_check
from pyro_ksd.edits.neighborhoods import DoubleSubstitutions, zs
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.programs.vectorized import VectorizedProgram
from pyro_ksd.models.session_state import isolated
from pyro_ksd.sequences.container import Sequences


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
    before = [example.log_joint(x) for x in data.to_lists()]
    for ratio, owner, y in zip(found, edits.owner.tolist(), edits.apply(data).to_lists(), strict=True):
        assert ratio == pytest.approx(example.log_joint(y) - before[owner], abs=1e-10)


def test_five_styles_of_one_chain_give_the_same_ratios() -> None:
    edits = zs().edits(DATA)
    expected = programs.CHAIN.log_ratio(DATA, edits)
    styles = ["chain_with_stop", "chain_with_end_symbol", "chain_as_one_site", "chain_in_a_loop", "chain_without_loop"]
    for style in styles:
        found = as_model(getattr(programs, style), DATA).log_ratio(DATA, edits)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10, msg=style)


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


class NextSymbol(PyroModule):
    """A small recurrent model: each symbol, and whether it is the last one, from the state of a GRU."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cell = torch.nn.GRUCell(SIZE, 8, dtype=torch.double)
        self.head = torch.nn.Linear(8, SIZE + 1, dtype=torch.double)

    def forward(self, sequences: Tensor, lengths: Tensor) -> None:
        pyro.module("next", self)
        state = torch.zeros(len(lengths), 8, dtype=torch.double)
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                out = self.head(state)
                state = self.cell(torch.nn.functional.one_hot(sequences[:, t], SIZE).double(), state)
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(logits=out[:, :SIZE]), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", dist.Bernoulli(logits=out[:, SIZE]), obs=stops(lengths, t))


def test_a_neural_model() -> None:
    module = NextSymbol()
    model = as_model(module, DATA)
    with torch.no_grad():
        for x, value in zip(DATA.to_lists(), model.log_joint(DATA).tolist(), strict=True):
            assert value == pytest.approx(_loop_log_prob(module, x), abs=1e-10)
    assert len(pyro.get_param_store()) == 0


def _loop_log_prob(module: NextSymbol, x: list[Any]) -> float:
    state, total = torch.zeros(8, dtype=torch.double), 0.0
    for t, symbol in enumerate(x):
        out = module.head(state)
        total += float(out[:SIZE].log_softmax(0)[symbol])
        total += float(torch.nn.functional.logsigmoid(out[SIZE] if t == len(x) - 1 else -out[SIZE]))
        state = module.cell(torch.eye(SIZE, dtype=torch.double)[symbol], state)
    return total


def hard_coded_batch_size(sequences: Tensor, lengths: Tensor) -> None:
    with pyro.plate("sequences", len(DATA)):
        chain_steps(sequences + torch.zeros(len(DATA), 1, dtype=torch.long), lengths)


MISTAKES: list[tuple[Callable[..., Any], str]] = [
    (hard_coded_batch_size, "the program runs on all 5 sequences, but not on a few of them: a batch size seems to be"),
]


@pytest.mark.parametrize(("program", "message"), MISTAKES, ids=[program.__name__ for program, _ in MISTAKES])
def test_mistake_is_named(program: Callable[..., Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        as_model(program, DATA)


def test_other_values_of_the_parameters() -> None:
    first = VectorizedProgram(bayesian, DATA, point(0))
    second = first.at(point(1))
    torch.testing.assert_close(first.log_joint(DATA), chain(point(0)).log_joint(DATA))
    torch.testing.assert_close(second.log_joint(DATA), chain(point(1)).log_joint(DATA))
    mixed = first.at({"moves": point(1)["moves"]})  # the other values stay
    expected = chain({"initial": point(0)["initial"], "moves": point(1)["moves"]})
    torch.testing.assert_close(mixed.log_joint(DATA), expected.log_joint(DATA))
    with isolated(validate=False):
        scored = first.score(point(1), first.rows_of(DATA))
    torch.testing.assert_close(scored, second.log_joint(DATA))


def test_other_values_have_an_empty_sequence_of_their_own() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        rate = pyro.sample("rate", dist.Exponential(torch.tensor(1.0).double()))
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("length", dist.Poisson(rate), obs=lengths.double())

    empty = Sequences.of([[]], SIZE)
    first = VectorizedProgram(program, DATA, {"rate": torch.tensor(2.0).double()})
    assert first.log_joint(empty).tolist() == pytest.approx([-2.0])
    assert first.at({"rate": torch.tensor(3.0).double()}).log_joint(empty).tolist() == pytest.approx([-3.0])
    assert first.log_joint(empty).tolist() == pytest.approx([-2.0])


def test_a_program_that_generates_nothing_cannot_be_drawn() -> None:
    model = VectorizedProgram(programs.chain_backwards, DATA)
    assert not model.can_draw
    message = "expected a model that can be sampled, found VectorizedProgram, which cannot; let a program draw"
    with pytest.raises(ValueError, match=message):
        model.draw(3)
    assert VectorizedProgram(programs.chain_with_stop, DATA).can_draw


def test_sites_that_make_sequences_impossible_are_named() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("length", torch.where(lengths > 3, -torch.inf, 0.0))
            pyro.factor("start", torch.where(sequences[:, 0] == 2, -torch.inf, 0.0))

    model = VectorizedProgram(program, DATA)
    assert model.impossible_sites(DATA) == ["length", "start", "", "", "length, start"]


def test_of_many_sites_that_make_a_sequence_impossible_the_first_is_named() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            for t in range(sequences.shape[1]):
                pyro.factor(f"step_{t}", torch.where(t < lengths - 1, -torch.inf, 0.0))

    model = VectorizedProgram(program, DATA)
    data = Sequences.of([[0], [1, 1], [1, 1, 2], [0, 1, 0, 1, 0]], SIZE)
    assert model.impossible_sites(data) == ["", "step_0", "step_0, step_1", "step_0 and 3 others"]


def test_an_edit_with_nan_is_shown() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("length", torch.where(lengths > 3, torch.nan, -1.0 * lengths))

    data = Sequences.of(["aba", "b", "ab"])
    model = VectorizedProgram(program, data)
    edited = Sequences.of(["ab", "abab", "b"])
    with pytest.raises(ValueError, match=r"site 'length': found NaN in .* the sequence \['a', 'b', 'a', 'b'\]; fix"):
        model.log_joint(edited)


def test_a_site_is_to_blame_only_if_it_is_impossible_in_all_hidden_states() -> None:
    emission = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]], dtype=torch.double).log()

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            z = pyro.sample("z", dist.Bernoulli(torch.tensor(0.5).double()), infer={"enumerate": "parallel"}).long()
            pyro.factor("first", emission[z, sequences[:, 0]])

    model = VectorizedProgram(program, Sequences.of([[0], [0], [1]], SIZE))
    assert model.impossible_sites(Sequences.of([[1], [2]], SIZE)) == ["", "first"]


def test_another_alphabet_is_refused() -> None:
    with pytest.raises(ValueError, match="the model's 3 symbols, found an alphabet of 4"):
        VectorizedProgram(programs.chain_with_stop, DATA).log_joint(Sequences.of([[0]], 4))


def late(step: int, enumerated: bool) -> Callable[..., None]:
    """A chain with a hidden state at one late step, which makes two of its symbols more probable."""
    weights = torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]], dtype=torch.double)

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths), dim=-1):
            for t in pyro.markov(range(sequences.shape[1])):
                with poutine.mask(mask=t < lengths):
                    probs = programs.INITIAL
                    if t == step:
                        infer = {"enumerate": "parallel"} if enumerated else {}
                        state = pyro.sample("state", dist.Categorical(torch.ones(2).double() / 2), infer=infer)
                        probs = weights[state]
                    pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", programs.bernoulli(), obs=stops(lengths, t))

    return program


@pytest.mark.parametrize(("step", "longest"), [(30, 40), (30, 31), (30, 30), (60, 61)])
def test_latent_sites_at_late_steps(step: int, longest: int) -> None:
    """The sites are seen whenever sequences reach them: those of the data, or those that edits make longer."""
    tokens = torch.randint(SIZE, (4, longest), generator=torch.Generator().manual_seed(0))
    data = Sequences.of(tokens, SIZE, lengths=torch.tensor([longest, 3, 7, longest - 1]))
    longer = zs(locations=1).edits(data).apply(data)
    with pytest.raises(ValueError, match="site 'state': found a latent inside the plate 'sequences'"):
        as_model(late(step, enumerated=False), data).log_joint(longer)
    found = as_model(late(step, enumerated=True), data).log_joint(longer)
    emission = torch.tensor([0.45, 0.1, 0.45], dtype=torch.double)
    expected = []
    for x in longer.to_lists():
        symbols = [emission[a] if t == step else programs.INITIAL[a] for t, a in enumerate(x)]
        expected.append(sum(math.log(p) for p in symbols) + programs.log_stops(x))
    assert found.tolist() == pytest.approx(expected, abs=1e-9)


def test_plates_at_late_steps() -> None:
    """A plate inside that of the sequences, which only long ones reach, beside enumerated states."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths), dim=-1):
            for t in pyro.markov(range(sequences.shape[1])):
                with poutine.mask(mask=t < lengths):
                    z = pyro.sample(f"z_{t}", dist.Bernoulli(torch.tensor(0.5)), infer={"enumerate": "parallel"})
                    pyro.sample(f"x_{t}", dist.Categorical(programs.EMISSION[z.long()]), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", programs.bernoulli(), obs=stops(lengths, t))
                    if t == 3:
                        with pyro.plate("features", 2, dim=-2):
                            pyro.factor("extra", -torch.ones(2, len(lengths)).double())

    short = Sequences.of([[0, 1], [2], [1, 1, 0]], SIZE)
    data = Sequences.of([[0, 1, 1, 2], [2, 2, 2], [1]], SIZE)
    found = as_model(program, short).log_joint(data)
    mixed = programs.EMISSION.mean(0)
    expected = [sum(math.log(mixed[a]) for a in x) + programs.log_stops(x) - 2 * (len(x) > 3) for x in data.to_lists()]
    assert found.tolist() == pytest.approx(expected, abs=1e-6)


def test_sites_outside_the_plate_at_late_steps() -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        if sequences.shape[1] > 4:
            pyro.sample("late", dist.Normal(0.0, 1.0), obs=sequences.float().mean())
        with pyro.plate("sequences", len(lengths)):
            chain_steps(sequences, lengths)

    short = Sequences.of([[0, 1], [2], [1, 1, 0]], SIZE)
    with pytest.raises(ValueError, match="site 'late': stands outside the plate 'sequences', but only longer"):
        as_model(program, short).log_joint(DATA)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_batch_of_one_sequence(name: str) -> None:
    """One sequence, one in a remainder, and sequences of one symbol."""
    example = EXAMPLES[name]
    data = Sequences.of([x for x in DATA.to_lists() if example.log_joint(x) > -math.inf], SIZE)
    expected = as_model(example.program, data).log_joint(data)
    for row in range(len(data)):
        alone = data[row : row + 1].narrowed()
        torch.testing.assert_close(as_model(example.program, alone).log_joint(alone), expected[row : row + 1])


@pytest.mark.parametrize("name", ["HMM", "mixture of chains", "chain with stop"])
@pytest.mark.filterwarnings("ignore:the view.s. .* cannot be used with")  # of few data
def test_data_that_begin_with_single_symbols(name: str) -> None:
    data = Sequences.of([[1]] * 45 + [[0, 1, 1], [2, 0]], SIZE)
    ksd_check(EXAMPLES[name].program, data, num_bootstrap=5, progress=False)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("obs_mask", "found values that obs_mask= leaves unobserved, which would be drawn at random; for steps after"),
        ("subsample", "expected all of them; a subsampled plate gives no log-joint for the sequences left out"),
        ("continuous", "found a latent inside the plate 'sequences' that is neither observed nor enumerated"),
    ],
)
def test_what_to_write_instead(mistake: str, message: str) -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        size = 2 if mistake == "subsample" else None
        with pyro.plate("sequences", len(lengths), subsample_size=size) as rows:
            shift = pyro.sample("shift", dist.Normal(0.0, 1.0)) if mistake == "continuous" else 0.0
            for t in range(sequences.shape[1]):
                inside = (t < lengths)[rows]
                mask = inside if mistake == "obs_mask" else None
                fn = dist.Categorical(
                    logits=programs.INITIAL.log() + torch.as_tensor(shift)[..., None].expand(len(inside), 1)
                )
                pyro.sample(f"x_{t}", fn, obs=sequences[rows, t], obs_mask=mask)

    with pytest.raises(ValueError, match=message):
        as_model(program, DATA)


@pytest.mark.parametrize("padded", [True, False])
def test_a_program_may_return_sequences(padded: bool) -> None:
    drawn = Sequences.of([[2, 0, 1], [1], [0, 0]], SIZE)

    def of_lengths(sequences: Tensor, lengths: Tensor, num_sequences: int | None = None) -> Any:
        return programs.chain_with_stop(sequences, lengths) if num_sequences is None else drawn

    def of_padded(x: Tensor, num_sequences: int | None = None) -> Any:
        if num_sequences is not None:
            return drawn
        lengths = (x >= 0).sum(1)
        return programs.chain_with_stop(x.clamp(min=0), lengths)

    model = as_model(of_padded if padded else of_lengths, DATA)
    assert model.draw(3).to_lists() == drawn.to_lists()


def experts(sequences: Tensor, lengths: Tensor) -> None:
    """Two distributions of the same symbols: their product is not normalized."""
    with pyro.plate("sequences", len(lengths)):
        chain_steps(sequences, lengths)
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"y_{t}", dist.Categorical(programs.INITIAL.expand(len(lengths), -1)), obs=sequences[:, t])


@pytest.mark.parametrize(
    "program",
    [programs.chain_with_stop, programs.second_order, programs.length_first, programs.hmm, programs.mixture_of_chains],
    ids=lambda program: program.__name__,
)
def test_the_probabilities_of_a_normalized_program_sum_to_one(program: Callable[..., Any]) -> None:
    model = VectorizedProgram(with_samples(program), DATA)
    assert model.is_normalized
    every = [[], *([*word] for length in range(1, 8) for word in product(range(SIZE), repeat=length))]
    total = model.log_joint(Sequences.of(every, SIZE)).exp().sum()
    assert 0.7 < total <= 1 + 1e-9  # longer sequences are missing
    assert not VectorizedProgram(program, DATA).is_normalized or program is programs.chain_with_stop  # it cannot draw


@pytest.mark.parametrize(
    "program",
    [programs.product_of_experts, programs.mrf_by_steps, programs.mrf_by_sequence, experts],
    ids=lambda program: program.__name__,
)
def test_factors_and_products_are_not_normalized(program: Callable[..., Any]) -> None:
    assert not VectorizedProgram(with_samples(program), DATA).is_normalized


def with_samples(program: Callable[..., Any]) -> Callable[..., Any]:
    """The program, as if it could make sequences."""

    def made(sequences: Tensor, lengths: Tensor, num_sequences: int = 0) -> None:
        program(sequences, lengths)

    return made


def test_covariates_for_draws_are_checked() -> None:
    model = as_model(with_samples(experts), DATA)
    with pytest.raises(ValueError, match="covariates: expected those of sequences"):
        model.draw_given([1.0, 2.0])  # type: ignore[arg-type]


def test_nothing_within_a_program_is_validated() -> None:
    """It would take twice the time, and errors would lack the name of the site."""
    seen: list[bool] = []

    def walk(sequences: Any = None, lengths: Any = None, num_sequences: int | None = None) -> Any:
        seen.append(pyro.settings.get("validate_distributions_torch"))
        if num_sequences is not None:
            return torch.zeros(num_sequences, 2, dtype=torch.long), torch.ones(num_sequences, dtype=torch.long)
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("length", dist.Poisson(torch.tensor(3.0).double()), obs=lengths.double())
        return None

    with pyro.validation_enabled(True):
        model = VectorizedProgram(walk, DATA)
        calls: list[Callable[[], Any]] = [
            lambda: VectorizedProgram(walk, DATA),
            lambda: model.draw(3),
            lambda: model.log_joint(DATA),
            lambda: model.defines_empty,
            lambda: model.log_joint(Sequences.of([[]], SIZE)),
            lambda: model.impossible_sites(DATA),
            lambda: model.rounding(model.rows_of(DATA)),
        ]
        for call in calls:
            seen.clear()
            call()
            assert seen
            assert not any(seen)
        model.run(model.rows_of(DATA), validate=True)
    assert seen[-1]
