# SPDX-License-Identifier: Apache-2.0
"""Objects of users that have the methods of a model, but not the base class."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from example_models import Unsampled
from pyro_programs import CHAIN, SIZE
from torch import Tensor

from pyro_ksd import Sequences, ksd_check, ksd_compare
from pyro_ksd.edits.neighborhoods import Neighborhood, Substitutions, zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.models import LoopProgram, SequenceModel, TabulatedModel, constrain, with_sampler
from pyro_ksd.models.conversion import as_model
from pyro_ksd.models.duck_typing import AdaptedModel, adapted, required_model
from pyro_ksd.sequences.covariates import Covariates
from pyro_ksd.stein.zanella_sampler import zanella_sample

DATA = CHAIN.draw(20, torch.Generator().manual_seed(0))
EDITS = zs().edits(DATA)
OPTIONS: dict[str, Any] = {"num_bootstrap": 30, "progress": False}


class Duck:
    """A model without the base class."""

    alphabet_size = SIZE

    def log_joint(self, sequences: Sequences) -> Tensor:
        return CHAIN.log_joint(sequences)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        return CHAIN.log_ratio(sequences, edits)


class DrawingDuck(Duck):
    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        return CHAIN.draw(num_sequences, generator)


class ParticularDuck(Duck):
    """Has edits, data and sites of its own; 0 right after 2 is impossible."""

    def log_joint(self, sequences: Sequences) -> Tensor:
        tokens = sequences.padded(-1)
        banned = ((tokens[:, :-1] == 2) & (tokens[:, 1:] == 0)).any(1)
        return super().log_joint(sequences).masked_fill(banned, -torch.inf)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        return self.log_joint(edits.apply(sequences)) - self.log_joint(sequences)[edits.owner]

    @property
    def default_neighborhood(self) -> Neighborhood:
        return Substitutions()

    def check_data(self, sequences: Sequences) -> None:
        if (sequences.lengths > 30).any():
            raise ValueError("no sequence of more than 30 symbols, please")

    def impossible_sites(self, sequences: Sequences) -> tuple[str, ...]:
        return tuple(f"grammar {len(x)}" for x in sequences.to_lists())


def test_adapted_objects_are_models_that_answer_as_the_object_does() -> None:
    model = adapted(Duck())
    assert isinstance(model, AdaptedModel)
    assert isinstance(model, SequenceModel)
    assert model.alphabet_size == SIZE
    assert torch.equal(model.log_joint(DATA), CHAIN.log_joint(DATA))
    assert torch.equal(model.log_ratio(DATA, EDITS), CHAIN.log_ratio(DATA, EDITS))


def test_what_the_object_lacks_is_as_in_the_base_class() -> None:
    model = adapted(Duck())
    assert model.can_draw is False
    with pytest.raises(ValueError, match=r"expected a model that can be sampled, .* with_sampler\(model, sampler\)"):
        model.draw(2)
    assert model.default_neighborhood is None
    assert model.check_data(DATA) is None
    assert model.impossible_sites(DATA[:2]) == ["", ""]
    assert model.for_rows(3) is model


def test_what_the_object_has_is_used() -> None:
    drawing, particular = adapted(DrawingDuck()), adapted(ParticularDuck())
    assert drawing.can_draw is True
    expected = CHAIN.draw(9, torch.Generator().manual_seed(5)).to_lists()
    assert drawing.draw(9, torch.Generator().manual_seed(5)).to_lists() == expected
    assert isinstance(particular.default_neighborhood, Substitutions)
    with pytest.raises(ValueError, match="no sequence of more than 30 symbols, please"):
        particular.check_data(Sequences.of([[0] * 31], SIZE))
    assert particular.impossible_sites(Sequences.of([[2, 0], [1, 2, 0]], SIZE)) == ["grammar 2", "grammar 3"]


class GivenDuck(DrawingDuck):
    """Draws the covariate itself, and then symbols by torch's global generator."""

    takes_covariates = True

    def draw_given(self, covariates: Covariates, generator: torch.Generator | None = None) -> Sequences:
        symbols = torch.cat([covariates.values["first"][:, None], torch.randint(SIZE, (len(covariates), 8))], 1)  # type: ignore[call-overload]
        return Sequences.of(symbols, SIZE).with_covariates(covariates)


