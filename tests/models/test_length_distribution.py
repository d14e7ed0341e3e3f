# SPDX-License-Identifier: Apache-2.0
"""Models that give probabilities to lengths, and models that do not."""

from __future__ import annotations

import math
from typing import Any

import pyro
import pyro.distributions as dist
import pytest
import torch
from example_models import small_mrf
from pyro import poutine
from pyro_programs import CHAIN, INITIAL, MOVES, SIZE, chain_with_stop, length_first, mrf_by_steps
from pyro_programs import FEW_SEQUENCES as DATA
from torch import Tensor

from pyro_ksd import default_views, ksd_check
from pyro_ksd.models import IndependentSequence
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.length_distribution import (
    NO_LENGTH_DISTRIBUTION,
    _change,
    _without_last,
    _WithoutEnd,
    has_length_distribution,
    why_given_lengths,
)
from pyro_ksd.sequences.container import Sequences


def conditional_on_length(sequences: Tensor, lengths: Tensor) -> None:
    """As Pyro's own HMM example: nothing says how long a sequence is."""
    with pyro.plate("sequences", len(lengths)):
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                probs = INITIAL.expand(len(lengths), -1) if t == 0 else MOVES[sequences[:, t - 1]]
                pyro.sample(f"x_{t}", dist.Categorical(probs), obs=sequences[:, t])


def test_a_model_without_a_length_law_is_checked_by_substitutions() -> None:
    with pytest.warns(UserWarning, match="the model gives no probability to lengths") as caught:
        check = ksd_check(conditional_on_length, DATA, num_bootstrap=5, progress=False)
    assert 'pyro.sample(f"stop_{t}", dist.Bernoulli(p)' in str(caught[0].message)
    assert check["ksd"].attrs["edits"] == "substitution"
    assert "length" not in check["ksd"]["view"].values


def test_a_model_without_a_length_law_refuses_insertions() -> None:
    from pyro_ksd.edits.neighborhoods import Substitutions, zs

    with pytest.raises(ValueError, match="view 'content-1': found edits that change the length, but the model"):
        ksd_check(conditional_on_length, DATA, neighborhood=zs(), num_bootstrap=5, progress=False)
    ksd_check(conditional_on_length, DATA, neighborhood=Substitutions(2), num_bootstrap=5, progress=False)


@pytest.mark.parametrize("cost", [0.0, 0.5, 1.5])
def test_a_score_without_a_finite_sum_is_checked_given_the_lengths(cost: float) -> None:
    """All sequences of a length together have the score ``(3 exp(-cost))^length``, which falls if cost > log 3."""

    def score(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("length", -cost * lengths)

    if cost > math.log(SIZE):
        check = ksd_check(score, DATA, num_bootstrap=5, progress=False)
    else:
        with pytest.warns(UserWarning, match="the model gives no probability to lengths") as caught:
            check = ksd_check(score, DATA, num_bootstrap=5, progress=False)
        assert 'pyro.factor("length", -cost * lengths)' in str(caught[0].message)
    assert ("length" in check["ksd"]["view"].values) == (cost > math.log(SIZE))


def uniform_up_to_40(sequences: Tensor, lengths: Tensor) -> None:
    """All lengths up to 40 are equally probable, which looks like no distribution until sequences get too long."""
    with pyro.plate("sequences", len(lengths)):
        pyro.factor("length", torch.where((lengths >= 1) & (lengths <= 40), 0.0, -torch.inf))
        for t in range(sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Categorical(INITIAL), obs=sequences[:, t])


def test_a_uniform_law_of_the_length_is_a_law() -> None:
    check = ksd_check(uniform_up_to_40, DATA, num_bootstrap=5, progress=False)
    assert check["ksd"].attrs["edits"] == "deletion, insertion, substitution"


def hmm_given_lengths(sequences: Tensor, lengths: Tensor) -> None:
    """The layout of Pyro's own HMM example."""
    with pyro.plate("sequences", len(lengths), dim=-1):
        z: Any = 0
        for t in pyro.markov(range(int(lengths.max()))):
            with poutine.mask(mask=(t < lengths)):
                moves = torch.tensor([[0.9, 0.1], [0.3, 0.7]], dtype=torch.double)
                z = pyro.sample(f"z_{t}", dist.Categorical(moves[z]), infer={"enumerate": "parallel"})
                emission = torch.stack([INITIAL, INITIAL.flip(0)])
                pyro.sample(f"x_{t}", dist.Categorical(emission[z]), obs=sequences[:, t])


def test_an_hmm_given_the_lengths_is_checked_by_substitutions() -> None:
    with pytest.warns(UserWarning, match="the model gives no probability to lengths"):
        check = ksd_check(hmm_given_lengths, DATA, num_bootstrap=5, progress=False)
    assert check["ksd"].attrs["edits"] == "substitution"
    assert list(check["ksd"]["view"].values) == [view.name for view in default_views() if view.name != "length"]


def given_lengths_with_a_ban(sequences: Tensor, lengths: Tensor) -> None:
    """Nothing says how long a sequence is, but 1 must not follow 1: repeating a sequence soon becomes impossible."""
    moves = MOVES.clone().fill_diagonal_(0.0)
    logits = (moves / moves.sum(-1, keepdim=True)).log()
    with pyro.plate("sequences", len(lengths)):
        for t in range(1, sequences.shape[1]):
            with poutine.mask(mask=t < lengths):
                pyro.sample(f"x_{t}", dist.Categorical(logits=logits[sequences[:, t - 1]]), obs=sequences[:, t])
        pyro.sample("x_0", dist.Categorical(INITIAL), obs=sequences[:, 0])


@pytest.mark.filterwarnings("ignore:the view.s. .* cannot be used with")  # of few data
def test_a_ban_is_no_law_of_the_length() -> None:
    data = Sequences.of([[1, 2, 0, 2, 1], [0, 1], [2]], SIZE)  # repeated, it has 1 after 1
    with pytest.warns(UserWarning, match="the model gives no probability to lengths"):
        ksd_check(given_lengths_with_a_ban, data, num_bootstrap=5, progress=False)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (chain_with_stop, True),
        (length_first, True),
        (mrf_by_steps, True),
        (uniform_up_to_40, True),
        (conditional_on_length, False),
        (hmm_given_lengths, False),
    ],
)
def test_programs_with_and_without_a_distribution_of_the_length(program: Any, expected: bool) -> None:
    assert has_length_distribution(as_model(program, DATA), DATA) is expected


