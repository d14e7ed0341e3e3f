# SPDX-License-Identifier: Apache-2.0
"""Tables in place of models for null draws: the same ratios, and what happens if a rare long-range term is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyro_programs as programs
import pyro_styles_hmm
import pytest
import torch
from example_automata import Unfactored, hidden_markov
from torch import Tensor

from pyro_ksd import MarkovSequence, ksd_check
from pyro_ksd.common.block_runs import draw_blocks
from pyro_ksd.common.chunk_sizes import PAIR_BYTES
from pyro_ksd.edits.neighborhoods import Substitutions, zs
from pyro_ksd.fit_tests.null_draws import _DrawnStatistics
from pyro_ksd.models import SequenceModel, with_sampler
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.distributions.sampling import PAD
from pyro_ksd.models.model_batch import ModelList
from pyro_ksd.models.wrappers import verified_stand_in
from pyro_ksd.models.wrappers.given_lengths import GivenLengths
from pyro_ksd.models.wrappers.verified_stand_in import (
    DisagreementError,
    VerifiedStandIn,
    check_same,
    found_by,
    found_form,
    found_order,
    found_words,
    kept_as,
    with_stand_in,
)
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.views import default_views

CHAIN = MarkovSequence.from_transitions(torch.ones(3) / 3, torch.tensor([[0.2, 0.4, 0.4]] * 3), stop=0.1)
LATER = MarkovSequence.from_transitions(torch.ones(3) / 3, torch.tensor([[0.3, 0.4, 0.3]] * 3), stop=0.1)
DATA = LATER.draw(40, torch.Generator().manual_seed(1))


class Planted(SequenceModel):
    """A chain of first order, but for sequences that contain a word: these are another factor as probable."""

    alphabet_size = 3

    def __init__(self, word: list[int], log_factor: float, drawn: MarkovSequence = CHAIN) -> None:
        self.word = torch.tensor(word)
        self.log_factor = log_factor
        self.drawn = drawn
        self.num_scored = 0

    def contains(self, sequences: Sequences) -> Tensor:
        tokens = torch.nn.functional.pad(sequences.padded(PAD), (0, len(self.word)), value=PAD)
        return (tokens.unfold(1, len(self.word), 1) == self.word).all(-1).any(-1)

    def log_joint(self, sequences: Sequences) -> Tensor:
        self.num_scored += len(sequences)
        return CHAIN.log_joint(sequences) + torch.where(self.contains(sequences), self.log_factor, 0.0)

    @property
    def can_draw(self) -> bool:
        return True

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        return self.drawn.draw(num_sequences, generator)


LOCAL = Planted([0], 0.0)


HIDDEN = hidden_markov(4, stop=0.15)
FROM_HIDDEN = HIDDEN.draw(40, torch.Generator().manual_seed(1))
RARE = [0, 0, 0, 0, 0, 0]  # in no sequence of the data, nor one edit away from any, but in drawn ones


def tables_of(model: Planted, order: int = 1) -> VerifiedStandIn:
    return VerifiedStandIn(ModelList([model]), 3, order)


def automaton_of(model: SequenceModel) -> VerifiedStandIn:
    words = found_words([HIDDEN], FROM_HIDDEN)
    assert words is not None
    return VerifiedStandIn(ModelList([model]), 3, words)


def zeros(sequences: Sequences) -> Tensor:
    return torch.zeros_like(sequences.lengths)


@pytest.mark.parametrize(
    ("program", "order"),
    [
        (programs.chain_with_stop, 1),
        (programs.second_order, 2),
        (programs.hmm, None),
        (programs.length_first, None),
    ],
)
def test_the_order_of_a_program(program: Any, order: int | None) -> None:
    data = CHAIN.draw(30, torch.Generator().manual_seed(0))
    assert found_order(as_model(program, data), data) == order


def test_only_tables_are_tried_that_are_worthwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    few = Sequences.of([[0, 1]], 3)  # 4 substitutions, 6 insertions and 2 deletions at most
    assert found_order(LOCAL, few) is None
    monkeypatch.setattr(verified_stand_in, "_WORTHWHILE", 1)
    assert found_order(LOCAL, few) == 1


def test_no_tables_for_what_needs_none_or_allows_none() -> None:
    assert with_stand_in(CHAIN, DATA) is None
    covariates = DATA.with_covariates({"age": torch.rand(len(DATA))})
    assert found_order(LOCAL, covariates) is None

    class Refusing(Planted):
        def log_joint(self, sequences: Sequences) -> Tensor:
            if sequences.lengths.min() < 2:
                raise ValueError("too short")
            return super().log_joint(sequences)

    assert found_order(Refusing([0], 0.0), DATA) is None


@pytest.mark.parametrize("edits", [zs(), Substitutions(), zs(locations=1)])
def test_ratios_are_those_of_the_model(edits: Any) -> None:
    for model in (LOCAL, GivenLengths(LOCAL), with_sampler(LOCAL, lambda size, generator: CHAIN.draw(size, generator))):
        found = with_stand_in(model, DATA)
        assert found is not None
        quick, tables = found
        assert tables.form == 1
        assert type(quick) is type(model) or model is LOCAL
        around = edits.edits(DATA)
        torch.testing.assert_close(quick.log_ratio(DATA, around), model.log_ratio(DATA, around))
        tables.confirm()
        drawn = [one.draw(5, torch.Generator().manual_seed(3)).to_lists() for one in (quick, model)]
        assert drawn[0] == drawn[1]


def test_comparisons_are_made_in_large_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Planted([0], 0.0)
    tables, edits = tables_of(model), zs().edits(DATA)
    model.num_scored = 0
    tables.log_ratio(DATA, edits, zeros(DATA))
    assert model.num_scored == 0
    tables.confirm()
    share = max(100, round(0.01 * len(edits)))
    assert model.num_scored == len(DATA) + share
    tables.confirm()  # nothing waits
    assert model.num_scored == len(DATA) + share
    monkeypatch.setattr(verified_stand_in, "SCORED_PAIRS", 10)
    tables.log_ratio(DATA, edits, zeros(DATA))
    assert model.num_scored == 2 * (len(DATA) + share)


def test_a_block_of_null_draws_compares_the_same_edits_whatever_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    found = with_stand_in(LOCAL, DATA)
    assert found is not None
    task = _DrawnStatistics(found[0], 20, None, default_views()[:2], PAIR_BYTES, found[1])
    one, other = draw_blocks(8, 4, torch.Generator().manual_seed(0))
    compared: list[Any] = []
    confirm = VerifiedStandIn.confirm

    def noted(tables: VerifiedStandIn) -> None:
        compared.append([each.edited.to_lists() for each in tables._waiting])
        confirm(tables)

    monkeypatch.setattr(VerifiedStandIn, "confirm", noted)
    task(one)
    task(other)
    after = compared[-1]
    task(other)
    assert after
    assert compared[-1] == after


def test_the_choice_of_edits_depends_on_no_sequences_before() -> None:
    tables = tables_of(LOCAL)

    def compared(data: Sequences) -> list[list[Any]]:
        tables.log_ratio(data, zs().edits(data), zeros(data))
        [found] = tables._waiting
        return found.edited.to_lists()

    tables.begin(5)
    first = compared(DATA[:20])
    tables.begin(6)
    assert compared(DATA[:20]) != first
    tables.begin(7)
    compared(DATA[20:])
    tables.begin(5)
    assert compared(DATA[:20]) == first


@pytest.mark.parametrize("log_factor", [-torch.inf, -0.01, 0.01])
def test_a_long_range_term_in_a_sequence_is_noticed(log_factor: float) -> None:
    planted, word = Planted([0, 1, 2, 0, 1], log_factor), Sequences.of([[0, 0, 1, 2, 0, 1, 1]], 3)
    tables = tables_of(planted)
    tables.log_ratio(word, zs().edits(word).select(torch.zeros(0, dtype=torch.long)), zeros(word))
    with pytest.raises(DisagreementError):
        tables.confirm()


def test_a_long_range_term_in_an_edit_that_is_compared_is_noticed() -> None:
    near = Sequences.of([[0, 1, 2, 0, 0]], 3)  # fewer edits than are compared at least
    tables = tables_of(Planted([0, 1, 2, 0, 1], 0.5))
    tables.log_ratio(near, zs().edits(near), zeros(near))
    with pytest.raises(DisagreementError):
        tables.confirm()
    everything = tables_of(Planted([0, 1, 2, 0, 1], 0.5))
    model, edits = Planted([0, 1, 2, 0, 1], 0.5), zs().edits(near)
    with pytest.raises(DisagreementError):
        everything.check(near, edits, model.log_ratio(near, edits)[None], model.log_joint(near)[None])
    everything.check(near, edits, LOCAL.log_ratio(near, edits)[None], LOCAL.log_joint(near)[None])


def test_nan_is_no_agreement() -> None:
    one = torch.ones(1)
    with pytest.raises(DisagreementError):
        check_same(one * torch.nan, one, one)
    with pytest.raises(DisagreementError):
        check_same(one, one + 3e-6, one)
    check_same(one, one + 1e-6, one)
    check_same(one, one + 3e-6, 9 * one)


def test_impossible_is_not_nearly_possible() -> None:
    one = torch.ones(1)
    for found, expected in ((one, -torch.inf * one), (-torch.inf * one, one)):
        with pytest.raises(DisagreementError):
            check_same(found, expected, expected)
    check_same(-torch.inf * one, -torch.inf * one, -torch.inf * one)


@pytest.mark.parametrize("states", [2, 4, 8])
def test_the_words_of_a_hidden_markov_model(states: int) -> None:
    model = Unfactored(hidden_markov(states, size=4, seed=states, stop=0.05))
    data = model.draw(40, torch.Generator().manual_seed(0))
    form = found_form([model], data)
    assert found_by(form) == {"verified_states": states}
    assert kept_as("draws", form) == "draws by automata"
    found = with_stand_in(model, data)
    assert found is not None
    quick, tables = found
    edits = zs().edits(data)
    torch.testing.assert_close(quick.log_ratio(data, edits), model.log_ratio(data, edits), rtol=0, atol=1e-11)
    tables.confirm()


def test_a_program_with_hidden_states_has_words() -> None:
    data = CHAIN.draw(30, torch.Generator().manual_seed(0))
    assert found_by(found_form([as_model(programs.hmm, data)], data)) == {"verified_states": 2}
    assert found_by(found_form([as_model(programs.chain_with_stop, data)], data)) == {"verified_order": 1}


@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("tones and priors", 2),
        ("autoregressive HMM", 6),
        ("factorial HMM", 6),
        ("second-order HMM", 4),
        ("neural HMM", 8),
    ],
)
def test_hidden_markov_programs_of_all_styles_have_words(name: str, states: int) -> None:
    style = pyro_styles_hmm.STYLES[name]
    generator = torch.Generator().manual_seed(0)
    data = Sequences.of(torch.randint(0, style.size, (40, 8), generator=generator), style.size)
    model = as_model(style.program, data, parameters=style.parameters)
    words = found_words([model], data)
    assert found_by(words) == {"verified_states": states}
    assert words is not None
    few = data[:5]
    edits = zs().edits(few)
    tables = VerifiedStandIn(ModelList([model]), style.size, words)
    found = tables.log_ratio(few, edits, zeros(few))
    torch.testing.assert_close(found, model.log_ratio(few, edits), rtol=0, atol=1e-11)


def test_rounding_errors_of_single_precision_hide_the_states() -> None:
    class Single(Unfactored):
        def log_joint(self, sequences: Sequences) -> Tensor:
            return super().log_joint(sequences).float().double()

    assert found_words([Single(HIDDEN)], FROM_HIDDEN) is None


def over_factorial(sequences: Sequences) -> Tensor:
    return -(sequences.lengths + 1.0).double().lgamma()


def count_squared(sequences: Sequences) -> Tensor:
    return -0.3 * ((sequences.tokens == 1) & sequences.mask).sum(1).double() ** 2


def far_apart(sequences: Sequences) -> Tensor:
    """A term for equal symbols 15 places apart, which short words do not have."""
    tokens = torch.nn.functional.pad(sequences.padded(PAD), (0, 16), value=PAD)
    return 0.5 * ((tokens[:, 15:] == tokens[:, :-15]) & (tokens[:, 15:] >= 0)).sum(1).double()


@pytest.mark.usefixtures("any_sampler")
@pytest.mark.parametrize("term", [over_factorial, count_squared, far_apart])
def test_no_words_of_what_is_no_small_automaton(term: Any) -> None:
    class Other(Unfactored):
        def log_joint(self, sequences: Sequences) -> Tensor:
            return super().log_joint(sequences) + term(sequences)

    drawn = hidden_markov(3, stop=0.04)
    model, data = Other(drawn), drawn.draw(40, torch.Generator().manual_seed(3))
    assert found_words([Unfactored(drawn)], data) is not None
    assert found_form([model], data) is None
    assert with_stand_in(model, data) is None
    options: dict[str, Any] = {"num_bootstrap": 5, "localize": False, "progress": False}
    found, expected = (ksd_check(model, data, order=order, **options) for order in ("auto", None))
    assert not any("verified" in name for name in found["ksd"].attrs)
    assert_same_check(expected, found, exactly=True)


def test_no_words_for_what_allows_none() -> None:
    model = Unfactored(HIDDEN)
    covariates = FROM_HIDDEN.with_covariates({"age": torch.rand(len(FROM_HIDDEN))})
    assert found_words([model], covariates) is None
    assert found_words([model], FROM_HIDDEN[:1]) is None  # too few edits

    class Refusing(Unfactored):
        def log_joint(self, sequences: Sequences) -> Tensor:
            if sequences.lengths.min() < 2:
                raise ValueError("too short")
            return super().log_joint(sequences)

    assert found_words([Refusing(HIDDEN)], FROM_HIDDEN) is None


def test_the_model_is_asked_for_what_an_automaton_does_not_know() -> None:
    model = Unfactored(HIDDEN)
    tables = automaton_of(model)
    data = Sequences.of([[0], [1, 2]], 3)
    edits = zs().edits(data)
    model.num_scored = 0
    found = tables.log_ratio(data, edits, zeros(data))
    assert model.num_scored == 2  # the empty sequence and the one that it comes from
    assert (found == -torch.inf).sum() == 1
    torch.testing.assert_close(found, HIDDEN.log_ratio(data, edits), rtol=0, atol=1e-11)
    tables.confirm()


def test_words_are_of_no_use_if_little_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyro_ksd.models.wrappers.recovered_automaton._ROUNDING", 1e-6)
    assert found_words([Unfactored(HIDDEN)], FROM_HIDDEN) is None


@pytest.mark.parametrize("log_factor", [-torch.inf, -1e-6, 1e-6])
def test_a_rare_term_beside_hidden_states_is_noticed(log_factor: float) -> None:
    tables, word = automaton_of(Unfactored(HIDDEN, RARE, log_factor)), Sequences.of([[1, *RARE, 2]], 3)
    tables.log_ratio(word, zs().edits(word).select(torch.zeros(0, dtype=torch.long)), zeros(word))
    with pytest.raises(DisagreementError):
        tables.confirm()
    near = Sequences.of([[*RARE[:-1], 1]], 3)
    tables.log_ratio(near, zs().edits(near), zeros(near))
    with pytest.raises(DisagreementError):
        tables.confirm()
    model, edits = Unfactored(HIDDEN, RARE, log_factor), zs().edits(near)
    with pytest.raises(DisagreementError):
        tables.check(near, edits, model.log_ratio(near, edits)[None], model.log_joint(near)[None])
    tables.check(near, edits, HIDDEN.log_ratio(near, edits)[None], HIDDEN.log_joint(near)[None])


@pytest.mark.parametrize("states", [2, 4, 8])
def test_a_check_by_an_automaton_is_the_same_and_asks_the_model_for_less(states: int) -> None:
    model = hidden_markov(states, stop=0.15)
    data = model.draw(60, torch.Generator().manual_seed(1))
    quick, slow = Unfactored(model), Unfactored(model)
    found, expected = (check_of(one, order, data) for one, order in ((quick, "auto"), (slow, None)))
    # The view of the length enlarges rounding errors at lengths that are hardly possible.
    assert_same_check(expected, found, exactly=False, error=1e-8)
    assert found["ksd"]["p_value"].equals(expected["ksd"]["p_value"])
    assert found["ksd"]["statistic"].equals(expected["ksd"]["statistic"])
    assert found["ksd"].attrs["verified_states"] == states
    assert found["ksd"].attrs["verified_share"] == 0.01
    assert "verified_states" not in expected["ksd"].attrs
    assert quick.num_scored < slow.num_scored / 4


def test_a_rare_term_of_drawn_data_leaves_nothing_of_the_automaton() -> None:
    model = Unfactored(HIDDEN, RARE, 3.0)
    around = zs().edits(FROM_HIDDEN)
    near = around.sum_by_owner(model.contains(around.apply(FROM_HIDDEN)).double())
    data = FROM_HIDDEN[near == 0]
    assert len(data) > 20
    assert found_by(found_form([model], data)) == {"verified_states": 4}
    found, expected = check_of(model, "auto", data), check_of(model, None, data)
    assert not any("verified" in name for name in found["ksd"].attrs)
    assert_same_check(expected, found, exactly=True)


def check_of(model: SequenceModel, order: Any, data: Sequences = DATA) -> Any:
    return ksd_check(model, data, order=order, num_bootstrap=60, seed=5, progress=False)


def assert_same_check(one: Any, other: Any, exactly: bool, error: float = 1e-12) -> None:
    for group in ("ksd", "ksd_null"):
        for name, values in one[group].data_vars.items():
            if values.dtype.kind != "f":
                continue
            if exactly:
                assert other[group][name].equals(values), name
            else:
                np.testing.assert_allclose(other[group][name].values, values.values, rtol=1e-9, atol=error)


@pytest.mark.usefixtures("any_sampler")
def test_a_check_is_the_same_and_asks_the_model_for_less() -> None:
    quick, slow = Planted([0], 0.0), Planted([0], 0.0)
    found, expected = check_of(quick, "auto"), check_of(slow, None)
    assert_same_check(expected, found, exactly=False)
    assert found["ksd"]["p_value"].equals(expected["ksd"]["p_value"])
    assert found["ksd"].attrs["verified_order"] == 1
    assert found["ksd"].attrs["verified_share"] == 0.01
    assert "verified_order" not in expected["ksd"].attrs
    assert quick.num_scored < slow.num_scored / 8


@pytest.mark.usefixtures("any_sampler")
def test_a_long_range_term_of_drawn_data_is_noticed_and_nothing_of_the_tables_is_left() -> None:
    word = [0, 0, 0, 0, 0, 0]  # in no sequence of the data, nor one edit away from any, but of drawn ones
    zeros_first = MarkovSequence.from_transitions(torch.ones(3) / 3, torch.tensor([[0.6, 0.2, 0.2]] * 3), stop=0.1)
    model = Planted(word, 3.0, zeros_first)
    assert not model.contains(Sequences.cat([DATA, zs().edits(DATA).apply(DATA)])).any()
    assert found_order(model, DATA) == 1
    found, expected = check_of(model, "auto"), check_of(model, None)
    assert "verified_order" not in found["ksd"].attrs
    assert_same_check(expected, found, exactly=True)


@pytest.mark.usefixtures("any_sampler")
def test_the_statistics_of_the_data_are_those_of_the_model_whatever_tables_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if no comparison were ever made, with a term that edits of the data have."""
    model = Planted([0, 0, 0], 2.0)
    assert model.contains(zs().edits(DATA).apply(DATA)).any()
    monkeypatch.setattr(verified_stand_in, "agrees", lambda *_: True)
    monkeypatch.setattr(VerifiedStandIn, "confirm", lambda _: None)
    found, expected = check_of(model, "auto"), check_of(model, None)
    assert found["ksd"].attrs["verified_order"] == 1
    assert not found["ksd_null"]["ksd"].equals(expected["ksd_null"]["ksd"])
    assert found["ksd"]["statistic"].equals(expected["ksd"]["statistic"])
