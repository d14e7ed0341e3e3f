# SPDX-License-Identifier: Apache-2.0
"""The programs of the documentation run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyro
import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("page", ["models.md", "which_check.md"])
def test_the_blocks_of_a_page_run_one_after_the_other(page: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, Any] = {}
    pyro.clear_param_store()
    for block in blocks:
        names.pop("check", None)
        exec(compile(block, page, "exec"), names)
        if "_check(" in block:
            assert 0 < float(names["check"]["ksd"]["p_value_overall"]) <= 1
