# SPDX-License-Identifier: Apache-2.0
"""Programs of sequences with covariates: against plain Python, through every part of a check."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas
import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from scipy.stats import binom
from torch import Tensor

from pyro_ksd import MarkovSequence, Sequences, ksd_check, ksd_compare, likelihood_ratio_check, mmd_check
from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.fit_tests.null_draws import parametric_bootstrap
from pyro_ksd.models import RefitSVI, SequenceModel, constrain, with_sampler
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.length_distribution import has_length_distribution
from pyro_ksd.models.posterior.posterior_models import PosteriorModels
from pyro_ksd.sequences.covariates import Covariates
from pyro_ksd.stein.views import default_views
from pyro_ksd.stein.zanella_sampler import zanella_sample

SIZE = 3
# A group of sequences stays, the other moves on; the longer the dose, the earlier sequences stop.
MOVES = torch.tensor([[[7, 2, 1], [1, 7, 2], [2, 1, 7]], [[1, 2, 7], [7, 1, 2], [2, 7, 1]]]).double() / 10


def stop_of(dose: Any) -> Any:
    return 0.1 + 0.3 * dose


def grouped(sequences: Any, lengths: Any, covariates: Any, num_sequences: int | None = None) -> Any:
    """A chain with the moves of its group, which stops as its dose says."""
    group, stop = covariates["group"], stop_of(covariates["dose"])
    count = len(group)
    uniform = torch.full((count, SIZE), 1 / SIZE, dtype=torch.double)
    with pyro.plate("sequences", count):
        if num_sequences is not None:
            assert num_sequences == count
            return generated(uniform, MOVES[group], stop)
        for t in range(sequences.shape[1]):
            probs = uniform if t == 0 else MOVES[group, sequences[:, t - 1]]
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])
                pyro.sample(f"stop_{t}", dist.Bernoulli(stop), obs=(lengths == t + 1).double())
    return None


def generated(initial: Tensor, moves: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
    """Sequences of chains, each with its own moves ``[N, S, S]`` and stop ``[N]``, by torch's global generator."""
    rows = torch.arange(len(initial))
    symbols = [torch.multinomial(initial, 1)[:, 0]]
    lengths = torch.zeros_like(rows)
    alive = torch.ones_like(rows, dtype=torch.bool)
    while alive.any():
        lengths = lengths + alive
        alive = alive & (torch.rand(len(rows)) >= stop)
        symbols.append(torch.multinomial(moves[rows, symbols[-1]], 1)[:, 0])
    return torch.stack(symbols, 1), lengths


def log_p(x: list[int], group: int, dose: float) -> float:
    """The same by plain Python."""
    if not x:
        return -math.inf
    total = -math.log(SIZE) + math.log(stop_of(dose)) + (len(x) - 1) * math.log(1 - stop_of(dose))
    return total + sum(math.log(float(MOVES[group, a, b])) for a, b in pairwise(x))


def known(count: int) -> dict[str, Tensor]:
    rows = torch.arange(count)
    return {"group": rows % 2, "dose": (rows % 5).double() / 5}


def drawn(count: int, seed: int, *, swapped: bool = False) -> Sequences:
    covariates = known(count)
    true = {**covariates, "group": 1 - covariates["group"]} if swapped else covariates
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        tokens, lengths = grouped(None, None, true, num_sequences=count)
    return Sequences.of(tokens, SIZE, lengths=lengths).with_covariates(covariates)


LISTS = [[0, 1, 1, 2], [2], [1, 1, 0], [0, 0], [2, 1, 0, 1, 1], [0, 1, 1, 2], [2, 2]]
DATA = Sequences.of(LISTS, SIZE).with_covariates(known(len(LISTS)))
GROUPS, DOSES = (values.tolist() for values in known(len(LISTS)).values())


def test_log_joints_against_plain_python() -> None:
    expected = [log_p(x, g, d) for x, g, d in zip(LISTS, GROUPS, DOSES, strict=True)]
    assert as_model(grouped, DATA).log_joint(DATA).tolist() == pytest.approx(expected, rel=1e-12)


