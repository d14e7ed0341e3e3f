# SPDX-License-Identifier: Apache-2.0
"""Models from Python modules, by their names."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any


def model_of(name: str) -> Any:
    """What has a name in a module; modules in the current folder are found first.

    :param name: such as ``"my_models:clicks"``.
    :raises ValueError: if there is no such module, or nothing of this name in it.

    >>> model_of("pyro_ksd.examples:random_walk").__name__
    'random_walk'
    """
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise ValueError(f"--model: expected MODULE:NAME, such as my_models:clicks, found {name!r}")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there, but lacks one that it imports
        raise ValueError(
            f"--model: expected a module {module!r} in this folder or installed, found none; for {module}.py, pass "
            f"{module}:NAME, in the folder of the file"
        ) from error
    except SystemExit as error:  # its exit code must not pass for that of a check
        raise ValueError(f"--model: expected a module {module!r} to import, found one that ends Python") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ValueError(f"--model: expected {attribute!r} in the module {module!r}, found nothing of this name")
        found = getattr(found, part)
    return found


def labeled_models(labeled: Sequence[str]) -> dict[str, Any]:
    """Models by their labels.

    :param labeled: such as ``["first=my_models:first", "second=my_models:second"]``.

    >>> list(labeled_models(["a=pyro_ksd.examples:random_walk", "b=pyro_ksd:MarkovSequence"]))
    ['a', 'b']
    """
    found: dict[str, Any] = {}
    for own in labeled:
        label, equals, name = own.partition("=")
        if not (label and equals):
            raise ValueError(f"--model: expected LABEL=MODULE:NAME, such as first=my_models:first, found {own!r}")
        if label in found:
            raise ValueError(f"--model: expected labels that differ, found {label!r} twice; choose another one")
        found[label] = model_of(name)
    return found
