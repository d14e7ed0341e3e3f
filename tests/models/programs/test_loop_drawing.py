# SPDX-License-Identifier: Apache-2.0
"""Draws of many sequences at once: their distribution, and the programs that must run once a sequence."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from loop_programs import CONTROL_FLOW, INITIAL, STOPS, TRANSITION, S, chain, limited, space, table
from scipy.stats import chisquare
from torch import Tensor

from pyro_ksd.models import MarkovSequence
from pyro_ksd.models.programs import loop, loop_drawing
from pyro_ksd.models.programs.loop import LoopProgram
from pyro_ksd.models.programs.loop_drawing import LoopDrawing
from pyro_ksd.models.programs.loop_runs import ObservedInLoopError
from pyro_ksd.models.programs.loop_scoring import LoopScoring
from pyro_ksd.models.programs.loop_site_names import SiteNames
from pyro_ksd.models.session_state import random_states
from pyro_ksd.sequences.container import Sequences

COUNT = 20_000
WITH_STOPS = MarkovSequence.from_transitions(INITIAL, TRANSITION, STOPS)


def drawing(program: Callable[[], Any], size: int = S) -> LoopDrawing:
    names = SiteNames()
    return LoopDrawing(program, size, names, LoopScoring(program, size, names))


def drawn(program: Callable[[], Any], *, horizon: int = 8, size: int = COUNT, seed: int = 0) -> Sequences:
    with torch.no_grad():
        sequences = drawing(program).at_once(size, horizon=horizon, max_length=1000, seed=seed)
    assert sequences is not None
    return sequences


def check_distribution(found: Sequences, truth: Callable[[Sequences], Tensor], longest: int = 3) -> None:
    """Compares the frequency of each short sequence, and that of all others together, with the exact probabilities."""
    short = space(longest)
    expected = truth(short).exp()
    possible = expected > 0
    counts = Counter(map(tuple, found.to_lists()))
    frequencies = torch.tensor([counts.pop(tuple(x), 0) for x in short.to_lists()])
    assert not frequencies[~possible].any()
    observed = [*frequencies[possible].tolist(), counts.total()]
    rest = 1 - float(expected.sum())
    check_frequencies(observed, [*expected[possible].tolist(), rest])


def check_frequencies(observed: list[int], probs: list[float]) -> None:
    pairs = [(count, p) for count, p in zip(observed, probs, strict=True) if p > 1e-12 or count > 0]
    counts, expected = zip(*pairs, strict=True)
    total = sum(counts)
    assert chisquare(counts, [total * p / sum(expected) for p in expected]).pvalue > 1e-3


@pytest.mark.parametrize("horizon", [1, 2, 3, 5, 64])
def test_sequences_have_their_probabilities_whatever_the_horizon(horizon: int) -> None:
    check_distribution(drawn(chain(stops=STOPS), horizon=horizon, seed=horizon), WITH_STOPS.log_joint)


@pytest.mark.parametrize("horizon", [1, 3, 7])
def test_lengths_have_their_probabilities_far_beyond_the_horizon(horizon: int) -> None:
    stop = 0.1
    lengths = drawn(chain(stops=stop), horizon=horizon, seed=horizon).lengths.clamp(max=41)
    probs = [stop * (1 - stop) ** (length - 1) for length in range(1, 41)]
    check_frequencies(lengths.bincount(minlength=42)[1:].tolist(), [*probs, 1 - sum(probs)])


def test_symbols_after_the_horizon_follow_those_before_it() -> None:
    """Pairs of neighbors at each place, of which some straddle a horizon."""
    found = drawn(chain(stops=0.05), horizon=2)
    for place in range(8):
        there = found.lengths > place + 1
        pairs = found.tokens[there, place] * S + found.tokens[there, place + 1]
        before = INITIAL @ torch.linalg.matrix_power(TRANSITION, place)
        check_frequencies(pairs.bincount(minlength=S * S).tolist(), (before[:, None] * TRANSITION).flatten().tolist())


@pytest.mark.parametrize("horizon", [1, 2, 8])
def test_stops_before_the_symbols(horizon: int) -> None:
    probs = table(S + 1, S + 1, S + 1)

    def program() -> None:
        older, old, t = torch.tensor(S), torch.tensor(S), 0
        while not pyro.sample(f"stop_{t}", dist.Bernoulli(probs[older, old, S])):
            older, old = old, pyro.sample(f"x_{t}", dist.Categorical(probs[older, old, :S]))
            t += 1

    found = drawn(program, horizon=horizon, seed=horizon)
    check_distribution(found, MarkovSequence(probs, order=2).log_joint)
    assert (found.lengths == 0).any()


@pytest.mark.parametrize("stop_at_the_limit", [False, True])
@pytest.mark.parametrize("horizon", [1, 2, 3, 4])
def test_programs_that_end_by_themselves(horizon: int, stop_at_the_limit: bool) -> None:
    program = limited(3, stop_at_the_limit=stop_at_the_limit)
    found = drawn(program, horizon=horizon, seed=horizon)
    check_distribution(found, LoopProgram(program, S).log_joint)
    assert found.width == 3


def test_sites_of_shape_1_and_dtypes_of_samples() -> None:
    seen = set()

    def program() -> None:
        stop = torch.zeros(1)
        t = 0
        while not stop:
            x = pyro.sample(f"x_{t}", dist.Binomial(2, torch.full((1,), 0.5, dtype=torch.double)))
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(torch.full((1,), 0.5)))
            seen.update({("x", x.dtype, x.shape), ("stop", stop.dtype, stop.shape)})
            t += 1

    found = drawn(program, horizon=1)
    check_frequencies(found.tokens[:, 0].bincount().tolist(), [0.25, 0.5, 0.25])
    check_frequencies(found.lengths.clamp(max=3).bincount()[1:].tolist(), [0.5, 0.25, 0.25])
    assert seen == {("x", torch.double, (1,)), ("stop", torch.float32, (1,))}


def test_programs_without_sites_draw_empty_sequences() -> None:
    assert drawn(lambda: None, size=5).lengths.tolist() == [0] * 5


def test_rows_are_in_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequences that take several runs stay in their rows, also if all rows take several turns."""
    monkeypatch.setattr(loop_drawing, "EVALUATED_SEQUENCES", 300)
    found = drawn(chain(stops=STOPS), horizon=1, size=7_000)
    check_distribution(found, WITH_STOPS.log_joint)
    lengths = found.lengths.double()
    neighbors = torch.corrcoef(torch.stack([lengths[1:], lengths[:-1]]))[0, 1]
    trend = torch.corrcoef(torch.stack([lengths, torch.arange(7_000) % 300]))[0, 1]
    assert max(abs(neighbors), abs(trend)) < 4 / 7_000**0.5


