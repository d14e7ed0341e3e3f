# SPDX-License-Identifier: Apache-2.0
"""The base of distributions over sequences, with a simple distribution on it."""

from __future__ import annotations

import pytest
import torch
from example_models import bounded_chain
from torch import Tensor

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.models import MarkovSequence
from pyro_ksd.models.distributions.base import SequenceConstraint, SequenceDistribution
from pyro_ksd.sequences.container import Sequences


class Ones(SequenceDistribution):
    """Sequences of ones; a rate for each member of the batch says how soon they end."""

    arg_constraints = {}  # noqa: RUF012

    def __init__(self, rate: Tensor, max_length: int = 6, validate_args: bool | None = None) -> None:
        self._rate = rate.reshape(-1)
        super().__init__(2, max_length, rate.shape, validate_args)

    @property
    def rate(self) -> Tensor:
        return self._expanded(self._rate)

    def _log_prob(self, tokens: Tensor, rows: Tensor) -> Tensor:
        assert tokens.dtype == rows.dtype == torch.long
        return (-self._rate[rows] * (tokens != -1).sum(1)).masked_fill((tokens == 0).any(1), -torch.inf)

    def _generate(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        lengths = torch.randint(1, 4, (shape.numel(),), generator=generator)
        return torch.where(torch.arange(3) < lengths[:, None], 1, -1)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        self._check_one_model_for(sequences)
        return self.log_joint(edits.apply(sequences)) - self.log_joint(sequences)[edits.owner]


VALUE = torch.tensor([[1, 1, -1], [-1, -1, -1], [1, 0, -1]])
LENGTHS = torch.tensor([2.0, 0.0, torch.inf])


def test_bad_max_length():
    with pytest.raises(ValueError, match="max_length: expected an integer of at least 1, found 0"):
        MarkovSequence(torch.full((3, 3), 1 / 3), max_length=0)


def test_constraint_of_padded_sequences() -> None:
    constraint = SequenceConstraint(2)
    value = torch.tensor([[0, 1, -1], [-1, -1, -1], [0, 2, 1], [-1, 1, -1], [0, -2, -1]])
    assert constraint.check(value).tolist() == [True, True, False, False, False]
    expected = [[0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 1, 0], [0, 1, 0]]
    assert constraint.violations(value).long().tolist() == expected
    assert constraint.check(value.view(5, 1, 3)).shape == (5, 1)
    assert constraint.check(torch.tensor([0.5, -1.0])).item() is False
    assert constraint.event_dim == 1
    assert constraint.is_discrete


def test_shapes_of_log_prob() -> None:
    rate = torch.tensor([0.5, 1.0, 2.0])
    assert Ones(torch.tensor(0.5)).log_prob(VALUE).tolist() == (-0.5 * LENGTHS).tolist()
    assert Ones(rate).log_prob(VALUE).tolist() == (-rate * LENGTHS).tolist()
    assert Ones(rate).log_prob(VALUE[0]).tolist() == (-rate * 2).tolist()
    assert Ones(rate).log_prob(VALUE[:, None]).shape == (3, 3)
    assert Ones(rate[:, None]).log_prob(VALUE).equal(-rate[:, None] * LENGTHS)


def test_samples_are_padded_to_the_event() -> None:
    drawn = Ones(torch.ones(2)).sample(torch.Size([5]))
    assert drawn.shape == (5, 2, 6)
    assert (drawn[..., 3:] == -1).all()
    assert (drawn[..., 0] == 1).all()


def test_draws_are_sequences_with_nothing_after_the_end() -> None:
    drawn = Ones(torch.tensor(1.0)).draw(20, torch.Generator().manual_seed(0))
    assert isinstance(drawn, Sequences)
    assert drawn.alphabet == 2
    assert drawn.tokens.min() >= 0
    assert set(map(tuple, drawn.to_lists())) == {(1,), (1, 1), (1, 1, 1)}


def test_expanded_batches_share_their_parameters() -> None:
    model = Ones(torch.tensor([0.5, 1.0]))
    wide = model.expand((3, 2))
    assert (wide.batch_shape, model.batch_shape) == ((3, 2), (2,))
    assert wide.rate.equal(torch.tensor([[0.5, 1.0]] * 3))
    assert wide._rate is model._rate
    assert wide.log_prob(VALUE[0]).equal(torch.tensor([[-1.0, -2.0]] * 3))
    assert wide.sample().shape == (3, 2, 6)


def test_batches_and_other_alphabets_are_no_model_of_the_data() -> None:
    data = Sequences.of([[1, 1]], 2)
    assert Ones(torch.tensor(0.5)).log_joint(data).tolist() == [-1.0]
    for call in (lambda m: m.log_joint(data), lambda m: m.log_ratio(data, zs().edits(data)), lambda m: m.draw(2)):
        with pytest.raises(ValueError, match=r"expected one model .* found a batch of models of shape \(3,\)"):
            call(Ones(torch.ones(3)))
    with pytest.raises(ValueError, match="the model's 2 symbols, found an alphabet of 3"):
        Ones(torch.tensor(0.5)).log_joint(Sequences.of([[1]], 3))


def test_values_are_validated_unless_the_user_says_no() -> None:
    wrong = torch.tensor([1, -1, 1])
    with pytest.raises(ValueError, match=r"expected codes 0..1, then only the padding -1, found 1 at index \[2\]"):
        Ones(torch.tensor(0.5), validate_args=True).log_prob(wrong)
    assert Ones(torch.tensor(0.5), validate_args=False).log_prob(wrong).item() == -1.0


def test_a_subclass_must_write_its_probabilities_and_draws() -> None:
    class Half(SequenceDistribution):
        arg_constraints = {}  # noqa: RUF012

    with pytest.raises(TypeError, match="_generate"):
        Half(2, 5, torch.Size(), None)  # type: ignore[abstract]


def test_one_sequence_can_be_drawn() -> None:
    assert len(bounded_chain().draw(1, torch.Generator().manual_seed(0))) == 1
