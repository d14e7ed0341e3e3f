# SPDX-License-Identifier: Apache-2.0
"""How large the misfit is, and the lengths of the data and of the model."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from example_models import Unsampled, walk  # noqa: E402
from synthetic import SIZES  # noqa: E402

from pyro_ksd import MarkovSequence, Sequences, View, ksd_check, summary  # noqa: E402
from pyro_ksd.checks.check_setup import model_and_views  # noqa: E402
from pyro_ksd.fit_tests.absolute import goodness_of_fit  # noqa: E402
from pyro_ksd.fit_tests.localization import localize  # noqa: E402
from pyro_ksd.fit_tests.misfit_extent import extent  # noqa: E402
from pyro_ksd.kernels import (  # noqa: E402
    LengthKernel,
)
from pyro_ksd.results.validation import check_result  # noqa: E402
from pyro_ksd.stein.operators import TailBlockOperator  # noqa: E402

DATA = walk(hold=0.5).draw(12, torch.Generator().manual_seed(0))


def test_the_extent_is_in_the_groups() -> None:
    data = walk(hold=0.5).draw(50, torch.Generator().manual_seed(0))
    check = ksd_check(walk(hold=0.1), data, num_bootstrap=99, seed=3, tolerance=0.02, level=0.06, progress=False)
    setup = model_and_views(walk(hold=0.1), data, None, None, None)
    result = goodness_of_fit(walk(hold=0.1), data, setup.views, num_bootstrap=99, seed=3)
    size = extent(result, localize(result), data, setup.drawn, level=0.06, tolerance=0.02, seed=3)
    ksd, ngrams = check["ksd"].to_dataset(), check["ksd_ngram"].to_dataset()
    assert size.tolerated is not None
    assert size.drawn is not None
    assert float(ksd["foreign_share_overall"]) == size.foreign.share_overall > 0
    np.testing.assert_array_equal(ksd["foreign_share"], size.foreign.share)
    assert ksd.attrs["tolerance"] == 0.02
    np.testing.assert_array_equal(ksd["tolerance_p_value"], size.tolerated.p_value)
    assert float(ksd["tolerance_p_value_overall"]) == size.tolerated.p_value_overall < 0.06
    np.testing.assert_allclose(ksd["discrepancy"], size.tolerated.closeness.estimate, rtol=1e-10)
    np.testing.assert_allclose(ksd["discrepancy_upper"], size.tolerated.closeness.upper, rtol=1e-10)
    factors, told = size.tolerated.factors, check["ksd_factor"].to_dataset()
    assert told.attrs["tolerance"] == 1.25
    assert [one.view for one in factors] == [0, 1, 2]
    owners = [
        name for name, one in zip(("content-1", "content-2", "content-3"), factors, strict=True) for _ in one.symbols
    ]
    assert told["view_name"].values.tolist() == owners
    codes = [[code for code in row if code >= 0] for row in told["symbol"].values.tolist()]
    assert codes == [[code for code in row if code >= 0] for one in factors for row in one.symbols.tolist()]
    assert told["label"].values.tolist() == ["".join(map(str, row)) for row in codes]
    for name, field in {"factor": "log_factor", "factor_low": "low", "factor_high": "high"}.items():
        np.testing.assert_allclose(
            told[name], torch.cat([getattr(one.tilts, field).exp() for one in factors]), rtol=1e-7
        )
    for name in ("within", "outside"):
        np.testing.assert_array_equal(told[name], torch.cat([getattr(one, f"is_{name}") for one in factors]))
    assert told["outside"].values.any()
    for name in SIZES:
        expected = torch.cat([getattr(sizes, name) for sizes in size.sizes])
        np.testing.assert_allclose(ngrams[name], expected, rtol=1e-9)
        assert np.isfinite(ngrams[name].values).any()
    drawn = check["ksd_draws"].to_dataset()
    codes = Sequences.of(drawn["token"].values, 5, pad=-1).to_lists()
    assert codes == size.drawn[:20].to_lists()
    assert drawn["length"].values.tolist() == [len(x) for x in codes]
    assert drawn["token"].attrs["alphabet"] == check["ksd_data"]["token"].attrs["alphabet"]


@pytest.mark.parametrize("impossible", [0, 2])
def test_lengths_are_those_of_the_data_and_of_the_model(impossible: int) -> None:
    ends = torch.full((3,), 0.25, dtype=torch.double)
    model = MarkovSequence.from_transitions(torch.ones(3) / 3, torch.ones(3, 3) / 3, ends)
    lists = [[0, 1], [2], [1, 1, 1], [2, 1], *[[0] * 20] * 2]
    whole = Sequences.of([*[[]] * impossible, *lists], 3)  # the chain has no empty sequences
    context = pytest.warns(UserWarning, match="probability zero|impossible") if impossible else nullcontext()
    with context:
        check = ksd_check(model, whole, num_bootstrap=20, progress=False)
    lengths = check["ksd_length"].to_dataset()
    assert lengths.attrs["num_drawn"] == 100
    observed = {length: lengths["observed"].values[length] for length in (1, 2, 3, 20)}
    assert observed == pytest.approx({1: 1 / 6, 2: 2 / 6, 3: 1 / 6, 20: 2 / 6})
    assert lengths["observed"].values.sum() == pytest.approx(1)
    assert lengths["length"].values.tolist() == list(range(lengths.sizes["length"]))
    expected = lengths["expected"].values
    assert expected[0] == 0
    assert expected.sum() == pytest.approx(1)
    np.testing.assert_allclose(expected[1:15], 0.25 * 0.75 ** np.arange(14), rtol=0.01)


def test_lengths_of_a_model_without_draws_go_beyond_those_of_the_data() -> None:
    ends = torch.full((3,), 0.25, dtype=torch.double)
    model = MarkovSequence.from_transitions(torch.ones(3) / 3, torch.ones(3, 3) / 3, ends)
    data = Sequences.of([[0, 1, 1], [2, 0, 1], [1, 1, 2], [2, 1, 0, 0]] * 5, 3)
    check = ksd_check(Unsampled(model), data, views="length", num_bootstrap=20, progress=False)
    check_result(check, "check")
    lengths = check["ksd_length"].to_dataset()
    assert (lengths.attrs["num_drawn"], lengths.attrs["complete"]) == (0, 1)
    assert lengths.attrs["unseen"] == pytest.approx(1 - 0.25 * (0.75**2 + 0.75**3))
    for name in ("expected", "expected_low", "expected_high"):  # only the length decides on the ratios
        np.testing.assert_allclose(lengths[name].values[:30], [0.0, *(0.25 * 0.75 ** np.arange(29))], rtol=1e-5)


def test_a_check_without_the_length_knows_no_lengths() -> None:
    check = ksd_check(walk(), DATA, views=["content-2"], num_bootstrap=5, progress=False)
    assert "ksd_length" not in check.children
    lengths = View("length", TailBlockOperator(), LengthKernel())  # its features are not made from the model
    check = ksd_check(walk(), DATA, views=[lengths], num_bootstrap=5, progress=False)
    assert "ksd_length" not in check.children
    assert summary(check).loc["length", "looks at"] == "the length"


def test_a_model_without_a_sampler_has_no_draws() -> None:
    check = ksd_check(Unsampled(walk()), DATA, num_bootstrap=5, progress=False)
    assert "ksd_draws" not in check.children
    assert "ksd_length" in check.children
