# SPDX-License-Identifier: Apache-2.0
"""Models of users that do not score each sequence by itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from pyro_programs import CHAIN, SIZE
from torch import Tensor

from pyro_ksd import ksd_check, ksd_compare
from pyro_ksd.edits.splices import Edits
from pyro_ksd.models import SequenceModel
from pyro_ksd.models.batch_independence import check_scores_alone
from pyro_ksd.sequences.container import Sequences

DATA = CHAIN.draw(40, torch.Generator().manual_seed(0))
GENERATOR = np.random.default_rng(0)


class Own(SequenceModel):
    """The chain, with something added to its log-joints."""

    alphabet_size = SIZE

    def __init__(self, more: Callable[[Sequences], Tensor]) -> None:
        self.more = more

    def log_joint(self, sequences: Sequences) -> Tensor:
        return CHAIN.log_joint(sequences) + self.more(sequences)


class Duck:
    """The same without the base class."""

    alphabet_size = SIZE

    def __init__(self, more: Callable[[Sequences], Tensor]) -> None:
        self.more = more

    def log_joint(self, sequences: Sequences) -> Tensor:
        return CHAIN.log_joint(sequences) + self.more(sequences)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        return self.log_joint(edits.apply(sequences)) - self.log_joint(sequences)[edits.owner]


TABLE = torch.arange(10_000) % 2


@pytest.mark.parametrize("kind", [Own, Duck])
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (lambda x: TABLE[: len(x)] * x.lengths, "depends on the row of the batch: .* pass .* covariates: Sequences.wi"),
        (lambda x: torch.tensor(np.random.default_rng(0).normal(size=len(x))), "depends on the row of the batch"),
        (lambda x: torch.tensor(GENERATOR.normal(size=len(x))), "is not repeatable: the same batch gave"),
        (lambda x: 0.1 * x.tokens.sum().expand(len(x)), "changes with the other sequences of the batch"),
        (lambda x: 0.1 * x.lengths / x.lengths.max(), "changes with the other sequences of the batch"),
        (
            lambda x: 0.1 * (x.tokens == 0).sum(1),
            "changes with the padding after its end, .* where sequences.mask is true",
        ),
    ],
)
def test_mistakes_are_named(kind: type, more: Callable[[Sequences], Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=rf"the log-joint of a sequence under {kind.__name__} {message}"):
        ksd_check(kind(more), DATA, num_bootstrap=20, progress=False)


def test_tables_that_are_too_short_are_those_of_rows() -> None:
    table = torch.randn(len(DATA))
    message = "scores 8 sequences, but fails on 41 with .*; if by the row of the batch, pass what differs .* as covaria"
    for more in (lambda x: table[torch.arange(len(x))], lambda x: table[: len(x)] + 0 * x.lengths):
        model = Own(more)
        with pytest.raises(ValueError, match=message):
            check_scores_alone(model, DATA)


def test_comparisons_check_their_models_too() -> None:
    wrong = Own(lambda x: TABLE[: len(x)] * x.lengths)
    with pytest.raises(ValueError, match="model 'wrong': the log-joint of a sequence under Own depends on the row"):
        ksd_compare({"right": CHAIN, "wrong": wrong}, DATA, progress=False)


def test_right_models_pass() -> None:
    groups = torch.arange(len(DATA)) % 2
    models = [
        Own(lambda x: -0.3 * x.lengths),
        Own(lambda x: 0.1 * (x.tokens * x.mask).sum(1)),
        Own(lambda x: torch.where(x.lengths > 3, -torch.inf, 0.0)),
    ]
    for model in models:
        check_scores_alone(model, DATA)
    by_group = Own(lambda x: 0.1 * x.covariates.values * x.lengths)  # type: ignore[union-attr, operator]
    known = DATA.with_covariates(groups)
    check_scores_alone(by_group, known)


def test_positions_beyond_those_of_the_data_need_no_scores() -> None:
    by_position = torch.randn(DATA.width)
    model = Own(lambda x: (by_position[: x.width].expand(x.tokens.shape) * x.mask).sum(1))
    check_scores_alone(model, DATA)


class OneByOne(Own):
    """A model that scores one sequence at a time."""

    is_costly = True


def test_models_that_score_one_sequence_at_a_time_are_not_asked() -> None:
    runs = []
    model = OneByOne(lambda x: (runs.append(len(x)), torch.zeros(len(x)))[1])
    check_scores_alone(model, DATA)
    assert not runs
    check_scores_alone(Own(model.more), DATA)
    assert runs == [8, 41, 8]  # a few, many rows, and more padding
