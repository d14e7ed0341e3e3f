# SPDX-License-Identifier: Apache-2.0
"""Programs under many draws at once give what each draw gives alone."""

from __future__ import annotations

import pyro
import pyro.distributions as dist
import pytest
import torch
from bayesian_chain import bayesian, chain, many, point, score
from pyro import poutine
from pyro_programs import FEW_SEQUENCES as DATA
from pyro_programs import SIZE, bernoulli, stops
from torch import Tensor

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.models.posterior.program_batch import ProgramBatch
from pyro_ksd.models.programs.vectorized import VectorizedProgram
from pyro_ksd.sequences.container import Sequences


def test_draws_all_at_once_and_one_by_one() -> None:
    model = VectorizedProgram(bayesian, DATA, point())
    draws = many(6)
    found = ProgramBatch(model, draws).log_joint(DATA)
    assert found.shape == (6, 5)
    for i in range(6):
        torch.testing.assert_close(found[i], chain(point(i)).log_joint(DATA))
    assert model.parameter_shapes == {"initial": torch.Size([3]), "moves": torch.Size([3, 3])}


def test_draws_of_a_program_that_cannot_be_vectorized_come_one_by_one() -> None:
    def looks_at_values(sequences: Tensor, lengths: Tensor) -> None:
        initial = pyro.sample("initial", dist.Dirichlet(torch.ones(SIZE, dtype=torch.double)))
        moves = pyro.sample("moves", dist.Dirichlet(torch.ones(SIZE, SIZE, dtype=torch.double)).to_event(1))
        if initial[0] > 2:
            raise AssertionError("not a probability")
        score(sequences, lengths, initial, moves)

    found = ProgramBatch(VectorizedProgram(looks_at_values, DATA, point()), many(3)).log_joint(DATA)
    for i in range(3):
        torch.testing.assert_close(found[i], chain(point(i)).log_joint(DATA))


def test_the_empty_sequence_under_each_draw() -> None:
    """Programs may look symbols up in tables even where there are none."""

    def program(sequences: Tensor, lengths: Tensor) -> None:
        rate = pyro.sample("rate", dist.Gamma(torch.tensor(2.0).double(), 1.0))
        with pyro.plate("sequences", len(lengths)):
            pyro.sample("length", dist.Poisson(rate), obs=lengths.double())
            weights = torch.arange(SIZE).double()[sequences] * (torch.arange(sequences.shape[1]) < lengths[:, None])
            pyro.factor("symbols", weights.sum(1))

    rates = torch.tensor([0.5, 3.0, 4.0], dtype=torch.double)
    batch = ProgramBatch(VectorizedProgram(program, DATA, {"rate": rates[0]}), {"rate": rates})
    assert batch.log_joint(Sequences.of([[]], SIZE))[:, 0].tolist() == pytest.approx((-rates).tolist())


def test_nothing_within_a_program_is_validated() -> None:
    seen: list[bool] = []

    def watched(sequences: Tensor, lengths: Tensor) -> None:
        seen.append(pyro.settings.get("validate_distributions_torch"))
        bayesian(sequences, lengths)

    with pyro.validation_enabled(True):
        batch = ProgramBatch(VectorizedProgram(watched, DATA, point()), many(3))
        batch.log_joint(DATA)
        batch.log_joint_each(DATA, torch.arange(len(DATA)) % 3)
    assert seen
    assert not any(seen)


def test_draws_of_an_enumerated_program() -> None:
    def mixture(sequences: Tensor, lengths: Tensor) -> None:
        weight = pyro.sample("weight", dist.Beta(torch.tensor(1.0).double(), 1.0))
        with pyro.plate("sequences", len(lengths), dim=-1):
            c = pyro.sample("c", dist.Bernoulli(weight), infer={"enumerate": "parallel"}).long()
            tables = torch.stack([point(0)["initial"], point(1)["initial"]])
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(tables[c]), obs=sequences[:, t])
                    pyro.sample(f"stop_{t}", bernoulli(), obs=stops(lengths, t))

    weights = torch.tensor([0.1, 0.5, 0.9], dtype=torch.double)
    program = VectorizedProgram(mixture, DATA, {"weight": weights[0]})
    found = ProgramBatch(program, {"weight": weights}).log_joint(DATA)
    for i in range(3):
        alone = VectorizedProgram(mixture, DATA, {"weight": weights[i]}).log_joint(DATA)
        torch.testing.assert_close(found[i], alone)
    assert not torch.allclose(found[0], found[2])


WHICH = torch.tensor([2, 0, 5, 5, 1])


@pytest.mark.parametrize("limit", [2**16, 8])
@pytest.mark.parametrize("few", [2**12, 0])
def test_each_sequence_under_its_own_draw(limit: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.models.posterior.program_batch.SCORED_PAIRS", limit)
    monkeypatch.setattr("pyro_ksd.models.posterior.program_batch._FEW", few)
    batch, edits = ProgramBatch(VectorizedProgram(bayesian, DATA, point()), many(6)), zs().edits(DATA)
    assert len(batch) == 6
    alone = [chain(point(draw)) for draw in WHICH.tolist()]
    expected = torch.cat([model.log_joint(DATA[row : row + 1]) for row, model in enumerate(alone)])
    torch.testing.assert_close(batch.log_joint_each(DATA, WHICH), expected)
    ratio = torch.stack([model.log_ratio(DATA, edits) for model in alone])
    found = batch.log_ratio_each(DATA, edits, WHICH)
    torch.testing.assert_close(found, ratio.gather(0, edits.owner[None])[0], rtol=1e-10, atol=1e-10)


def test_draws_run_at_once_where_the_program_allows_it() -> None:
    runs: list[int] = []

    def counted(sequences: Tensor, lengths: Tensor) -> None:
        runs.append(len(lengths))
        bayesian(sequences, lengths)

    batch = ProgramBatch(VectorizedProgram(counted, DATA, point()), many(6))
    runs.clear()
    batch.log_joint(DATA)
    assert runs == [5]
    runs.clear()
    batch.log_joint_each(DATA, WHICH)
    assert len(runs) == 1
    runs.clear()
    batch.log_joint_each(DATA[torch.arange(5).repeat(20)], WHICH.repeat(20))
    assert len(runs) == 1
    assert 1 < runs[0] < 20  # blocks of several sequences, and several blocks for a draw


@pytest.mark.parametrize("each", [True, False])
def test_nan_of_one_draw_is_named_by_its_site(each: bool) -> None:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        weight = pyro.sample("weight", dist.Normal(0.0, 1.0))
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("score", weight * lengths)

    weights = torch.tensor([-1.0, torch.nan])
    batch = ProgramBatch(VectorizedProgram(program, DATA, {"weight": weights[0]}), {"weight": weights})
    with pytest.raises(ValueError, match="site 'score': found NaN"):
        batch.log_joint_each(DATA, torch.tensor([0, 0, 1, 0, 0])) if each else batch.log_joint(DATA)