def assert_ratios(model: SequenceModel, truth: Callable[[list[int], int], float], data: Sequences = DATA) -> None:
    """Log-ratios of all edits against a log-joint by plain Python, of a sequence and the row of its covariates."""
    edits = zs().edits(data)
    found = model.log_ratio(data, edits).tolist()
    for ratio, owner, y in zip(found, edits.owner.tolist(), edits.apply(data).to_lists(), strict=True):
        codes: list[int] = y  # type: ignore[assignment]
        expected = truth(codes, owner) - truth(LISTS[owner], owner)
        assert ratio == pytest.approx(expected, rel=1e-10, abs=1e-10), (owner, y)


def test_log_ratios_of_all_edits_against_plain_python() -> None:
    assert_ratios(as_model(grouped, DATA), lambda x, row: log_p(x, GROUPS[row], DOSES[row]))


def test_log_ratios_do_not_depend_on_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = as_model(grouped, DATA)
    edits = zs().edits(DATA)
    expected = model.log_ratio(DATA, edits)
    for name, size in (("models.evaluation.EDITED_SEQUENCES", 7), ("models.chunked_model.EVALUATED_SEQUENCES", 5)):
        monkeypatch.setattr(f"pyro_ksd.{name}", size)
        torch.testing.assert_close(model.log_ratio(DATA, edits), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "covariates",
    [
        torch.arange(len(LISTS)) % 2,
        np.arange(len(LISTS)) % 2,
        pandas.DataFrame({"group": np.arange(len(LISTS)) % 2}),
        {"group": [row % 2 for row in range(len(LISTS))]},
    ],
)
def test_every_form_of_covariates(covariates: Any) -> None:
    def program(x: Any, covariates: Any) -> None:
        group = covariates if isinstance(covariates, Tensor) else covariates["group"]
        with pyro.plate("sequences", len(x)):
            pyro.factor("score", (x == 1).sum(1) * group.double() - 2.0 * (x >= 0).sum(1))

    data = Sequences.of(LISTS, SIZE).with_covariates(covariates)
    assert_ratios(as_model(program, data), lambda x, row: x.count(1) * (row % 2) - 2.0 * len(x), data)


def test_parameters_of_each_group() -> None:
    def program(sequences: Any, lengths: Any, group: Any) -> None:
        with pyro.plate("groups", 2):
            weight = pyro.sample("weight", dist.Normal(torch.zeros(2).double(), 1.0))
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("score", weight[group] * lengths)

    data = Sequences.of(LISTS, SIZE).with_covariates(torch.tensor(GROUPS))
    weights = torch.tensor([-2.0, -3.0]).double()
    model = as_model(program, data, parameters={"weight": weights})
    assert_ratios(model, lambda x, row: float(weights[GROUPS[row]]) * len(x), data)


def test_enumerated_states_with_covariates() -> None:
    def program(sequences: Any, lengths: Any, bias: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            z = pyro.sample("z", dist.Bernoulli(bias), infer={"enumerate": "parallel"}).long()
            for t in pyro.markov(range(sequences.shape[1])):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(MOVES[0, z]), obs=sequences[:, t])
            pyro.sample("length", dist.Poisson(torch.tensor(2.0).double()), obs=lengths.double())

    bias = torch.linspace(0.1, 0.9, len(LISTS)).double()

    def truth(x: list[int], row: int) -> float:
        p = float(bias[row])
        likelihoods = [math.prod(float(MOVES[0, z, a]) for a in x) for z in (0, 1)]
        return (
            math.log((1 - p) * likelihoods[0] + p * likelihoods[1]) + len(x) * math.log(2.0) - math.lgamma(len(x) + 1)
        )

    data = Sequences.of(LISTS, SIZE).with_covariates(bias)
    assert_ratios(as_model(program, data), truth, data)


