# SPDX-License-Identifier: Apache-2.0
"""Models from modules."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyro_ksd.command_line.models_by_name import labeled_models, model_of


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A current folder with a module."""
    (tmp_path / "its_models.py").write_text("class all:\n    first = 'the first'\nsecond = 'the second'\n")
    (tmp_path / "its_broken.py").write_text("import nothing_like_this\n")
    (tmp_path / "its_end.py").write_text("raise SystemExit(0)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in ("its_models", "its_broken", "its_end"):
        sys.modules.pop(name, None)


def test_a_module_of_this_folder() -> None:
    assert model_of("its_models:second") == "the second"
    assert model_of("its_models:all.first") == "the first"
    assert labeled_models(["b=its_models:second", "a=its_models:all.first"]) == {"b": "the second", "a": "the first"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("its_models", "expected MODULE:NAME, such as my_models:clicks, found 'its_models'"),
        (":second", "expected MODULE:NAME"),
        ("its_models:", "expected MODULE:NAME"),
        ("its_models:third", "expected 'third' in the module 'its_models', found nothing of this name"),
        ("its_models:all.third", "expected 'all.third' in the module"),
        ("no_such_module:model", "expected a module 'no_such_module' in this folder or installed, found none"),
        ("its_models.py:second", r"expected a module 'its_models\.py'"),
        ("its_end:model", "found one that ends Python"),
    ],
)
def test_what_is_not_there(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^--model: .*{message}"):
        model_of(name)


def test_what_a_module_lacks_is_not_called_the_module() -> None:
    with pytest.raises(ModuleNotFoundError, match="nothing_like_this"):
        model_of("its_broken:model")


@pytest.mark.parametrize(
    ("labeled", "message"),
    [
        (["its_models:second"], "expected LABEL=MODULE:NAME"),
        (["=its_models:second"], "expected LABEL=MODULE:NAME"),
        (["a=its_models:second", "a=its_models:second"], "expected labels that differ, found 'a' twice"),
    ],
)
def test_labels(labeled: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=f"^--model: {message}"):
        labeled_models(labeled)