def test_draws_for_covariates() -> None:
    covariates = Covariates.of({"first": torch.tensor([2, 0, 1, 1])}, 4)
    given, plain = adapted(GivenDuck()), adapted(DrawingDuck())
    assert given.takes_covariates
    assert not plain.takes_covariates
    drawn = [given.draw_given(covariates, torch.Generator().manual_seed(seed)) for seed in (3, 3, 4)]
    assert drawn[0].tokens[:, 0].tolist() == [2, 0, 1, 1]
    assert drawn[0].to_lists() == drawn[1].to_lists() != drawn[2].to_lists()
    expected = CHAIN.draw(4, torch.Generator().manual_seed(5)).to_lists()
    found = plain.draw_given(covariates, torch.Generator().manual_seed(5))
    assert found.to_lists() == expected
    assert found.covariates is not None


def test_models_and_other_things_stay_as_they_are() -> None:
    loop = LoopProgram(lambda: None, SIZE)
    for thing in (CHAIN, loop, adapted(Duck()), len, 3, "chain", None, torch.distributions.Poisson(1.0)):
        assert adapted(thing) is thing


def test_as_model() -> None:
    model = as_model(Duck(), DATA)
    assert isinstance(model, SequenceModel)
    assert torch.equal(model.log_joint(DATA), CHAIN.log_joint(DATA))
    assert as_model(Duck(), DATA, sampler=CHAIN.draw).can_draw
    tabulated = as_model(Duck(), DATA, order=1)
    assert isinstance(tabulated, TabulatedModel)
    assert tabulated.is_local


def test_check_of_a_model_without_draws_is_by_the_wild_bootstrap() -> None:
    check = ksd_check(Duck(), DATA, **OPTIONS)
    expected = ksd_check(Unsampled(CHAIN), DATA, bootstrap="wild", **OPTIONS)
    assert check["ksd"].attrs["kind"] == "wild"
    assert check["ksd"].attrs["edits"] == "deletion, insertion, substitution"
    for name in ("statistic", "p_value", "p_value_overall"):
        assert check["ksd"][name].equals(expected["ksd"][name])
    with pytest.raises(ValueError, match="for the parametric bootstrap, found"):
        ksd_check(Duck(), DATA, bootstrap="parametric", **OPTIONS)


def test_check_of_a_model_with_draws_is_by_the_parametric_bootstrap() -> None:
    # The object does not know the distribution of its lengths, as the chain does: it is estimated.
    sampled_chain = with_sampler(Unsampled(CHAIN), CHAIN.draw)
    check, expected = (ksd_check(model, DATA, **OPTIONS) for model in (DrawingDuck(), sampled_chain))
    assert check["ksd"].attrs["kind"] == "parametric"
    assert check["ksd_null"]["ksd"].equals(expected["ksd_null"]["ksd"])
    sampled = ksd_check(Duck(), DATA, sampler=CHAIN.draw, **OPTIONS)
    assert sampled["ksd"].attrs["kind"] == "parametric"
    assert sampled["ksd_null"]["ksd"].equals(expected["ksd_null"]["ksd"])


def test_check_uses_the_edits_data_and_sites_of_the_object() -> None:
    data = Sequences.of([[0, 1], [2, 0, 1], [1, 1, 2], [2], [0, 2, 1, 1], [1, 2, 0]], SIZE)
    with pytest.warns(UserWarning, match=r"sequence 1, \[2, 0, 1\], at site grammar 3; sequence 5"):
        check = ksd_check(ParticularDuck(), data, views=["content-1", "start"], **OPTIONS)
    assert check["ksd"].attrs["edits"] == "substitution"
    assert check["ksd_impossible"]["sequence"].values.tolist() == [1, 5]
    assert check["ksd_impossible"]["site"].values.tolist() == ["grammar 3", "grammar 3"]
    with pytest.raises(ValueError, match="no sequence of more than 30 symbols, please"):
        ksd_check(ParticularDuck(), Sequences.of([[0] * 31, [1], [0]], SIZE), **OPTIONS)