def test_the_program_runs_a_few_times_only() -> None:
    runs = Counter[str]()

    def program() -> None:
        runs["all"] += 1
        chain()()

    model = LoopProgram(program, S)
    model.draw(2_000)
    runs.clear()
    assert len(model.draw(2_000)) == 2_000
    assert runs["all"] < 30


def by_numpy(generator: np.random.Generator) -> Callable[[], None]:
    return lambda: chain(stops=0.2 + 0.4 * generator.random())()


def by_torch() -> None:
    chain(stops=0.2 + 0.4 * torch.rand(()))()


class ByNumpy(dist.Categorical):
    """Draws by random numbers of its own."""

    generator = np.random.default_rng(0)

    def sample(self, sample_shape: torch.Size = torch.Size()) -> Tensor:  # noqa: B008
        return torch.tensor(self.generator.choice(S, p=INITIAL.numpy()))


def own_sample() -> None:
    for t in range(2):
        pyro.sample(f"x_{t}", ByNumpy(INITIAL))


RANDOM = {
    "numpy": lambda: chain(stops=0.2 + 0.4 * np.random.random())(),  # noqa: NPY002
    "random": lambda: chain(stops=0.2 + 0.4 * random.random())(),
    "generator": by_numpy(np.random.default_rng(0)),
    "torch": by_torch,
    "unused": lambda: (np.random.random(), chain()()),  # noqa: NPY002
    "own sample": own_sample,
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_beside_the_sites(name: str) -> None:
    """Vectorized, all sequences of a run would have the same ones."""
    assert drawing(RANDOM[name]).at_once(200, horizon=8, max_length=1000, seed=0) is None
    found = LoopProgram(RANDOM[name], S).draw(400, torch.Generator().manual_seed(0))
    if name in ("numpy", "random", "generator", "torch"):
        # The stop is uniform from 0.2 to 0.6, for each sequence anew.
        first = [(found.lengths == 1).sum().item(), (found.lengths > 1).sum().item()]
        check_frequencies(first, [0.4, 0.6])
    assert len(set(map(tuple, found.to_lists()))) > 5


@pytest.mark.parametrize("name", CONTROL_FLOW)
def test_control_flow_that_depends_on_symbols(name: str) -> None:
    program = chain(index=CONTROL_FLOW[name], stops=STOPS)
    assert drawing(program).at_once(200, horizon=8, max_length=1000, seed=0) is None
    check_distribution(LoopProgram(program, S).draw(2_000, torch.Generator().manual_seed(0)), WITH_STOPS.log_joint)


def test_programs_that_end_by_a_symbol() -> None:
    def program() -> None:
        t, x = 0, 0
        while x != 2:
            x = int(pyro.sample(f"x_{t}", dist.Categorical(INITIAL)))
            t += 1

    found = LoopProgram(program, S).draw(500, torch.Generator().manual_seed(0))
    end = INITIAL[2].item()
    check_frequencies(found.lengths.clamp(max=3).bincount()[1:].tolist(), [end, end * (1 - end), (1 - end) ** 2])


def test_control_flow_late_in_the_sequence_falls_back_as_a_whole() -> None:
    def program() -> None:
        law, stop, t = INITIAL, False, 0
        while not stop:
            x = pyro.sample(f"x_{t}", dist.Categorical(law))
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(STOPS[x]))
            law, t = TRANSITION[int(x) if t > 3 else x], t + 1

    assert drawing(program).at_once(500, horizon=2, max_length=1000, seed=0) is None
    check_distribution(LoopProgram(program, S).draw(2_000, torch.Generator().manual_seed(1)), WITH_STOPS.log_joint)


