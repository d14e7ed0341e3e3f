# SPDX-License-Identifier: Apache-2.0
"""What is published: the source distribution with its tests, the wheel with the package alone; the lowest versions."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

import pyro_ksd

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BUILD = "import sys, setuptools.build_meta as b; out = sys.argv[1]; b.build_sdist(out); b.build_wheel(out)"
LEFT_OUT = re.compile(r"\.(ci|git|gitignore|coverage.*|hypothesis|venv.*|.*_cache)|build|dist|demo|.*\.egg-info")
ADDED = ("PKG-INFO", "setup.cfg")  # by the build


def sources(folder: Path) -> set[str]:
    """The files of the project, without what tools have left there."""
    names = set()
    for entry in folder.iterdir():
        if LEFT_OUT.fullmatch(entry.name) or entry.name in ADDED:
            continue
        files = [entry] if entry.is_file() else [*entry.rglob("*"), *(entry / "tutorials").glob("*")]
        own = [file for file in files if "__pycache__" not in file.parts and file.is_file()]
        names |= {str(file.relative_to(folder)) for file in own}
    return names


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, unpacked, and the wheel."""
    pytest.importorskip("setuptools", minversion="77")
    folder = tmp_path_factory.mktemp("built")
    for name in sorted(sources(ROOT)):
        target = folder / "source" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    (folder / "dist").mkdir()
    command = [sys.executable, "-W", "ignore", "-c", BUILD, str(folder / "dist")]
    subprocess.run(command, cwd=folder / "source", capture_output=True, check=True)
    [archive] = (folder / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    (folder / f"pyro_ksd-{pyro_ksd.__version__}").rename(folder / "unpacked")
    return folder


def test_the_source_distribution_has_all_sources(built: Path) -> None:
    assert sources(built / "unpacked") == sources(ROOT)
    assert {"tests/golden/stein_golden.json", "tests/synthetic.py", "tests/data/schema_1_check.nc.xz"} <= sources(ROOT)
    assert {"constraints.txt", "constraints-lowest.txt", "docs/conf.py", "tutorials/6_choosing.md"} <= sources(ROOT)


def test_the_wheel_has_the_package_and_nothing_else(built: Path) -> None:
    [wheel] = (built / "dist").glob("*.whl")
    with ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
    assert names == {name for name in sources(ROOT) if name.startswith("pyro_ksd/")}
    assert "pyro_ksd/py.typed" in names
    assert "pyro_ksd/results/pages/templates/report.js" in names
    others = {name for name in names if not name.endswith(".py")}
    assert {name for name in others if "/templates/" not in name} == {
        "pyro_ksd/py.typed",
        "pyro_ksd/__init__.pyi",
        "pyro_ksd/models/__init__.pyi",
        "pyro_ksd/results/__init__.pyi",
    }


@pytest.mark.slow
def test_tests_run_from_the_source_distribution(built: Path) -> None:
    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        found = subprocess.run(command, cwd=built / "unpacked", capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stdout
        return found.stdout

    collected = run("--collect-only", "tests", "pyro_ksd")
    assert int(re.findall(r"(\d+)(?:/\d+)? tests collected", collected)[-1]) > 5000
    assert "error" not in collected.splitlines()[-1]
    passed = run("tests/test_golden.py", "tests/edits", "tests/results/test_files.py", "tests/test_architecture.py")
    assert int(re.findall(r"(\d+) passed", passed)[-1]) > 400


def declared() -> dict[str, str]:
    """The lowest version of each package that the package or its tests need."""
    requirements = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]]
    pairs = [re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement) for requirement in requirements]
    return {pair[1].lower().replace("_", "-"): pair[2] for pair in pairs if pair is not None}


def test_all_files_state_the_same_version() -> None:
    recipe = yaml.safe_load((ROOT / "conda/recipe.yaml").read_text())
    assert recipe["context"]["version"] == pyro_ksd.__version__
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == pyro_ksd.__version__
    latest = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    if ".dev" in pyro_ksd.__version__:
        assert latest == "Unreleased"
    else:
        assert latest == f"{pyro_ksd.__version__} ({citation['date-released']})"


def test_the_conda_package_depends_on_the_same_versions() -> None:
    names = {"torch": "pytorch", "matplotlib": "matplotlib-base", "Jinja2": "jinja2"}
    pairs = [requirement.split(">=") for requirement in PROJECT["dependencies"]]
    expected = {f"{names.get(name, name)} >={version}" for name, version in pairs}
    recipe = yaml.safe_load((ROOT / "conda/recipe.yaml").read_text())
    assert set(recipe["requirements"]["run"]) == expected | {f"python {PROJECT['requires-python']}"}


def test_the_lowest_versions_are_those_that_are_declared() -> None:
    lines = (ROOT / "constraints-lowest.txt").read_text().split("\n\n")[0].splitlines()[1:]
    pins = dict(line.split("==") for line in lines)
    found = {name.lower().replace("_", "-"): version for name, version in pins.items()}
    assert len(declared()) == len(PROJECT["dependencies"]) + len(PROJECT["optional-dependencies"]["test"])
    assert found.keys() == declared().keys()
    for name, version in declared().items():
        assert re.fullmatch(rf"{re.escape(version)}(\.0)*", found[name]), name
