# SPDX-License-Identifier: Apache-2.0
"""Models around another model do themselves only what they change."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from pyro_programs import CHAIN, FEW_SEQUENCES

from pyro_ksd.edits.neighborhoods import Neighborhood, Substitutions, zs
from pyro_ksd.examples import random_walk
from pyro_ksd.models import TabulatedModel, constrain, with_sampler
from pyro_ksd.models.base import SequenceModel
from pyro_ksd.models.duck_typing import AdaptedModel
from pyro_ksd.models.wrappers.base import ModelWrapper
from pyro_ksd.sequences.container import Sequences

OWN = {"for_rows", "is_normalized", "is_threadsafe", "length_distribution"}
"""What each wrapper has to say itself: it may spoil what the model within promises."""

PUBLIC = [name for name in vars(SequenceModel) if not name.startswith("_") and name not in OWN]


CHAIN_MODEL = random_walk(3)


def recording() -> tuple[SequenceModel, list[tuple[Any, ...]], dict[str, object]]:
    """A model that writes down what it is asked, and answers each method with an object of its own."""
    asked: list[tuple[Any, ...]] = []
    answers = {name: object() for name in PUBLIC}

    def method(name: str) -> Any:
        def answer(self: Any, *arguments: Any) -> object:
            asked.append((name, *arguments))
            return answers[name]

        return property(answer) if isinstance(vars(SequenceModel)[name], property) else answer

    model = type("Recording", (SequenceModel,), {name: method(name) for name in PUBLIC})()
    return model, asked, answers


def test_a_wrapper_promises_nothing_by_itself() -> None:
    assert not ModelWrapper(CHAIN_MODEL).is_normalized
    assert not ModelWrapper(CHAIN_MODEL).is_threadsafe
    assert ModelWrapper(CHAIN_MODEL).length_distribution() is None
    assert CHAIN_MODEL.is_threadsafe
    assert CHAIN_MODEL.length_distribution() is not None


@pytest.mark.parametrize("name", PUBLIC)
def test_every_method_of_a_model_is_passed_on(name: str) -> None:
    model, asked, answers = recording()
    wrapper: SequenceModel = ModelWrapper(model)
    if isinstance(vars(SequenceModel)[name], property):
        found, arguments = getattr(wrapper, name), ()
    else:
        arguments = tuple(object() for _ in list(inspect.signature(getattr(SequenceModel, name)).parameters)[1:])
        found = getattr(wrapper, name)(*arguments)
    assert asked == [(name, *arguments)]
    assert found is answers[name] or name == "check_data"


def test_the_methods_of_a_model_are_known() -> None:
    assert set(PUBLIC) >= {"alphabet_size", "log_joint", "log_ratio", "can_draw", "draw", "check_data"}
    assert ModelWrapper(CHAIN).for_rows(3).log_joint(FEW_SEQUENCES).equal(CHAIN.log_joint(FEW_SEQUENCES))


class Particular(SequenceModel):
    """A chain with edits, data and sites of its own."""

    alphabet_size = CHAIN.alphabet_size

    def log_joint(self, sequences: Sequences) -> torch.Tensor:
        return CHAIN.log_joint(sequences)

    @property
    def default_neighborhood(self) -> Neighborhood:
        return Substitutions(2)

    def check_data(self, sequences: Sequences) -> None:
        raise ValueError("not these")

    def impossible_sites(self, sequences: Sequences) -> list[str]:
        return ["here"] * len(sequences)


@pytest.mark.parametrize("kind", ["sampler", "constraint", "table"])
def test_wrappers_keep_what_they_do_not_change(kind: str) -> None:
    within = Particular()
    wrapper: ModelWrapper = {
        "sampler": lambda: with_sampler(within, CHAIN.draw),
        "constraint": lambda: constrain(within, lambda x: x.lengths > 0),
        "table": lambda: TabulatedModel(within, 1),
    }[kind]()
    assert wrapper.model is within
    assert isinstance(wrapper.default_neighborhood, Substitutions)
    assert wrapper.impossible_sites(FEW_SEQUENCES[:2]) == ["here", "here"]
    assert wrapper.can_draw == (kind == "sampler")
    if kind != "constraint":  # which has data of its own to check
        with pytest.raises(ValueError, match="not these"):
            wrapper.check_data(FEW_SEQUENCES)
    edits = zs().edits(FEW_SEQUENCES)
    expected = CHAIN.log_ratio(FEW_SEQUENCES, edits)  # the empty sequence is impossible anyway
    torch.testing.assert_close(wrapper.log_ratio(FEW_SEQUENCES, edits), expected, rtol=0, atol=1e-9)


def test_wrappers_around_wrappers() -> None:
    model = with_sampler(TabulatedModel(constrain(Particular(), lambda x: x.lengths > 0), 1), CHAIN.draw)
    assert isinstance(model.default_neighborhood, Substitutions)
    assert model.impossible_sites(FEW_SEQUENCES[:1]) == ["here"]
    assert model.can_draw


def test_the_model_within_may_be_an_object_with_the_methods_of_a_model() -> None:
    class Duck:
        alphabet_size, log_joint, log_ratio = CHAIN.alphabet_size, CHAIN.log_joint, CHAIN.log_ratio

    wrapper = ModelWrapper(Duck())  # type: ignore[arg-type]
    assert isinstance(wrapper.model, AdaptedModel)
    assert not wrapper.can_draw
    assert wrapper.alphabet_size == CHAIN.alphabet_size