@pytest.mark.parametrize("heeds", [lambda t, x: t > 2, lambda t, x: x != 2, lambda t, x: t != 5, lambda t, x: t % 2])
def test_stops_that_are_not_heeded(heeds: Callable[[int, Any], Any]) -> None:
    """In a run that is told to go on, nobody sees it."""

    def program() -> None:
        t, stop, x = 0, False, 0
        while not (stop and heeds(t, x)):
            x = pyro.sample(f"x_{t}", dist.Categorical(INITIAL))
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(0.3))
            t += 1

    assert drawing(program).at_once(500, horizon=8, max_length=1000, seed=0) is None
    with pytest.raises(ValueError, match=r"goes on to site 'x_\d+' after 'stop_\d+' said stop"):
        LoopProgram(program, S).draw(500, torch.Generator().manual_seed(0))


def test_a_vectorized_run_that_differs() -> None:
    def program() -> None:
        vectorized = torch._C._functorch.maybe_current_level() is not None
        chain(stops=0.6 if vectorized else 0.2)()

    assert drawing(program).at_once(500, horizon=8, max_length=1000, seed=0) is None
    found = LoopProgram(program, S).draw(1_000, torch.Generator().manual_seed(0))
    check_frequencies([(found.lengths == 1).sum().item(), (found.lengths > 1).sum().item()], [0.2, 0.8])


def test_a_program_that_changes_from_run_to_run() -> None:
    runs = count()

    def program() -> None:
        chain(stops=0.6 if next(runs) == 0 else 0.5)()

    assert drawing(program).at_once(500, horizon=64, max_length=1000, seed=0) is None


def test_what_follows_when_all_sequences_are_over_does_not_matter() -> None:
    stops = torch.tensor([0.3, 0.5, 1.0], dtype=torch.double)

    def program() -> None:
        stop, t = False, 0
        while not stop:
            pyro.sample(f"x_{t}", dist.Categorical(INITIAL))
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(stops[t]))
            t += 1

    check_frequencies(drawn(program).lengths.bincount()[1:].tolist(), [0.3, 0.35, 0.35])


