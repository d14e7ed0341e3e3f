# SPDX-License-Identifier: Apache-2.0
"""The edits of an operator and their weights under a model."""

from __future__ import annotations

import oracle
import pytest
import torch
from example_models import Unsampled, walk, walks
from torch import Tensor

from pyro_ksd.edits.neighborhoods import zs
from pyro_ksd.edits.splices import Edits
from pyro_ksd.models import SequenceModel
from pyro_ksd.models.model_batch import ModelList
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.stein.assembly import stein_matrices
from pyro_ksd.stein.operators import TailBlockOperator, ZanellaOperator
from pyro_ksd.stein.views import default_views
from pyro_ksd.stein.weighting import edits_with_ratios, scored_edits, weighted, weighted_edits


@pytest.mark.parametrize(("balancing", "g"), [("barker", oracle.barker), ("mpf", oracle.mpf)])
def test_weights_against_plain_loops(balancing: str, g: object) -> None:
    model, data = walk(hold=0.2), walks(4)
    found = weighted_edits(model, ZanellaOperator(zs(), balancing), data)
    expected = {}
    for row, x in enumerate(map(tuple, data.to_lists())):
        around = sorted(oracle.neighbors(x, 5))
        log_p = dict(zip([x, *around], model.log_joint(Sequences.of([x, *around], 5)).tolist(), strict=True))
        weights = oracle.operator(log_p.__getitem__, x, around, g)  # type: ignore[arg-type]
        expected |= {(row, y): weight for y, weight in weights.items() if y != x}
    after = map(tuple, found.edits.apply(data).to_lists())
    rows = zip(found.edits.owner.tolist(), after, strict=True)
    assert dict(zip(rows, found.weights.tolist(), strict=True)) == pytest.approx(expected, rel=1e-10, abs=1e-14)
    assert found.weights.dtype == torch.double
    assert (found.begin, found.sequences) == (0, data)


@pytest.mark.parametrize("operator", [ZanellaOperator(), TailBlockOperator()])
def test_several_models_have_the_weights_of_each(operator: ZanellaOperator | TailBlockOperator) -> None:
    models, data = [walk(), walk(hold=0.4)], walks(6)
    found = weighted_edits(ModelList(models), operator, data, begin=3)
    assert found.begin == 3
    assert found.weights.shape == (2, len(found.edits))
    for model, weights in zip(models, found.weights, strict=True):
        torch.testing.assert_close(weights, weighted_edits(model, operator, data).weights, rtol=1e-9, atol=1e-12)


class OnePerRow(Unsampled):
    """A model of its own for each row of the data: the later the row, the more the walk holds."""

    def __init__(self, begin: int = 0) -> None:
        super().__init__(walk(hold=begin / 10))
        self.begin = begin

    def for_rows(self, begin: int) -> SequenceModel:
        return OnePerRow(self.begin + begin)


def test_a_model_is_asked_for_the_rows_of_the_chunk() -> None:
    data, operator = walks(3), ZanellaOperator()
    for begin in (0, 4):
        found = weighted_edits(OnePerRow(), operator, data, begin)
        expected = weighted_edits(walk(hold=begin / 10), operator, data)
        assert torch.equal(found.weights, expected.weights)


class Broken(Unsampled):
    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        ratio = super().log_ratio(sequences, edits)
        ratio[edits.owner == 1] = torch.nan
        return ratio


def test_nan_from_the_model_is_an_error_that_shows_the_edit() -> None:
    sequences = Sequences.of([[0, 1], [2]], 5)
    with pytest.raises(
        ValueError, match=r"found NaN where sequence 1, \[2\], becomes \[3\]; the model gives NaN there"
    ):
        stein_matrices(Broken(walk()), sequences, default_views())


def test_nan_in_a_later_chunk_is_shown_with_its_row_in_the_data() -> None:
    sequences = Sequences.of([[0, 1], [2]], 5)
    with pytest.raises(ValueError, match=r"found NaN where sequence 8, \[2\], becomes \[3\]"):
        weighted_edits(Broken(walk()), ZanellaOperator(), sequences, begin=7)


def test_nan_under_one_of_several_models_is_an_error() -> None:
    class Apart(ModelList):
        def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
            ratio = super().log_ratio(sequences, edits)
            ratio[1, edits.owner == 1] = torch.nan
            return ratio

    sequences = Sequences.of([[0, 1], [2]], 5)
    with pytest.raises(
        ValueError, match=r"found NaN where sequence 1, \[2\], becomes \[3\]; the model gives NaN there"
    ):
        weighted_edits(Apart([walk(), walk()]), ZanellaOperator(), sequences)


class Ratios(SequenceModel):
    """A model that gives the log-ratios that it is made with."""

    alphabet_size = 5

    def __init__(self, value: object) -> None:
        self.value = value

    def log_joint(self, sequences: Sequences) -> Tensor:
        return -1.0 * sequences.lengths

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        return self.value  # type: ignore[return-value]


@pytest.mark.parametrize("wrong", [None, 0.5, [0.5], torch.zeros(3)])
def test_what_are_no_log_ratios_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"log_ratio: expected a floating-point tensor \[..., \d+\] on the CPU"):
        weighted_edits(Ratios(wrong), ZanellaOperator(), walks(3))


def test_gradients_of_a_model_are_not_tracked() -> None:
    cost = torch.tensor(-1.0, requires_grad=True)

    class Trained(SequenceModel):
        alphabet_size = 5

        def log_joint(self, sequences: Sequences) -> Tensor:
            return cost * sequences.lengths

    found = weighted_edits(Trained(), ZanellaOperator(), walks(3))
    assert not found.weights.requires_grad


@pytest.mark.parametrize("dtype", [torch.long, torch.float, torch.double])
def test_log_ratios_of_any_dtype_become_doubles(dtype: torch.dtype) -> None:
    class Whole(Unsampled):
        """Each symbol costs 2."""

        def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
            return (-2 * (edits.new_lengths(sequences.lengths) - sequences.lengths[edits.owner])).to(dtype)

    data = walks(3)
    edits, log_ratio = edits_with_ratios(Whole(walk()), zs(), data)
    assert log_ratio.dtype == torch.double
    assert log_ratio.tolist() == (-2.0 * (edits.new_lengths(data.lengths) - data.lengths[edits.owner])).tolist()


def test_wrong_arguments_are_named() -> None:
    scored = scored_edits(walk(), zs(), walks(2))
    with pytest.raises(ValueError, match="neighborhood: expected"):
        scored_edits(walk(), ZanellaOperator(), walks(2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="scored: expected edits with log-ratios"):
        weighted(walks(2), ZanellaOperator())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="operator: expected an operator"):
        weighted(scored, zs())  # type: ignore[arg-type]


@pytest.mark.parametrize(("begin", "words"), [(None, r"found NaN where \["), (0, "sequence 1, "), (7, "sequence 8, ")])
def test_an_edit_with_nan_is_shown_with_its_row(begin: int | None, words: str) -> None:
    class Broken(Unsampled):
        def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
            return super().log_ratio(sequences, edits).masked_fill(edits.owner == 1, torch.nan)

    with pytest.raises(ValueError, match=words):
        edits_with_ratios(Broken(walk()), zs(), walks(3), begin)