def test_comparison() -> None:
    other = DATA.derived(DATA.tokens, DATA.lengths)
    found = ksd_compare({"duck": Duck(), "chain": CHAIN}, other, progress=False)["ksd_compare"]
    assert found["statistic"].sel(model="duck").values.tolist() == found["statistic"].sel(model="chain").values.tolist()
    with pytest.raises(ValueError, match="no sequence of more than 30 symbols, please"):
        ksd_compare({"a": ParticularDuck(), "b": CHAIN}, Sequences.of([[0] * 31, [1], [0]], SIZE), progress=False)


class Flat(Duck):
    """All sequences count the same, which is no distribution."""

    def log_joint(self, sequences: Sequences) -> Tensor:
        return torch.zeros(len(sequences), dtype=torch.double)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        return torch.zeros(len(edits), dtype=torch.double)


def test_an_object_without_a_distribution_of_the_length_is_checked_given_the_lengths() -> None:
    with pytest.warns(UserWarning, match="the model gives no probability to lengths"):
        check = ksd_check(Flat(), DATA, **OPTIONS)
    assert check["ksd"].attrs["edits"] == "substitution"
    with pytest.warns(UserWarning, match="model 'flat': the model gives no probability to lengths"):
        found = ksd_compare({"flat": Flat(), "chain": CHAIN}, DATA, progress=False)["ksd_compare"]
    assert "length" not in found["view"].values


def test_an_object_may_say_that_it_has_one() -> None:
    flat = Flat()
    flat.defines_lengths = True  # type: ignore[attr-defined]
    check = ksd_check(flat, DATA, **OPTIONS)
    assert check["ksd"].attrs["edits"] == "deletion, insertion, substitution"
    assert adapted(flat).ends == ()
    flat.ends = (1,)  # type: ignore[attr-defined]
    assert adapted(flat).ends == (1,)


def test_with_sampler() -> None:
    model = with_sampler(Duck(), CHAIN.draw)  # type: ignore[arg-type]
    assert isinstance(model.model, AdaptedModel)
    assert model.can_draw
    assert torch.equal(model.log_ratio(DATA, EDITS), CHAIN.log_ratio(DATA, EDITS))
    assert len(model.draw(4)) == 4


def test_constrain() -> None:
    def short(x: Sequences) -> Tensor:
        return x.lengths <= 3

    duck, expected = constrain(Duck(), short), constrain(CHAIN, short)  # type: ignore[arg-type]
    inside = DATA[short(DATA)]
    edits = zs().edits(inside)
    assert torch.equal(duck.log_joint(DATA), expected.log_joint(DATA))
    assert torch.equal(duck.log_ratio(inside, edits), expected.log_ratio(inside, edits))
    assert not duck.can_draw
    drawing = constrain(DrawingDuck(), short)  # type: ignore[arg-type]
    assert drawing.can_draw
    assert drawing.draw(30).lengths.max() <= 3


def test_tabulated_model() -> None:
    model = TabulatedModel(Duck(), 1, DATA)  # type: ignore[arg-type]
    assert model.is_local
    torch.testing.assert_close(model.log_ratio(DATA, EDITS), CHAIN.log_ratio(DATA, EDITS), rtol=0, atol=1e-9)
    assert not model.can_draw
    assert TabulatedModel(DrawingDuck(), 1).can_draw  # type: ignore[arg-type]


def test_zanella_sample() -> None:
    options: dict[str, Any] = {"start": DATA[:3], "time": 2.0, "progress": False}
    duck, expected = (zanella_sample(model, 12, **options) for model in (Duck(), CHAIN))  # type: ignore[arg-type]
    assert duck.sequences.to_lists() == expected.sequences.to_lists()


def without(name: str) -> Any:
    """A duck that lacks one of the methods of a model."""
    body = {own: value for own, value in vars(Duck).items() if own != name and not own.startswith("__")}
    return type("HalfDuck", (), body)()


