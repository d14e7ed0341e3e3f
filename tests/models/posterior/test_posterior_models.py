# SPDX-License-Identifier: Apache-2.0
"""Posterior draws that are looked at together give what each of them gives alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from pyro_programs import hidden_steps
from torch import Tensor

from pyro_ksd import HiddenMarkovSequence, MarkovSequence, Sequences
from pyro_ksd.common.block_runs import DrawBlock, draw_blocks
from pyro_ksd.common.random_numbers import seeded_generator
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.fit_tests import predictive
from pyro_ksd.fit_tests.feature_scores import largest_score, scores
from pyro_ksd.fit_tests.predictive import posterior_predictive
from pyro_ksd.fit_tests.statistics import u_statistic
from pyro_ksd.kernels import ContiguousKernel, HammingKernel
from pyro_ksd.kernels.stein_matrices import FeatureMatrix
from pyro_ksd.models import TabulatedModel
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.model_batch import ModelList
from pyro_ksd.models.posterior import posterior_models
from pyro_ksd.models.posterior.posterior_models import PosteriorModels, StackedModels
from pyro_ksd.models.posterior.program_batch import ProgramBatch
from pyro_ksd.models.posterior.table_batch import TableBatch
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.sums import SteinSums
from pyro_ksd.stein.views import View, default_views

SIZE, STATES, DRAWS = 3, 2, 3
STOP = torch.tensor(0.3, dtype=torch.double)
DATA = Sequences.of([[0, 1, 1, 2], [2], [1, 1, 0], [0, 0], [2, 1, 0, 1, 1]], SIZE)


def simplex(*shape: int, seed: int = 0) -> Tensor:
    values = torch.rand(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(seed)) + 0.2
    return values / values.sum(-1, keepdim=True)


def prior(name: str, *shape: int) -> Tensor:
    return pyro.sample(name, dist.Dirichlet(torch.ones(*shape, dtype=torch.double)).to_event(len(shape) - 1))


CHAIN = {"initial": simplex(DRAWS, SIZE), "moves": simplex(DRAWS, SIZE, SIZE, seed=1)}
HIDDEN = {
    "start": simplex(DRAWS, STATES),
    "moves": simplex(DRAWS, STATES, STATES, seed=2),
    "emit": simplex(DRAWS, STATES, SIZE, seed=3),
}


def drawn(law: Any, count: int) -> tuple[Tensor, Tensor]:
    found = law.draw(count)
    return found.tokens, found.lengths


def chain(sequences: Any = None, lengths: Any = None, num_sequences: int | None = None) -> Any:
    """A step at a time; the empty sequence is impossible."""
    initial, moves = prior("initial", SIZE), prior("moves", SIZE, SIZE)
    if num_sequences is not None:
        return drawn(MarkovSequence.from_transitions(initial, moves, STOP), num_sequences)
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                law = initial if t == 0 else moves[sequences[:, t - 1]]
                pyro.sample(f"x_{t}", dist.Categorical(law), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", dist.Bernoulli(STOP), obs=(lengths == t + 1).double())
    return None


def chain_that_looks(sequences: Any = None, lengths: Any = None, num_sequences: int | None = None) -> Any:
    """The same with control flow that depends on the lengths, so that the draws cannot run at once."""
    if num_sequences is None and int(lengths.max()) > sequences.shape[1]:
        raise AssertionError("longer than its tokens")
    return chain(sequences, lengths, num_sequences)


def length_first(sequences: Any = None, lengths: Any = None, num_sequences: int | None = None) -> Any:
    """A law of the length that allows empty sequences, then symbols, all of them in one site."""
    initial = prior("initial", SIZE)
    rate = 1 + initial[0]
    if num_sequences is not None:
        lengths = dist.Poisson(rate).sample((num_sequences,)).long()
        return dist.Categorical(initial).sample((num_sequences, max(1, int(lengths.max())))), lengths
    count, width = sequences.shape
    inside = torch.arange(width) < lengths[:, None]
    with pyro.plate("sequences", count, dim=-2):
        pyro.sample("length", dist.Poisson(rate), obs=lengths[:, None].double())
        with pyro.plate("steps", width, dim=-1), poutine.mask(mask=inside):
            pyro.sample("x", dist.Categorical(initial), obs=sequences)
    return None


def hidden(sequences: Any = None, lengths: Any = None, num_sequences: int | None = None) -> Any:
    """Hidden states that are summed out."""
    start, moves, emit = prior("start", STATES), prior("moves", STATES, STATES), prior("emit", STATES, SIZE)
    if num_sequences is not None:
        return drawn(HiddenMarkovSequence(start, moves, emit, STOP.expand(STATES)), num_sequences)
    return hidden_steps(sequences, lengths, start, moves, emit, STOP)


def loop() -> None:
    """One sequence at a time."""
    law, moves = prior("initial", SIZE), prior("moves", SIZE, SIZE)
    stop, t = False, 0
    while not stop:
        x = pyro.sample(f"x_{t}", dist.Categorical(law))
        stop = pyro.sample(f"stop_{t}", dist.Bernoulli(STOP))
        law, t = moves[x], t + 1


@dataclass(frozen=True)
class Case:
    """A program with draws of its parameters."""

    program: Callable[..., Any]
    values: dict[str, Tensor] = field(default_factory=lambda: CHAIN)
    options: dict[str, int] = field(default_factory=dict)

    def draws(self) -> PosteriorModels:
        return PosteriorModels(self.program, DATA, self.values, **self.options)

    def alone(self, index: int) -> SequenceModel:
        """The model of one draw, without anything that serves several of them, and without a table."""
        point = {name: value[index] for name, value in self.values.items()}
        return as_model(self.program, DATA, parameters=point)


CASES = {
    "chain": Case(chain),
    "chain, order 1": Case(chain, options={"order": 1}),
    "chain, order 2": Case(chain, options={"order": 2}),
    "chain that looks": Case(chain_that_looks),
    "length first": Case(length_first, {"initial": CHAIN["initial"]}),
    "hidden": Case(hidden, HIDDEN),
    "loop": Case(loop),
    "loop, order 1": Case(loop, options={"order": 1}),
}
FEW_AT_ONCE = {  # every limit of what is done at once, such that it is met
    "pyro_ksd.fit_tests.predictive.WEIGHTED_PAIRS": 120,  # two draws, then one
    "pyro_ksd.edits.weighted_edits.EDITS": 50,
    "pyro_ksd.models.evaluation.EDITED_SEQUENCES": 40,
    "pyro_ksd.models.posterior.program_batch.SCORED_PAIRS": 32,
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[str(request.param)]


@pytest.fixture(params=["much at once", "few at once", "each draw alone"])
def limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "few at once":
        for name, limit in FEW_AT_ONCE.items():
            monkeypatch.setattr(name, limit)
    if request.param == "each draw alone":
        monkeypatch.setattr("pyro_ksd.models.posterior.program_batch._FEW", 0)


def same(found: Tensor, expected: Tensor) -> None:
    assert found.dtype == torch.double
    torch.testing.assert_close(found, expected.double(), rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("limits")
def test_models_together_are_the_models_alone(case: Case) -> None:
    draws = case.draws()
    together, alone = draws.batch, [case.alone(index) for index in range(DRAWS)]
    assert len(together) == len(draws) == DRAWS
    data = Sequences.cat([DATA, Sequences.of([[]], SIZE)]) if case.program is length_first else DATA
    edits = zs().edits(data)
    same(together.log_joint(data), torch.stack([model.log_joint(data) for model in alone]))
    same(together.log_ratio(data, edits), torch.stack([model.log_ratio(data, edits) for model in alone]))
    stack = Sequences.cat([data[[4 - k, (3 * k) % 5]] for k in range(DRAWS)])
    model, around = draws.stacked(2), zs().edits(stack)
    found, ratio = model.log_joint(stack), model.log_ratio(stack, around)
    for k in range(DRAWS):
        rows = slice(2 * k, 2 * k + 2)
        same(found[rows], alone[k].log_joint(stack[rows]))
        same(model.for_rows(2 * k).log_joint(stack[rows]), found[rows])
        own = (around.owner // 2 == k).nonzero().squeeze(1)
        same(ratio[own], alone[k].log_ratio(stack, around.select(own)))


def test_empty_sequences_have_the_log_joints_of_each_draw() -> None:
    empty = Sequences.of([[], [0], []], SIZE)
    which = torch.tensor([2, 0, 1])
    found = CASES["length first"].draws().batch.log_joint_each(empty, which)
    rates = 1 + CHAIN["initial"][:, 0]
    same(found[[0, 2]], -rates[[2, 1]])
    assert CASES["chain"].draws().batch.log_joint_each(empty, which)[[0, 2]].tolist() == [-math.inf] * 2


def test_the_tables_of_all_draws_must_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.models.posterior.posterior_models._SHARED_ENTRIES", 0)
    models = PosteriorModels(chain, DATA, CHAIN, order=1)
    monkeypatch.setattr("pyro_ksd.models.distributions.factor_table._MOST_BITS", 8)  # one table has 128 bytes
    with pytest.raises(ValueError, match="order: expected none for 3 symbols, found 1, for which 3 tables of all cont"):
        _ = models.batch


def views() -> list[View]:
    """With and without features, with and without names, sums and multiples; four operators."""
    default = default_views(zs(locations=2))
    operator = default[0].operator
    [length] = [view for view in default if view.name == "length"]
    return [
        *default[2:],
        View("range", operator, ContiguousKernel(1, 3)),
        View("sum", operator, ContiguousKernel(1) + 2.0 * ContiguousKernel(2)),
        View("Hamming", operator, HammingKernel()),
        View("tail", length.operator, 3.0 * HammingKernel()),
    ]


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize("name", ["chain", "chain, order 1", "length first"])
def test_statistics_of_all_draws_are_those_of_each(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    chosen, n = views(), len(DATA)
    blocks: list[DrawBlock] = []
    monkeypatch.setattr(predictive, "draw_blocks", lambda *arguments: blocks.extend(draw_blocks(*arguments)) or blocks)
    found = posterior_predictive(case.draws(), DATA, chosen, seed=3)
    assert blocks == draw_blocks(DRAWS, blocks[0].size, seeded_generator(3))
    some = [case.draws().of_draws(slice(block.begin, block.end)) for block in blocks]
    parts = [own.draw_like(DATA, block.generator()) for own, block in zip(some, blocks, strict=True)]
    replicates = Sequences.cat(parts)
    assert found.realized.shape == found.replicated.statistic.shape == (DRAWS, len(chosen))
    for index in range(DRAWS):
        replicate, alone = replicates[index * n : (index + 1) * n].narrowed(), case.alone(index)
        same(found.realized[index], torch.stack([u_statistic(m) for m in stein_matrices(alone, DATA, chosen)]))
        matrices = stein_matrices(alone, replicate, chosen)
        same(found.replicated.statistic[index], torch.stack([u_statistic(m) for m in matrices]))
        for view, matrix, extreme in zip(chosen, matrices, found.replicated.extreme[index], strict=True):
            if isinstance(matrix, FeatureMatrix) and view.kernel.feature_kind:
                total, spread = scores(SteinSums.of(matrix))
                same(extreme, largest_score(total[None], spread[None])[0])
            else:
                assert extreme.isnan()
    for v, place in enumerate(found.places):
        same(place.contribution.sum(), found.realized[:, v].mean())


def test_replicates_that_the_program_itself_calls_impossible_are_shown_with_the_site() -> None:
    def forgets(sequences: Any = None, lengths: Any = None, num_sequences: int | None = None) -> Any:
        weight = pyro.sample("weight", dist.Beta(torch.tensor(1.0).double(), 1.0))
        if num_sequences is not None:
            return torch.ones(num_sequences, 1, dtype=torch.long), torch.ones(num_sequences, dtype=torch.long)
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("length", -weight * lengths)
            pyro.factor("ban", torch.where((sequences == 1).any(1), -math.inf, 0.0))
        return None

    data = Sequences.of([[0, 2], [2], [0]], SIZE)
    draws = PosteriorModels(forgets, data, {"weight": torch.tensor([0.4, 0.5]).double()})
    with pytest.raises(ValueError, match=r"6 of 6 sequences impossible that .* sequence 0, \[1\], at site ban; "):
        posterior_predictive(draws, data, default_views())


@pytest.mark.parametrize("bad", [math.inf, -math.inf])
def test_data_that_one_draw_cannot_score_are_shown_with_the_site(bad: float) -> None:
    def factor(sequences: Any = None, lengths: Any = None, num_sequences: int | None = None) -> Any:
        worth = pyro.sample("worth", dist.Normal(torch.tensor(0.0).double(), 1.0))
        if num_sequences is not None:
            return torch.zeros(num_sequences, 1, dtype=torch.long), torch.ones(num_sequences, dtype=torch.long)
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("worths", (worth - worth.clamp(min=3)) * lengths)  # NaN for infinity
        return None

    draws = PosteriorModels(factor, DATA, {"worth": torch.tensor([-1.0, -2.0, bad]).double()})
    with pytest.raises(ValueError, match="worths"):
        posterior_predictive(draws, DATA, default_views())


@pytest.mark.parametrize(
    ("program", "values", "message"),
    [
        (
            hidden,
            HIDDEN | {"z_0": torch.zeros(DRAWS, 5)},
            "posterior: site 'z_0' belongs to each sequence",
        ),
        (
            loop,
            CHAIN | {"x_0": torch.zeros(DRAWS)},
            "posterior: site 'x_0' belongs to each sequence",
        ),
        (
            loop,
            {"initial": 2 * CHAIN["initial"]},
            "posterior: site 'initial': expected values in the support of D",
        ),
        (chain, CHAIN | {"initial": CHAIN["initial"].log()}, "in 3 of 3 draws; transform unconstrained values"),
        (
            chain,
            CHAIN | {"moves": CHAIN["moves"].log().sqrt()},
            "posterior: site 'moves': .* found NaN in 3 of 3",
        ),
        (
            chain,
            {name: value[:0] for name, value in CHAIN.items()},
            "posterior: expected at least one draw of",
        ),
    ],
)
def test_wrong_draws_are_named_with_the_site(program: Any, values: dict[str, Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PosteriorModels(program, DATA, values)


def test_the_batch_suits_the_program() -> None:
    kinds = {"chain": ProgramBatch, "chain, order 1": TableBatch, "loop": ModelList, "loop, order 1": TableBatch}
    for name, kind in kinds.items():
        draws = CASES[name].draws()
        assert type(draws.batch) is kind
        assert draws.batch is draws.batch
        assert isinstance(draws[0], TabulatedModel) == ("order" in name)


def test_some_draws_have_a_batch_of_their_own() -> None:
    draws = CASES["chain"].draws()
    whole = draws.batch.log_joint(DATA)
    parts = [draws.of_draws(slice(0, 2)), draws.of_draws(slice(2, 3))]
    assert [len(part) for part in parts] == [2, 1]
    same(torch.cat([part.batch.log_joint(DATA) for part in parts]), whole)
    same(draws.batch.log_joint(DATA), whole)


def test_draws_of_several_chains_are_taken_at_even_distances() -> None:
    values = {"initial": simplex(2, 9, SIZE), "moves": simplex(2, 9, SIZE, SIZE, seed=1)}
    draws = PosteriorModels(chain, DATA, values, num_draws=6)
    assert draws.num_chains == 2
    assert len(draws) == 6
    for name, value in values.items():
        assert draws.values[name].equal(value[:, [0, 4, 8]].flatten(0, 1))
    assert len(PosteriorModels(chain, DATA, values, num_draws=100)) == 18


def test_each_model_draws_a_data_set_of_its_own() -> None:
    draws = CASES["chain"].draws()
    found = draws.draw_like(DATA[:4], seeded_generator(1))
    generator = seeded_generator(1)
    expected = [x for model in draws for x in model.draw(4, generator).to_lists()]
    assert found.to_lists() == expected
    assert len(found) == 4 * DRAWS


def test_a_table_draws_in_place_of_the_program() -> None:
    asked: list[int] = []

    def program(sequences: Any = None, lengths: Any = None, num_sequences: int | None = None) -> Any:
        if num_sequences is not None:
            asked.append(num_sequences)
        return chain(sequences, lengths, num_sequences)

    draws = PosteriorModels(program, DATA, CHAIN, order=1)
    known = DATA.with_covariates(torch.arange(len(DATA)))
    asked.clear()
    found = draws.draw_like(known, seeded_generator(1))
    assert not asked
    assert len(found) == len(DATA) * DRAWS
    assert found.covariates is not None
    assert torch.equal(torch.as_tensor(found.covariates.values), torch.arange(len(DATA)).repeat(DRAWS))
    which = torch.arange(DRAWS).repeat_interleave(len(DATA))
    assert draws.batch.log_joint_each(found, which).isfinite().all()


def test_the_program_draws_where_the_table_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = PosteriorModels(chain, DATA, CHAIN, order=1)
    monkeypatch.setattr("pyro_ksd.models.posterior.table_draws.ENTRIES", 1)
    expected = CASES["chain"].draws().draw_like(DATA, seeded_generator(1)).to_lists()
    assert draws.draw_like(DATA, seeded_generator(1)).to_lists() == expected


def test_stacked_models_know_the_draw_of_each_row() -> None:
    stacked = CASES["chain"].draws().stacked(2)
    assert isinstance(stacked, StackedModels)
    assert stacked.alphabet_size == SIZE
    assert not stacked.can_draw
    assert stacked.for_rows(2).for_rows(1).begin == 3
    found = stacked.for_rows(3).log_joint(DATA[:2])  # the last row of the second data set, the first of the third
    alone = [CASES["chain"].alone(index) for index in (1, 2)]
    same(found, torch.cat([alone[0].log_joint(DATA[:1]), alone[1].log_joint(DATA[1:2])]))


def test_stacked_models_name_the_sites_of_each_draw() -> None:
    def program(sequences: Any = None, lengths: Any = None, num_sequences: int | None = None) -> Any:
        limit = pyro.sample("limit", dist.Normal(0.0, 1.0))
        if num_sequences is not None:
            return torch.zeros(num_sequences, 1, dtype=torch.long), torch.ones(num_sequences, dtype=torch.long)
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("length", torch.where(lengths > limit, -math.inf, 0.0))
        return None

    draws = PosteriorModels(program, DATA, {"limit": torch.tensor([9.0, 1.0])})
    assert draws.stacked(2).impossible_sites(DATA[[0, 0, 1, 0]]) == ["", "", "", "length"]


@pytest.mark.parametrize(
    ("program", "values", "message"),
    [
        (MarkovSequence(torch.ones(4, 4) / 4), CHAIN, "expected a Pyro program .* found MarkovSequence, which has its"),
        (3, CHAIN, "expected a Pyro program with global sample sites to pass the draws to, found int"),
        (chain, {}, r"expected draws of some of the sites \['initial', 'moves'\], found none"),
        (
            lambda sequences, lengths: chain(sequences, lengths),
            CHAIN,
            "found one without the parameter num_sequences; let it draw",
        ),
    ],
)
def test_refuses(program: Any, values: dict[str, Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PosteriorModels(program, DATA, values)


def test_draws_that_are_all_the_same_are_reported() -> None:
    values = {name: value[:1].expand_as(value) for name, value in CHAIN.items()}
    with pytest.warns(UserWarning, match="expected draws that differ, found 3 times the same point; pass one point as"):
        PosteriorModels(chain, DATA, values)


def test_a_wrong_order_is_reported_once() -> None:
    with pytest.warns(UserWarning, match="the model is not of order 1") as caught:
        draws = PosteriorModels(hidden, DATA, HIDDEN, order=1)
    assert len(caught) == 1
    assert not isinstance(draws[0], TabulatedModel)
    assert isinstance(draws.batch, ProgramBatch)


def test_the_first_and_the_last_draw_are_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    examined: list[Tensor] = []
    checked = posterior_models.checked_program

    def noted(program: Any, data: Sequences, first: Any, marginal: Any, *others: Any) -> Any:
        examined.extend(point["initial"] for point in (first, *others))
        return checked(program, data, first, marginal, *others)

    monkeypatch.setattr(posterior_models, "checked_program", noted)
    draws = CASES["chain"].draws().values["initial"]
    assert torch.stack(examined).equal(draws)


def test_one_draw_may_be_asked_for() -> None:
    assert len(PosteriorModels(chain, DATA, CHAIN, num_draws=1)) == 1


def test_programs_of_covariates() -> None:
    def program(sequences: Tensor, lengths: Tensor, covariates: Any, num_sequences: int | None = None) -> Any:
        slope = pyro.sample("slope", dist.Normal(torch.tensor(0.0).double(), 1.0))
        with pyro.plate("sequences", len(covariates["dose"])):
            stop = dist.Geometric(torch.sigmoid(slope * covariates["dose"]))
            if num_sequences is not None:
                lengths = 1 + stop.sample().long()
                return torch.zeros(num_sequences, int(lengths.max())).long(), lengths
            pyro.sample("length", stop, obs=(lengths - 1).double())
            pyro.factor("symbols", -lengths * math.log(SIZE))
        return None

    dose = torch.tensor([0.5, -1.0, 2.0, 0.0, 1.0]).double()
    data = DATA.with_covariates({"dose": dose})
    slopes = torch.tensor([0.3, -0.7, 1.1]).double()
    models = PosteriorModels(program, data, {"slope": slopes})
    stop = torch.sigmoid(slopes[:, None] * dose)
    expected = stop.log() + (1 - stop).log() * (data.lengths - 1) - data.lengths * math.log(SIZE)
    torch.testing.assert_close(models.batch.log_joint(data), expected)
    torch.testing.assert_close(torch.stack([model.log_joint(data) for model in models]), expected)
    which = torch.tensor([2, 0, 1, 1, 2])
    torch.testing.assert_close(models.batch.log_joint_each(data, which), expected[which, torch.arange(5)])
    assert models.draw_like(data, torch.Generator().manual_seed(0)).covariates is not None


def test_every_draw_must_give_every_sequence_a_positive_probability() -> None:
    values = {name: value.clone() for name, value in CHAIN.items()}
    values["moves"][1, 1] = torch.tensor([0.5, 0.0, 0.5])  # the second draw never repeats the symbol 1
    models = PosteriorModels(chain, DATA, values)
    models.check_possible(Sequences.of([[0, 1], [2, 2], [1]], SIZE))
    with pytest.raises(ValueError, match="probability zero to 2 of 4 sequences") as caught:
        models.check_possible(Sequences.of([[0, 1], [1, 1], [2], [0, 1, 1, 2]], SIZE))
    assert "sequence 1, [1, 1], at site x_1; sequence 3, [0, 1, 1, 2], at site x_2" in str(caught.value)


def test_two_hundred_draws_are_taken_and_a_guide_has_the_seed_0() -> None:
    many = {"initial": simplex(450, SIZE), "moves": simplex(450, SIZE, SIZE)}
    assert len(PosteriorModels(chain, DATA, many)) == 200

    def guide(*arguments: Any) -> None:
        prior("initial", SIZE)
        prior("moves", SIZE, SIZE)

    drawn = [PosteriorModels(chain, DATA, guide, num_draws=2, **seed).values["moves"] for seed in ({}, {"seed": 0})]
    assert drawn[0].equal(drawn[1])
    assert not drawn[0].equal(PosteriorModels(chain, DATA, guide, num_draws=2, seed=1).values["moves"])


@pytest.mark.parametrize("shared", [0, 2**18])
@pytest.mark.parametrize("which", [slice(1, 3), torch.tensor([2, 0])])
def test_some_draws_have_the_tables_of_all(
    which: slice | torch.Tensor, shared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyro_ksd.models.posterior.posterior_models._SHARED_ENTRIES", shared)
    models = PosteriorModels(chain, DATA, CHAIN, order=1)
    expected = models.batch.log_joint(DATA)[which]
    calls: list[int] = []
    log_joint = ProgramBatch.log_joint

    def counted(self: ProgramBatch, words: Sequences) -> torch.Tensor:
        calls.append(len(words))
        return log_joint(self, words)

    monkeypatch.setattr(ProgramBatch, "log_joint", counted)
    torch.testing.assert_close(models.of_draws(which).batch.log_joint(DATA), expected)
    assert bool(calls) == (shared == 0)
