# SPDX-License-Identifier: Apache-2.0
"""Zanella processes against the model, and against the matrix exponential of their rates."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import oracle
import pytest
import torch
from example_chains import autoregressive
from example_models import Unsampled
from scipy.stats import chisquare
from torch import Tensor

from pyro_ksd.edits.neighborhoods import Substitutions, zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.fit_tests.absolute import goodness_of_fit
from pyro_ksd.models import LinearChainMRF
from pyro_ksd.models.wrappers.constrained import constrain
from pyro_ksd.models.wrappers.sampler import with_sampler
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.views import default_views
from pyro_ksd.stein.zanella_sampler import ZanellaSamples, zanella_sample

SIZE, LONGEST = 2, 3

GENERATOR = torch.Generator().manual_seed(0)

PAIRWISE = 0.5 * torch.randn(SIZE, SIZE, dtype=torch.double, generator=GENERATOR)

UNARY = torch.randn(SIZE, dtype=torch.double, generator=GENERATOR)

MODEL = Unsampled(LinearChainMRF(PAIRWISE, UNARY, max_length=LONGEST))

LISTS = [x for length in range(1, LONGEST + 1) for x in product(range(SIZE), repeat=length)]

EXACT = MODEL.log_joint(Sequences.of(LISTS, SIZE)).exp()

START = Sequences.of([[0], [1, 1, 0], [1]], SIZE)


def run(number: int = 50, **options: Any) -> ZanellaSamples:
    return zanella_sample(MODEL, number, **{"start": START, "time": 5.0, "progress": False, **options})


def counts(found: Sequences) -> Tensor:
    index = {x: row for row, x in enumerate(LISTS)}
    rows = torch.tensor([index[tuple(x)] for x in found.to_lists()])  # type: ignore[index]
    return rows.bincount(minlength=len(LISTS))


def generator_matrix(balancing: Any, **around: Any) -> Tensor:
    """The rates of the jumps between all sequences, minus their sums on the diagonal: ``[N, N]``."""
    log_p = dict(zip(LISTS, EXACT.log().tolist(), strict=True))
    rates = torch.zeros(len(LISTS), len(LISTS), dtype=torch.double)
    for (i, x), (j, y) in product(enumerate(LISTS), repeat=2):
        if y in oracle.neighbors(x, SIZE, **around):
            rates[i, j] = balancing(log_p[y] - log_p[x])
    return rates - rates.sum(1).diag()


@pytest.mark.parametrize(
    ("balancing", "g"), [("barker", oracle.barker), ("mpf", oracle.mpf), ("metropolis", oracle.metropolis)]
)
def test_final_states_follow_the_model(balancing: str, g: Any) -> None:
    number, time = 5_000, 20.0
    law = torch.linalg.matrix_exp(time * generator_matrix(g))
    torch.testing.assert_close(law, EXACT.expand_as(law), rtol=1e-3, atol=0)  # long enough
    found = run(number, time=time, balancing=balancing)
    assert chisquare(counts(found.sequences), number * EXACT).pvalue > 1e-3


@pytest.mark.parametrize("locations", [None, 1])
def test_states_on_the_way_follow_the_jump_process(locations: int | None) -> None:
    """After a short time the law is that of the process started at one sequence, exp(tQ), and not yet the model."""
    number, time = 5_000, 0.4
    rates = generator_matrix(oracle.barker, locations=locations)
    found = run(number, time=time, start=Sequences.of([[0]], SIZE), neighborhood=zs(locations))
    law = torch.linalg.matrix_exp(time * rates)[LISTS.index((0,))]
    observed = counts(found.sequences)
    assert chisquare(observed, number * law).pvalue > 1e-3
    assert chisquare(observed, number * EXACT).pvalue < 1e-9

    halfway = torch.linalg.matrix_exp(time / 2 * rates)[LISTS.index((0,))]
    lengths = torch.tensor([len(x) for x in LISTS])
    by_length = torch.zeros(LONGEST + 1, dtype=torch.double).index_add_(0, lengths, halfway)[1:]
    recorded = found.lengths[:, 0].bincount(minlength=LONGEST + 1)[1:]
    assert chisquare(recorded, number * by_length).pvalue > 1e-3


def test_jumps_are_counted() -> None:
    """From a state of the model, the mean number of jumps is the time times the mean rate."""
    number, time = 5_000, 2.0
    rates = -generator_matrix(oracle.barker).diagonal()
    start = LinearChainMRF(PAIRWISE, UNARY, max_length=LONGEST).draw(number, torch.Generator().manual_seed(1))
    jumps = run(number, time=time, start=start).jumps.double()
    assert float(jumps.mean()) == pytest.approx(time * float(EXACT @ rates), abs=4 * float(jumps.std()) / number**0.5)


def test_records_end_at_the_final_states() -> None:
    found = run(300)
    assert found.log_joint.shape == found.lengths.shape == (300, 50)
    assert torch.equal(found.lengths[:, -1], found.sequences.lengths)
    torch.testing.assert_close(found.log_joint[:, -1], MODEL.log_joint(found.sequences), rtol=0, atol=1e-12)
    assert (found.lengths[:, 0] != found.lengths[:, -1]).any()


def test_each_process_has_its_start() -> None:
    found = run(7, time=1e-9)
    assert found.sequences.to_lists() == (START.to_lists() * 3)[:7]
    assert found.jumps.tolist() == [0] * 7


def test_chunks_of_processes_follow_the_model_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.stein.zanella_sampler.EDITS", 500)
    found = run(1_000, time=10.0)
    assert chisquare(counts(found.sequences), 1_000 * EXACT).pvalue > 1e-3


def test_a_constrained_model_and_a_state_without_neighbors() -> None:
    alone = constrain(MODEL, lambda x: x.lengths == 2)
    found = zanella_sample(alone, 20, start=Sequences.of([[0, 1]], SIZE), time=5.0, progress=False)
    assert found.sequences.lengths.tolist() == [2] * 20
    stuck = constrain(MODEL, lambda x: (x.lengths == 1) & (x.tokens.sum(1) == 0))
    found = zanella_sample(stuck, 20, start=Sequences.of([[0]], SIZE), time=5.0, progress=False)
    assert found.sequences.to_lists() == [[0]] * 20
    assert found.jumps.sum() == 0


def test_symbols_keep_their_names() -> None:
    found = run(10, start=Sequences.of(["a", "ba"], alphabet="ab"))
    assert found.sequences.alphabet == ("a", "b")


def test_mixed_processes_pass() -> None:
    found = run(200, time=400.0)
    assert found.mixed
    assert max(found.rhat.values()) < 1.01
    assert min(found.ess.values()) > 5_000
    assert str(found).startswith("200 processes mixed until time 400 (")
    assert f"at least {int(found.jumps.min())}; log p: R-hat 1.0" in str(found)


def test_unmixed_processes_are_flagged() -> None:
    # Symbols that stick together, started from symbols that alternate.
    model = LinearChainMRF(2.0 * torch.eye(SIZE, dtype=torch.double), max_length=30)
    far = Sequences.of([[0, 1] * 15], SIZE)
    found = zanella_sample(model, 100, start=far, time=0.5, progress=False)
    assert found.rhat["log p"] > 1.1
    assert not found.mixed
    assert str(found).startswith("100 processes did not mix until time 0.5 (")


def test_processes_that_never_moved_are_flagged() -> None:
    found = run(100, time=1e-9, start=START[:1])
    assert all(map(math.isnan, [*found.rhat.values(), *found.ess.values()]))
    assert not found.mixed
    assert "log p never changed; length never changed" in str(found)


def test_lengths_that_cannot_change() -> None:
    fixed = run(100, time=800.0, start=START[1:2], neighborhood=Substitutions())
    assert math.isnan(fixed.rhat["length"])
    assert fixed.mixed
    several = run(10, time=800.0, neighborhood=Substitutions())
    assert several.rhat["length"] == math.inf
    assert not several.mixed


@pytest.mark.parametrize(("log_p_drifts", "length_drifts"), [(False, False), (True, False), (False, True)])
def test_one_drifting_quantity_is_enough(log_p_drifts: bool, length_drifts: bool) -> None:
    drift, noise = torch.linspace(0, 5, 50), autoregressive(0.0, 100, 50)
    log_joint = noise + drift * log_p_drifts
    lengths = (10 * (5 + noise + drift * length_drifts)).long()
    found = ZanellaSamples(START, 1.0, torch.ones(100), log_joint, lengths)
    assert (found.rhat["log p"] > 1.05) == log_p_drifts
    assert (found.rhat["length"] > 1.05) == length_drifts
    assert found.mixed == (not log_p_drifts and not length_drifts)


def test_seeds_and_the_global_stream() -> None:
    state = torch.get_rng_state()
    one, same, other = run(seed=1), run(seed=1), run(seed=2)
    by_generator = run(seed=torch.Generator().manual_seed(1))
    assert torch.equal(torch.get_rng_state(), state)
    assert one.sequences.to_lists() == same.sequences.to_lists() == by_generator.sequences.to_lists()
    assert torch.equal(one.log_joint, same.log_joint)
    assert not torch.equal(one.log_joint, other.log_joint)


def test_a_generator_moves_on() -> None:
    generator = torch.Generator().manual_seed(1)
    assert run(seed=generator).sequences.to_lists() != run(seed=generator).sequences.to_lists()


def test_progress_bar(terminal: pytest.CaptureFixture[str]) -> None:
    run(5)
    assert terminal.readouterr().err == ""
    run(5, progress=True)
    assert "Zanella processes: 100%" in terminal.readouterr().err


def test_parametric_bootstrap_of_a_model_without_a_sampler() -> None:
    assert not MODEL.can_draw
    model = with_sampler(MODEL, lambda n, g: run(n, time=10.0, seed=g).sequences)
    right = LinearChainMRF(PAIRWISE, UNARY, max_length=LONGEST).draw(50, torch.Generator().manual_seed(2))
    wrong = LinearChainMRF(-PAIRWISE, -UNARY, max_length=LONGEST).draw(50, torch.Generator().manual_seed(2))
    found = [goodness_of_fit(model, data, default_views(), num_bootstrap=199) for data in (right, wrong)]
    assert [result.kind for result in found] == ["parametric"] * 2
    assert found[0].p_value_overall > 0.05
    assert found[1].p_value_overall <= 0.03


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": 0.0}, r"time: expected a finite number above 0, found 0.0"),
        ({"time": -1.0}, r"time: expected a finite number above 0, found -1.0"),
        ({"time": math.inf}, r"time: expected a finite number above 0, found inf"),
        ({"time": math.nan}, r"time: expected a finite number above 0, found nan"),
        ({"number": 0}, r"num_sequences: expected an integer of at least 1, found 0"),
        ({"start": START[:0]}, r"start: expected at least one sequence, found none"),
        (
            {"start": Sequences.of([[0], [], [0] * 4], SIZE)},
            r"start: the model gives probability zero to 2 of 3 sequences: sequence 1, \[\]; .*; leave them out",
        ),
        ({"start": Sequences.of([[2]], 3)}, r"expected sequences over the model's 2 symbols, found an alphabet of 3"),
        ({"balancing": "foo"}, r"balancing: expected one of .* found 'foo'"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(**options)


def test_a_model_that_gives_nan() -> None:
    class Broken(Unsampled):
        def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
            ratio = super().log_ratio(sequences, edits)
            return ratio.masked_fill(edits.new_lengths(sequences.lengths) == 3, torch.nan)

    start = Sequences.of([[0], [0, 0]], SIZE)
    message = r"found NaN where \[0, 0\] becomes \[0, 0, 0\]; the model gives NaN there"
    with pytest.raises(ValueError, match=message):
        zanella_sample(Broken(MODEL), 2, start=start, time=1.0, progress=False)


@pytest.mark.parametrize(("drift", "low", "high"), [(0.2, 0.99, 1.008), (0.8, 1.012, 1.03)])
def test_processes_have_mixed_below_an_r_hat_of_one_percent(drift: float, low: float, high: float) -> None:
    log_joint = autoregressive(0.0, 400, 50) + torch.linspace(0, drift, 50)
    found = ZanellaSamples(START, 1.0, torch.ones(400), log_joint, torch.ones(400, 50).long())
    assert low < found.rhat["log p"] < high
    assert found.mixed == (drift < 0.5)


def test_progress_is_shown_by_default(terminal: pytest.CaptureFixture[str]) -> None:
    zanella_sample(MODEL, 3, start=START, time=1.0)
    assert "Zanella processes" in terminal.readouterr().err
