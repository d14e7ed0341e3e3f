# SPDX-License-Identifier: Apache-2.0
"""What is wrong with pages is found in a browser."""

from __future__ import annotations

from pathlib import Path

import browser
import pytest

HEAD = '<!doctype html><link rel="icon" href="data:,"><meta name="viewport" content="width=device-width">'


@pytest.mark.skipif(bool(browser.MISSING), reason=browser.MISSING)
def test_wide_pages_and_messages_on_the_console_are_found(tmp_path: Path) -> None:
    (tmp_path / "right.html").write_text(f"{HEAD}<p>words</p>")
    (tmp_path / "wide.html").write_text(f'{HEAD}<div style="width: 800px">words</div>')
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "loud.html").write_text(f"{HEAD}<script>nothing()</script>")
    first, second, third = browser.faults_of_site(tmp_path)
    assert first.startswith("api/loud.html at 390 pixels: ")
    assert "nothing is not defined" in first
    assert second.startswith("api/loud.html at 1400 pixels: ")
    assert third.startswith("wide.html at 390 pixels: 8")
