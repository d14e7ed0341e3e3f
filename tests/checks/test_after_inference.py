# SPDX-License-Identifier: Apache-2.0
"""Which arguments go together after an inference; results are tested in test_held_out_check and elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from checks.test_check_request import DEFAULTS

from pyro_ksd.checks.after_inference import check_alone, check_inference
from pyro_ksd.checks.check_request import CheckRequest
from pyro_ksd.checks.model_argument import ModelArgument


def fit(program: Any, sequences: Any) -> dict[str, Any]:
    return {}


def test_one_posterior_is_meant() -> None:
    check_inference(None, False, None, None)
    check_inference({}, True, None, None)
    check_inference(None, False, fit, 3)
    for arguments, message in [
        ((None, True, None, None), "held_out: expected posterior= beside it"),
        (({}, False, fit, None), "fit: expected no posterior= beside it"),
        (({}, False, None, 5), "folds: expected fit= beside it"),
        ((None, False, fit, 2), "folds: expected an integer of at least 3, found 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            check_inference(*arguments)


@pytest.mark.parametrize(
    ("argument", "request_", "refit", "named"),
    [
        ({"parameters": {}}, {}, None, "parameters="),
        ({"sampler": fit}, {}, None, "sampler="),
        ({}, {}, fit, "refit="),
        ({}, {"attribution": True, "gram": True}, None, "attribution=, gram="),
        ({}, {"bootstrap": "wild"}, None, "bootstrap="),
        ({}, {"tolerance": 0.1}, None, "tolerance="),
    ],
)
def test_arguments_without_a_meaning_are_refused(argument: Any, request_: Any, refit: Any, named: str) -> None:
    check_alone("fit", ModelArgument(len), CheckRequest(**DEFAULTS), None)
    with pytest.raises(ValueError, match=f"fit: expected it alone, found {named} beside it; leave out {named}"):
        check_alone("fit", ModelArgument(len, **argument), CheckRequest(**DEFAULTS | request_), refit)