def test_models_of_the_package_have_a_distribution_of_the_length() -> None:
    poisson = IndependentSequence(INITIAL, dist.Poisson(torch.tensor(30.0, dtype=torch.double)))  # grows up to 30
    for model in (CHAIN, small_mrf(), poisson):
        assert has_length_distribution(model, DATA)


def test_without_a_possible_sequence_that_has_symbols_nothing_can_be_said() -> None:
    assert has_length_distribution(as_model(conditional_on_length, DATA), Sequences.of([[], []], SIZE))


def between(least: int, most: int) -> Any:
    def program(sequences: Tensor, lengths: Tensor) -> None:
        """All lengths in between are equally probable."""
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("length", torch.where((lengths >= least) & (lengths <= most), 0.0, -torch.inf))
            for t in range(sequences.shape[1]):
                with poutine.mask(mask=t < lengths):
                    pyro.sample(f"x_{t}", dist.Categorical(INITIAL), obs=sequences[:, t])

    return program


@pytest.mark.parametrize(("least", "most"), [(1, 12), (8, 12), (6, 6), (8, 40), (30, 31), (2, 60)])
@pytest.mark.parametrize("among", [0.0, 0.5, 1.0])
def test_a_least_and_a_largest_length(least: int, most: int, among: float) -> None:
    """Wherever the data lie between the least and the largest length."""
    length = round(least + among * (most - least))
    data = Sequences.of(torch.randint(SIZE, (10, length), generator=torch.Generator().manual_seed(0)), SIZE)
    assert has_length_distribution(as_model(between(least, most), data), data)


def test_a_check_keeps_its_insertions_where_there_is_a_least_length() -> None:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(8, 13, (50,), generator=generator)
    data = Sequences.of(torch.randint(SIZE, (50, 12), generator=generator), SIZE, lengths=lengths)
    check = ksd_check(between(8, 12), data, order=None, num_bootstrap=5, progress=False)
    assert check["ksd"].attrs["edits"] == "deletion, insertion, substitution"
    assert "length" in check["ksd"]["view"].values


def test_models_of_users_are_examined_too() -> None:
    """Whatever form they come in: a model that was made before is no other."""
    with pytest.warns(UserWarning, match="the model gives no probability to lengths"):
        check = ksd_check(as_model(conditional_on_length, DATA), DATA, num_bootstrap=5, progress=False)
    assert check["ksd"].attrs["edits"] == "substitution"