@pytest.mark.parametrize("name", ["alphabet_size", "log_joint", "log_ratio"])
@pytest.mark.parametrize(
    "use",
    [
        lambda model: as_model(model, DATA),
        lambda model: ksd_check(model, DATA, **OPTIONS),
        lambda model: ksd_compare({"half": model, "chain": CHAIN}, DATA, progress=False),
    ],
    ids=["as_model", "ksd_check", "ksd_compare"],
)
def test_half_a_model_is_refused(use: Any, name: str) -> None:
    message = "expected a Pyro program, a distribution, or an object with log_joint and log_ratio, found HalfDuck"
    with pytest.raises(ValueError, match=message):
        use(without(name))


@pytest.mark.parametrize("name", ["alphabet_size", "log_joint", "log_ratio"])
@pytest.mark.parametrize(
    "use",
    [
        lambda model: with_sampler(model, CHAIN.draw),
        lambda model: constrain(model, lambda x: x.lengths > 0),
        lambda model: TabulatedModel(model, 1, DATA),
        lambda model: zanella_sample(model, 3, start=DATA, time=1.0, progress=False),
    ],
    ids=["with_sampler", "constrain", "TabulatedModel", "zanella_sample"],
)
def test_half_a_model_is_refused_where_a_model_is_wanted(use: Any, name: str) -> None:
    with pytest.raises(ValueError, match="found HalfDuck"):
        use(without(name))


@pytest.mark.parametrize(
    "use",
    [
        lambda model: as_model(model, DATA).draw(2),
        lambda model: as_model(model, DATA, parameters={"rate": torch.tensor(1.0)}),
        lambda model: ksd_check(model, DATA, bootstrap="parametric", **OPTIONS),
        lambda model: ksd_check(model, DATA, posterior={"rate": torch.ones(2)}, **OPTIONS),
    ],
    ids=["draw", "parameters", "bootstrap", "posterior"],
)
def test_messages_name_the_class_of_the_user(use: Any) -> None:
    with pytest.raises(ValueError, match="found Duck"):
        use(Duck())


def test_refit_gets_the_object_of_the_user() -> None:
    duck, seen = DrawingDuck(), list[Any]()

    def refit(model: Any, sequences: Sequences) -> Any:
        seen.append(model)
        return model

    check = ksd_check(duck, DATA, refit=refit, num_bootstrap=3, progress=False)
    assert check["ksd"].attrs["kind"] == "refit"
    assert len(seen) == 4
    assert all(model is duck for model in seen)


class Whatever(SequenceModel):
    """A model that gives what it is made with."""

    alphabet_size = SIZE

    def __init__(self, value: Any) -> None:
        self.value = value

    def log_joint(self, sequences: Sequences) -> Any:
        return self.value


@pytest.mark.parametrize("kind", [Whatever, LoopProgram, int])
def test_a_class_is_no_model(kind: type) -> None:
    message = rf"model: expected a model, found the class {kind.__name__}; pass an instance, {kind.__name__}\(...\)"
    with pytest.raises(ValueError, match=message):
        adapted(kind)


@pytest.mark.parametrize("wrong", [None, 0.5, [0.5] * 20, torch.zeros(3), torch.zeros(20, 1)])
def test_what_is_no_log_joint_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"log_joint: expected a floating-point tensor \[20\] on the CPU, found "):
        ksd_check(Whatever(wrong), DATA, **OPTIONS)


def test_global_random_numbers_of_an_object_follow_the_generator() -> None:
    class Own:
        """Its sampler takes no notice of the generator."""

        alphabet_size = 3

        def log_joint(self, sequences: Sequences) -> Tensor:
            return -sequences.lengths.double()

        def log_ratio(self, sequences: Sequences, edits: Any) -> Tensor:
            return -edits.owner.double()

        def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
            return Sequences.of(torch.randint(3, (num_sequences, 9)).tolist(), 3)

    model = required_model(Own())
    state = torch.get_rng_state()
    one, same, other = (model.draw(5, torch.Generator().manual_seed(seed)).to_lists() for seed in (1, 1, 2))
    assert one == same != other
    assert torch.get_rng_state().equal(state)