def test_symbols_outside_of_the_alphabet() -> None:
    law = torch.tensor([0.5, 0.496, 0.004])

    def program() -> None:
        for t in range(2):
            pyro.sample(f"x_{t}", dist.Categorical(law))

    with pytest.raises(ValueError, match=r"site 'x_\d': found the symbol 2.0, expected 0..1; fix alphabet_size="):
        drawing(program, 2).at_once(5_000, horizon=8, max_length=1000, seed=0)


def test_symbols_after_the_end_may_be_any() -> None:
    def program() -> None:
        stop, t = False, 0
        while not stop:
            pyro.sample(f"x_{t}", dist.Categorical(torch.eye(t + 1)[t]))
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(float(t > 1)))
            t += 1

    assert drawn(program, size=3).to_lists() == [[0, 1, 2]] * 3


def test_too_long_sequences() -> None:
    with pytest.raises(ValueError, match=r"still going at max_length=12, expected a shorter sequence"):
        drawing(chain(stops=0.05)).at_once(500, horizon=5, max_length=12, seed=0)
    exact = drawing(limited(5, stop_at_the_limit=False)).at_once(500, horizon=2, max_length=5, seed=0)
    assert exact is not None
    assert exact.width == 5


def test_factors_within_some_sequences() -> None:
    def program() -> None:
        stop, t = False, 0
        while not stop:
            pyro.sample(f"x_{t}", dist.Categorical(INITIAL))
            if t == 6:
                pyro.factor("late", torch.tensor(0.0))
            stop = pyro.sample(f"stop_{t}", dist.Bernoulli(0.5))
            t += 1

    with pytest.raises(ObservedInLoopError, match="site 'late': found an observed site or factor"):
        drawing(program).at_once(2_000, horizon=8, max_length=1000, seed=0)


def test_factors_before_the_sequence_do_not_matter() -> None:
    def program() -> None:
        pyro.factor("constant", torch.tensor(3.0))
        chain(stops=STOPS)()

    check_distribution(drawn(program), WITH_STOPS.log_joint)


def test_a_seed_gives_the_same_draws_whatever_was_drawn_before() -> None:
    model = LoopProgram(chain(stops=0.05), S)
    first = model.draw(500, torch.Generator().manual_seed(1)).to_lists()
    other = model.draw(500, torch.Generator().manual_seed(2)).to_lists()
    assert model.draw(500, torch.Generator().manual_seed(1)).to_lists() == first
    assert LoopProgram(chain(stops=0.05), S).draw(500, torch.Generator().manual_seed(1)).to_lists() == first
    assert first != other


def test_a_failed_attempt_does_not_change_plain_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    model = LoopProgram(chain(index=int), S)
    first = model.draw(400, torch.Generator().manual_seed(1)).to_lists()
    monkeypatch.setattr(loop, "_MANY", 10_000)
    assert model.draw(400, torch.Generator().manual_seed(1)).to_lists() == first


def test_the_session_stays_as_it_is() -> None:
    kept = pyro.param("kept", torch.tensor(1.0))

    def program() -> None:
        torch.set_default_dtype(torch.double)
        chain(stops=pyro.param("end", torch.tensor(0.3, dtype=torch.double)))()

    before = random_states()
    found = LoopProgram(program, S).draw(500, torch.Generator().manual_seed(0))
    after = random_states()
    check_frequencies([(found.lengths == 1).sum().item(), (found.lengths > 1).sum().item()], [0.3, 0.7])
    assert torch.equal(before["torch"], after["torch"])
    assert before["random"] == after["random"]
    assert np.array_equal(before["numpy"][1], after["numpy"][1])
    assert before["numpy"][2] == after["numpy"][2]
    assert torch.get_default_dtype() == torch.float32
    assert list(pyro.get_param_store().keys()) == ["kept"]
    assert torch.equal(pyro.param("kept"), kept)


def test_draws_for_given_covariates() -> None:
    known = Sequences.of([[0]] * 400, S).with_covariates(torch.arange(400))
    assert known.covariates is not None
    found = LoopProgram(chain(stops=STOPS), S).draw_given(known.covariates, torch.Generator().manual_seed(0))
    assert found.covariates is not None
    assert len(found) == 400
    assert torch.equal(torch.as_tensor(found.covariates.values), torch.arange(400))