def test_a_table_of_lengths_that_ends_with_the_data_says_so() -> None:
    shares = torch.tensor([0.0, 0.05, 0.1, 0.2, 0.3, 0.35])

    def program(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("length", shares.log()[lengths] - math.log(SIZE) * lengths)

    with pytest.warns(UserWarning, match=r"cannot score sequences that are longer.*log-probability -inf.*IndexError"):
        check = ksd_check(program, DATA, num_bootstrap=5, progress=False)
    assert check["ksd"].attrs["edits"] == "substitution"


@pytest.mark.parametrize("falls", [True, False])
def test_a_mass_that_falls_slowly_is_no_rounding(falls: bool) -> None:
    """All sequences of a length together lose, or win, 0.3 % with each symbol."""
    cost = math.log(SIZE) + (0.003 if falls else -0.003)

    def score(sequences: Tensor, lengths: Tensor) -> None:
        with pyro.plate("sequences", len(lengths)):
            pyro.factor("length", -cost * lengths.double())

    assert has_length_distribution(as_model(score, DATA), DATA) == falls


def test_an_impossible_sequence_shows_nothing_of_the_length() -> None:
    data = Sequences.of([[1, 1, 1, 1], [1, 2, 0], [2]], SIZE)  # the longest one is impossible
    assert not has_length_distribution(as_model(given_lengths_with_a_ban, data), data)


@pytest.mark.parametrize("own", [0.0, -1000.0])
def test_the_rounding_of_a_mass_is_absolute_or_relative(own: float) -> None:
    rounding = 1e-5 + 1e-6 * abs(own)
    ends = torch.tensor([-1.4, -0.9, 0.9, 1.4], dtype=torch.double) * rounding
    extended = (own + ends - math.log(2))[:, None].expand(-1, 2)  # two extensions of the same probability
    found = _change(torch.full((4,), own, dtype=torch.double), extended)
    torch.testing.assert_close(found, torch.tensor([-1.4, 0.0, 0.0, 1.4]).double() * rounding, rtol=1e-5, atol=1e-12)


class Ended(SequenceModel):
    """Sequences of 0, 1 and 2, all of a length equally probable, before one of the ends 3 and 4, of which 4 is rarer.

    :param stop: the probability of an end after each symbol; ``None`` if the ends say nothing of the length.
    """

    alphabet_size = 5
    ends = (3, 4)

    def __init__(self, stop: float | None) -> None:
        self._stop = stop

    def log_joint(self, sequences: Sequences) -> Tensor:
        return torch.tensor([self._log_p(x) for x in sequences.to_lists()], dtype=torch.double)  # type: ignore[arg-type]

    def _log_p(self, x: list[int]) -> float:
        if not x or x[-1] < 3 or any(symbol > 2 for symbol in x[:-1]):
            return -math.inf
        step = math.log((1.0 if self._stop is None else 1 - self._stop) / 3)
        return (len(x) - 1) * step + math.log(0.75 if x[-1] == 3 else 0.25)


ENDED = Sequences.of([[0, 1, 2, 3], [1, 4], [3], [2, 2, 0, 1, 0, 3]], 5)


@pytest.mark.parametrize("stop", [None, 0.01, 0.5])
def test_the_length_of_what_stands_before_an_end(stop: float | None) -> None:
    assert has_length_distribution(Ended(stop), ENDED) is (stop is not None)


def test_a_model_without_its_end() -> None:
    model = Ended(0.2)
    bodies = Sequences.of([[0, 1, 2], [1], [], [2, 2, 0, 1, 0], [0, 3, 1]], 5)
    each = [[model._log_p([*x, end]) for end in (3, 4)] for x in bodies.to_lists()]  # type: ignore[list-item]
    expected = torch.tensor(each, dtype=torch.double).logsumexp(1)
    torch.testing.assert_close(_WithoutEnd(model).log_joint(bodies), expected)
    found = _without_last(Sequences.of([*ENDED.to_lists(), []], 5))
    assert found.to_lists() == [[0, 1, 2], [1], [], [2, 2, 0, 1, 0], []]
    assert found.tokens.tolist() == found.padded(0).tolist()


def test_a_model_may_say_whether_it_defines_lengths() -> None:
    class Saying(Ended):
        """Says it, whatever its log-joints show."""

        def __init__(self, says: bool) -> None:
            super().__init__(None if says else 0.2)
            self._says = says

        @property
        def defines_lengths(self) -> bool:
            return self._says

    assert why_given_lengths(Saying(True), ENDED) == ""
    assert why_given_lengths(Saying(False), ENDED) == NO_LENGTH_DISTRIBUTION
