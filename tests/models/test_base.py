# SPDX-License-Identifier: Apache-2.0
"""What a model gets from the base class if it writes no more than its log-joint."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from pyro_ksd import Sequences, ksd_check
from pyro_ksd.edits.neighborhoods import CustomNeighborhood, DoubleSubstitutions, Neighborhood, zs
from pyro_ksd.models.base import SequenceModel, _same, check_alphabet_size
from pyro_ksd.sequences.covariates import Covariates

SIZE = 3
SPACE = Sequences.of([list(x) for length in range(4) for x in product(range(SIZE), repeat=length)], SIZE)
DATA = Sequences.of([[0, 1, 0], [2], [0, 2, 0, 1, 0], [1, 0], [2, 0, 2]], SIZE)


class Minimal(SequenceModel):
    """The score of a sequence depends on its length and on whether its ends are equal; ``11`` is impossible."""

    alphabet_size = SIZE

    def log_joint(self, sequences: Sequences) -> Tensor:
        scores = [-2.0 * len(x) + (0.7 if x[:1] == x[-1:] else 0.0) for x in sequences.to_lists()]
        banned = (sequences.padded(-1).unfold(1, 2, 1) == 1).all(2).any(1) if sequences.width > 1 else False
        return torch.where(torch.as_tensor(banned), -torch.inf, torch.tensor(scores, dtype=torch.double))


class Drawing(Minimal):
    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        return DATA[torch.randint(len(DATA), (num_sequences,), generator=generator)]


@pytest.mark.parametrize(
    "around",
    [zs(), DoubleSubstitutions(), CustomNeighborhood(lambda x: [x[::-1], x + x, ()])],
    ids=["zs", "double substitutions", "custom"],
)
def test_log_ratio_is_the_difference_of_log_joints(around: Neighborhood) -> None:
    model = Minimal()
    possible = SPACE[model.log_joint(SPACE) > -torch.inf]
    edits = around.edits(possible)
    found = model.log_ratio(possible, edits)
    expected = model.log_joint(edits.apply(possible)) - model.log_joint(possible)[edits.owner]
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-13)
    assert found.isfinite().any()
    assert (found == -torch.inf).any()


def test_size_and_log_joint_must_be_written() -> None:
    class WithoutScore(SequenceModel):
        alphabet_size = SIZE

    class WithoutSize(SequenceModel):
        def log_joint(self, sequences: Sequences) -> Tensor:
            return torch.zeros(len(sequences))

    with pytest.raises(TypeError, match="log_joint"):
        WithoutScore()  # type: ignore[abstract]
    with pytest.raises(TypeError, match="alphabet_size"):
        WithoutSize()  # type: ignore[abstract]


def test_without_a_draw_of_its_own_a_model_cannot_be_sampled() -> None:
    assert Minimal().can_draw is False
    message = r"expected a model that can be sampled, found Minimal, which cannot; .* with_sampler\(model, sampler\)"
    with pytest.raises(ValueError, match=message):
        Minimal().draw(3)
    with pytest.raises(ValueError, match="let a program draw sequences where it is given num_sequences="):
        Minimal().draw(3, torch.Generator())


def test_with_a_draw_of_its_own_a_model_can_be_sampled() -> None:
    class Inheriting(Drawing):
        """Draws as its parent does."""

    assert Drawing().can_draw is True
    assert Inheriting().can_draw is True
    assert len(Drawing().draw(7)) == 7


def test_nothing_is_special_by_default() -> None:
    model = Minimal()
    assert model.default_neighborhood is None
    assert model.check_data(SPACE) is None  # type: ignore[func-returns-value]
    assert model.impossible_sites(SPACE[:3]) == ["", "", ""]
    assert model.impossible_sites(SPACE[:0]) == []
    assert model.for_rows(5) is model


@pytest.mark.usefixtures("any_sampler")
def test_a_model_with_a_log_joint_alone_is_checked() -> None:
    wild = ksd_check(Minimal(), DATA, num_bootstrap=20, progress=False)["ksd"]
    assert wild.attrs["kind"] == "wild"
    assert wild.attrs["edits"] == "deletion, insertion, substitution"
    parametric = ksd_check(Drawing(), DATA, num_bootstrap=20, progress=False)["ksd"]
    assert parametric.attrs["kind"] == "parametric"
    # Features of the length are made at sequences of the model, or at the data if it cannot be sampled.
    others = [name for name in wild["view"].values if name != "length"]
    assert parametric["statistic"].sel(view=others).equals(wild["statistic"].sel(view=others))


def test_alphabets_must_have_the_same_size() -> None:
    check_alphabet_size(Minimal(), SPACE)
    for size, more in ((2, "$"), (4, r"; perhaps it does not know 3 \(in no sequence\)$")):
        found = (
            rf"the model's 3 symbols, found an alphabet of {size}; state it in Sequences.of\(data, alphabet=\.\.\.\)"
        )
        message = f"{found}{more}"
        with pytest.raises(ValueError, match=message):
            check_alphabet_size(Minimal(), Sequences.of([[0]], size))


class Dosed(Drawing):
    """Its probabilities change with a covariate, but its draws do not."""

    def log_joint(self, sequences: Sequences) -> Tensor:
        assert sequences.covariates is not None
        return super().log_joint(sequences) + sequences.covariates.values["dose"]  # type: ignore[call-overload]


def test_draws_of_a_model_that_ignores_covariates_have_them() -> None:
    covariates = Covariates.of({"dose": torch.arange(30.0)}, 30)
    found = Drawing().draw_given(covariates, torch.Generator().manual_seed(0))
    assert found.to_lists() == Drawing().draw(30, torch.Generator().manual_seed(0)).to_lists()
    assert found.covariates is not None
    assert found.covariates.values["dose"].tolist() == list(range(30))  # type: ignore[call-overload]


@pytest.mark.parametrize("row", [0, 29])
def test_a_model_that_depends_on_covariates_must_draw_for_them(row: int) -> None:
    dose = torch.zeros(30)
    dose[row] = 1.0
    with pytest.raises(ValueError, match=r"^draw: expected a model that ignores covariates, found Dosed, whose"):
        Dosed().draw_given(Covariates.of({"dose": dose}, 30))


def test_the_same_numbers() -> None:
    values = torch.tensor([1.0, -torch.inf, torch.nan])
    assert _same(values, values.double())
    assert not _same(values, values + 1)


def test_a_model_says_nothing_of_itself_unless_it_is_told_to() -> None:
    class Own(SequenceModel):
        alphabet_size = 2

        def log_joint(self, sequences: Sequences) -> Tensor:
            return -sequences.lengths.double()

    own = Own()
    assert not own.is_normalized
    assert not own.is_threadsafe
    assert not own.can_draw
    assert own.length_distribution() is None


@pytest.mark.parametrize("known", [2, 3])
def test_data_may_have_as_many_symbols_as_the_model(known: int) -> None:
    class Own(SequenceModel):
        alphabet_size = known

        def log_joint(self, sequences: Sequences) -> Tensor:
            return -sequences.lengths.double()

    check_alphabet_size(Own(), Sequences.of([[0]], known))
    for other in (known - 1, known + 1):
        with pytest.raises(ValueError, match=f"{known} symbols, found an alphabet of {other}"):
            check_alphabet_size(Own(), Sequences.of([[0]], other))