def test_the_empty_sequence_depends_on_its_covariates() -> None:
    def program(sequences: Any, lengths: Any, rate: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("length", dist.Poisson(rate), obs=lengths.double())

    data = Sequences.of([[], [0], [], [1, 1]], SIZE).with_covariates(torch.tensor([1.0, 2.0, 3.0, 4.0]).double())
    model = as_model(program, data)
    expected = [-1.0, math.log(2.0) - 2.0, -3.0, math.log(8.0) - 4.0]
    assert model.log_joint(data).tolist() == pytest.approx(expected)
    assert model.log_joint(data[[2]]).tolist() == pytest.approx([-3.0])


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("bootstrap", ["parametric", "wild"])
def test_checks_accept_the_true_model_and_reject_a_wrong_one(bootstrap: Any, swapped: bool) -> None:
    options: Any = {"num_bootstrap": 200, "localize": False, "progress": False}
    check = ksd_check(grouped, drawn(60, 3, swapped=swapped), bootstrap=bootstrap, **options)
    p_value = float(check["ksd"]["p_value_overall"])
    assert p_value < 0.03 if swapped else p_value > 0.05
    assert check["ksd"].attrs["kind"] == bootstrap


@pytest.mark.slow
@pytest.mark.parametrize(("bootstrap", "size"), [("parametric", 20), ("wild", 100)])
def test_level(bootstrap: Any, size: int) -> None:
    runs, level = 300, 0.05
    rejected = 0
    for run in range(runs):
        check = ksd_check(
            grouped, drawn(size, 1000 + run), bootstrap=bootstrap, num_bootstrap=99, seed=run, progress=False
        )
        rejected += float(check["ksd"]["p_value_overall"]) <= level
    print(f"\n{bootstrap} with covariates, n = {size}: {rejected} of {runs}")
    assert rejected <= binom.ppf(0.999, runs, level)


def test_null_draws_are_for_the_covariates_of_the_data() -> None:
    # Sequences of one group are short and those of the other long. Drawn without regard to their group they would be
    # as different from the model as they could be.
    seen: list[tuple[list[int], list[int]]] = []

    def program(sequences: Any, lengths: Any, group: Any, num_sequences: int | None = None) -> Any:
        if num_sequences is not None:
            lengths = 1 + 2 * group
            seen.append((group.tolist(), lengths.tolist()))
            return torch.zeros(num_sequences, 3, dtype=torch.long), lengths
        allowed = (lengths - 1 - 2 * group).abs() <= 1
        with pyro.plate("sequences", len(group)):
            return pyro.factor("length", torch.where(allowed, -lengths.double(), -torch.inf))

    group = torch.tensor([0, 1, 1, 0, 1])
    data = Sequences.of([[0], [0, 1, 2], [1, 1], [1, 0], [2, 1, 1, 1]], SIZE).with_covariates(group)
    model = as_model(program, data)
    null = parametric_bootstrap(
        model, 5, default_views(), 70, torch.Generator().manual_seed(0), covariates=data.covariates
    )
    assert null.statistic.shape == (70, len(default_views()))
    assert [groups for groups, _ in seen] == [group.tolist() * 64, group.tolist() * 6]
    with pytest.raises(ValueError, match="covariates: expected one row for each of the 4 sequences, found 5"):
        parametric_bootstrap(model, 4, default_views(), 7, torch.Generator(), covariates=data.covariates)


def test_draws_carry_their_covariates() -> None:
    model = as_model(grouped, DATA)
    assert DATA.covariates is not None
    found = model.draw_given(DATA.covariates.repeated(40), torch.Generator().manual_seed(0))
    assert found.covariates is not None
    assert found.covariates.values["group"].tolist() == GROUPS * 40  # type: ignore[call-overload]
    stays = (found.tokens[:, 1:] == found.tokens[:, :-1]) & found.mask[:, 1:]
    share = [
        float(
            stays[found.covariates.values["group"] == g].sum()
            / found.mask[:, 1:][found.covariates.values["group"] == g].sum()
        )  # type: ignore[call-overload]
        for g in (0, 1)
    ]
    assert share[0] == pytest.approx(0.7, abs=0.08)
    assert share[1] == pytest.approx(0.1, abs=0.08)
    with pytest.raises(
        ValueError, match="draw: expected covariates to draw for, as the program takes them; call draw_given"
    ):
        model.draw(3)


def test_a_model_without_covariates_ignores_them() -> None:
    chain = MarkovSequence.from_transitions(torch.ones(SIZE) / SIZE, MOVES[0].float(), stop=0.3)
    plain = Sequences(DATA.tokens, DATA.lengths, SIZE)
    for data in (DATA, plain):
        check = ksd_check(chain, data, num_bootstrap=50, bootstrap="parametric", progress=False)
        assert float(check["ksd"]["p_value_overall"]) == pytest.approx(
            float(
                ksd_check(chain, plain, num_bootstrap=50, bootstrap="parametric", progress=False)["ksd"][
                    "p_value_overall"
                ]
            )
        )

    def two(sequences: Any, lengths: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("length", -2.0 * lengths.double())

    assert as_model(two, DATA).log_joint(DATA).tolist() == [-2.0 * len(x) for x in LISTS]


class Own(SequenceModel):
    """A user's own model that reads covariates but draws without them."""

    alphabet_size = SIZE

    def log_joint(self, sequences: Sequences) -> Tensor:
        assert sequences.covariates is not None
        dose: Tensor = sequences.covariates.values["dose"]  # type: ignore[call-overload]
        return -(1.0 + dose) * sequences.lengths

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        return Sequences.of(torch.zeros(num_sequences, 1, dtype=torch.long), SIZE)


def test_draws_that_ignore_covariates_are_refused_where_the_model_does_not() -> None:
    assert_ratios(Own(), lambda x, row: -(1.0 + DOSES[row]) * len(x))
    words = "expected a model that ignores covariates, found Own, whose probabilities change"
    with pytest.warns(UserWarning, match=words), pytest.raises(ValueError, match=words):
        ksd_check(Own(), DATA, bootstrap="parametric", progress=False)


def test_samplers_get_the_covariates() -> None:
    def sampler(num_sequences: int, generator: torch.Generator, covariates: Any) -> Sequences:
        assert len(covariates["group"]) == num_sequences
        return Sequences.of(covariates["group"][:, None], SIZE)

    model = with_sampler(as_model(grouped, DATA), sampler)
    assert DATA.covariates is not None
    assert model.draw_given(DATA.covariates).tokens[:, 0].tolist() == GROUPS
    blind = with_sampler(as_model(grouped, DATA), lambda count, generator: DATA[torch.arange(count) % len(DATA)])
    with pytest.raises(ValueError, match="or pass a sampler with the parameter covariates"):
        blind.draw_given(DATA.covariates)


def test_constrained_draws_are_one_for_each_row() -> None:
    model = constrain(as_model(grouped, DATA), lambda x: x.lengths == 2)
    assert DATA.covariates is not None
    covariates = DATA.covariates.repeated(60)
    found = model.draw_given(covariates, torch.Generator().manual_seed(0))
    assert found.lengths.unique().tolist() == [2]
    assert found.covariates is not None
    assert found.covariates.rows.equal(covariates.rows)
    group: Tensor = found.covariates.values["group"]  # type: ignore[call-overload]
    stays = found.tokens[:, 0] == found.tokens[:, 1]
    assert float(stays[group == 0].double().mean()) > 0.6
    assert float(stays[group == 1].double().mean()) < 0.2
    never = constrain(as_model(grouped, DATA), lambda x: x.lengths < 0, max_proposals=500)
    with pytest.raises(ValueError, match="found none for 7 of them in 504 proposals of the model; raise max_proposals"):
        never.draw_given(DATA.covariates)


def test_posterior_draws_are_batched_with_covariates() -> None:
    def program(sequences: Any, lengths: Any, covariates: Any, num_sequences: int | None = None) -> Any:
        slope = pyro.sample("slope", dist.Normal(torch.tensor(0.0).double(), 1.0))
        stop = torch.sigmoid(slope * covariates["dose"] - 1.0)
        with pyro.plate("sequences", len(stop)):
            if num_sequences is not None:
                uniform = torch.full((num_sequences, SIZE), 1 / SIZE, dtype=torch.double)
                return generated(uniform, MOVES[covariates["group"]], stop)
            pyro.factor("stop", (lengths - 1) * (1 - stop).log() + stop.log())
            pyro.factor("never empty", torch.where(lengths > 0, 0.0, -math.inf))
            return pyro.factor("score", -math.log(SIZE) * lengths.double())

    draws = torch.tensor([-1.0, 0.5, 2.0]).double()
    models = PosteriorModels(program, DATA, {"slope": draws})
    expected = [
        [
            (len(x) - 1) * math.log(1 - s) + math.log(s) - math.log(SIZE) * len(x)
            for x, dose in zip(LISTS, DOSES, strict=True)
            for s in [1 / (1 + math.exp(1.0 - float(slope) * dose))]
        ]
        for slope in draws
    ]
    torch.testing.assert_close(
        models.batch.log_joint(DATA), torch.tensor(expected, dtype=torch.double), rtol=1e-10, atol=1e-10
    )
    which = torch.tensor([2, 0, 1, 1, 0, 2, 2])
    each = models.batch.log_joint_each(DATA, which)
    torch.testing.assert_close(
        each, torch.tensor(expected, dtype=torch.double)[which, torch.arange(7)], rtol=1e-10, atol=1e-10
    )
    many = DATA[torch.arange(70) % 7]  # several sequences of a draw together
    which = torch.arange(70) % 3
    each = models.batch.log_joint_each(many, which)
    torch.testing.assert_close(each, torch.tensor(expected, dtype=torch.double)[which, torch.arange(70) % 7])
    replicates = models.draw_like(DATA, torch.Generator().manual_seed(0))
    assert replicates.covariates is not None
    assert replicates.covariates.values["group"].tolist() == GROUPS * 3  # type: ignore[call-overload]
    check = ksd_check(program, drawn(20, 0), posterior={"slope": draws}, progress=False)
    assert 0 < float(check["ksd"]["p_value_overall"]) <= 1


def test_the_empty_sequence_of_posterior_draws_depends_on_its_covariates() -> None:
    def program(sequences: Any, lengths: Any, rate: Any, num_sequences: int | None = None) -> Any:
        factor = pyro.sample("factor", dist.Exponential(torch.tensor(1.0).double()))
        with pyro.plate("sequences", len(rate)):
            lengths = pyro.sample(
                "length", dist.Poisson(factor * rate), obs=None if lengths is None else lengths.double()
            )
        return torch.zeros(len(rate), int(lengths.max()), dtype=torch.long), lengths.long()

    data = Sequences.of([[], [0], []], 1).with_covariates(torch.tensor([1.0, 2.0, 3.0]).double())
    batch = PosteriorModels(program, data, {"factor": torch.tensor([1.0, 2.0]).double()}).batch
    found = batch.log_joint(data)
    assert found[:, [0, 2]].tolist() == [pytest.approx([-1.0, -3.0]), pytest.approx([-2.0, -6.0])]
    assert batch.log_joint_each(data, torch.tensor([1, 0, 0]))[[0, 2]].tolist() == pytest.approx([-2.0, -3.0])


def test_refits_get_the_covariates() -> None:
    def program(sequences: Any, lengths: Any, dose: Any, num_sequences: int | None = None) -> Any:
        slope = pyro.param("slope", torch.tensor(0.0).double())
        stop = torch.sigmoid(slope * dose)
        with pyro.plate("sequences", len(dose)):
            if num_sequences is not None:
                uniform = torch.full((num_sequences, SIZE), 1 / SIZE, dtype=torch.double)
                return generated(uniform, MOVES[torch.zeros(num_sequences, dtype=torch.long)], stop)
            pyro.factor("never empty", torch.where(lengths > 0, 0.0, -math.inf))
            return pyro.factor("stop", (lengths - 1) * (1 - stop).log() + stop.log() - math.log(SIZE) * lengths)

    # Long sequences where the dose is -1, short ones where it is 1.
    data = Sequences.of([[0], [1, 2, 0, 1, 1], [2], [1, 1, 0, 2]] * 3, SIZE)
    data = data.with_covariates(torch.tensor([1.0, -1.0, 1.0, -1.0]).double().repeat(3))
    fitted = RefitSVI(num_steps=200)(program, data)
    assert float(fitted["slope"]) > 1.0
    check = ksd_check(program, data, refit=RefitSVI(num_steps=30), num_bootstrap=3, progress=False)
    assert check["ksd"].attrs["kind"] == "refit"


def test_lengths_are_examined_for_the_covariates_of_one_sequence() -> None:
    assert has_length_distribution(as_model(grouped, DATA), DATA)

    def endless(sequences: Any, lengths: Any, covariates: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("score", -math.log(SIZE) * lengths.double() + covariates["dose"])

    assert not has_length_distribution(as_model(endless, DATA), DATA)

    def falling(sequences: Any, lengths: Any, covariates: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("score", -math.log(SIZE) * lengths.double() - 5.0 * covariates["dose"])

    assert not has_length_distribution(as_model(falling, DATA), DATA)


def test_the_order_is_refused() -> None:
    with pytest.raises(ValueError, match="order: expected a model without covariates, found VectorizedProgram"):
        ksd_check(grouped, DATA, order=1, progress=False)


def test_comparison_and_baselines() -> None:
    data = drawn(40, 5)

    def swapped(sequences: Any, lengths: Any, covariates: Any) -> None:
        grouped(sequences, lengths, {**covariates, "group": 1 - covariates["group"]})

    found = ksd_compare({"grouped": grouped, "swapped": swapped}, data, progress=False)["ksd_compare"]
    assert found["rank"].sel(view="overall").values.tolist() == [0, 1]
    assert float(mmd_check(grouped, data, num_bootstrap=50, progress=False)["ksd"]["p_value_overall"]) > 0.02
    with pytest.raises(ValueError, match="num_samples: expected a multiple of the 40 sequences, so that samples have"):
        mmd_check(grouped, data, num_samples=50, num_bootstrap=5, progress=False)
    ratio = likelihood_ratio_check(grouped, data, alternative=1, pseudocount=0.5, num_bootstrap=20, progress=False)
    assert 0 < float(ratio["ksd"]["p_value_overall"]) <= 1


def test_zanella_processes_keep_their_covariates() -> None:
    found = zanella_sample(as_model(grouped, DATA), 14, start=DATA, time=3.0, progress=False).sequences
    assert found.covariates is not None
    assert found.covariates.values["group"].tolist() == GROUPS * 2  # type: ignore[call-overload]


def test_a_program_that_mixes_up_rows_is_refused() -> None:
    def program(sequences: Any, lengths: Any, dose: Any) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("length", -(dose - dose.mean()) * lengths - 2.0 * lengths)

    with pytest.raises(ValueError, match="changes with the other sequences of the batch"):
        as_model(program, DATA.with_covariates(torch.arange(7.0)))


def test_a_program_that_needs_covariates_says_so() -> None:
    with pytest.raises(ValueError, match="expected data with covariates for the parameter 'covariates' of the program"):
        ksd_check(grouped, Sequences(DATA.tokens, DATA.lengths, SIZE), progress=False)
    with pytest.raises(ValueError, match=r"the program failed with KeyError.*and the lengths, and the covariates"):
        as_model(grouped, DATA.with_covariates({"other": GROUPS}))


def test_covariates_are_no_option_of_the_bootstrap_unless_they_are_covariates() -> None:
    with pytest.raises(ValueError, match="covariates: expected those of sequences"):
        parametric_bootstrap(as_model(grouped, DATA), 7, default_views(), 3, torch.Generator(), covariates=[1])  # type: ignore[arg-type]
    assert isinstance(DATA.covariates, Covariates)
