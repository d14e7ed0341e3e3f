# SPDX-License-Identifier: Apache-2.0
"""The end symbol, from what the user passes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pyro_ksd.edits.neighborhoods import BeforeEnd
from pyro_ksd.models.wrappers.ended import common_end
from pyro_ksd.sequences.container import Sequences


def end_code(end: Hashable | None, neighborhood: Any, sequences: Sequences) -> int | None:
    """The code of the symbol with which every sequence ends; ``None`` if there is none.

    :param end: the symbol that the user names, if any.
    :param neighborhood: edits in front of the last symbol say that it is the end, if it stands nowhere else.
    :raises ValueError: if the alphabet does not have the symbol.
    """
    if end is None:
        return common_end(sequences) if isinstance(neighborhood, BeforeEnd) else None
    if not isinstance(end, Hashable) or end not in sequences.symbols:
        raise ValueError(
            f"end: expected the symbol with which every sequence ends, out of {sequences.symbols[:30]}, found {end!r}"
        )
    [code] = sequences.encode([end])
    return code


def unnamed_end(sequences: Sequences) -> str:
    """What to say of sequences with a common last symbol, where nothing says how long they are; ``""`` for others."""
    code = common_end(sequences)
    if code is None:
        return ""
    symbol = sequences.symbols[code]
    return (
        f"all {len(sequences)} sequences end with {symbol!r}, which stands nowhere else, and the model gives "
        "no probability to lengths, so that it would be checked as if a sequence could go on after that symbol; if it "
        f"marks the end, pass end={symbol!r}, or, if it is a symbol like the others, neighborhood=Substitutions()"
    )
