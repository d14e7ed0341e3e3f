# SPDX-License-Identifier: Apache-2.0
"""Finished parts of long work, kept in a file, so that the same call can go on where it was stopped."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import torch
from torch import Tensor

from pyro_ksd import __version__
from pyro_ksd.common.option_checks import check_instance

_FIX = "delete the file, or pass another one"


class Checkpoint:
    """A file of finished parts of one piece of work.

    The file is an SQLite database. Every part is written in one transaction, so that a process may be killed at any
    moment: a part is in the file as a whole or not at all.

    :param path: of the file, made if it does not exist.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     kept = Checkpoint(Path(folder) / "work")
    ...     kept.begin({"seed": "0"})
    ...     kept.put("draws 0", {"statistic": torch.tensor([1.0, 2.0])})
    ...     Checkpoint(Path(folder) / "work").get("draws 0")
    {'statistic': tensor([1., 2.])}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check_instance("checkpoint", path, (str, os.PathLike), "the name of a file")
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise ValueError(
                f"checkpoint: expected a file in a folder that exists, found {str(self.path)!r}; make the folder"
            )
        if self.path.is_dir():
            raise ValueError(f"checkpoint: expected the name of a file, found the folder {str(self.path)!r}")

    def begin(self, work: Mapping[str, str], stage: str = "work") -> None:
        """States what the work is, or checks that the file belongs to the same work.

        :param work: everything that the results depend on, in words or as a :func:`digest`, by name.
        :param stage: of the work, if some of this is known only after earlier stages.
        :raises ValueError: if the file has parts of other work.
        """
        with self._connected() as database:
            database.execute("CREATE TABLE IF NOT EXISTS work (name TEXT PRIMARY KEY, value TEXT)")
            database.execute("CREATE TABLE IF NOT EXISTS parts (name TEXT PRIMARY KEY, value BLOB)")
            found = database.execute("SELECT value FROM work WHERE name = ?", (stage,)).fetchone()
            if found is None:
                database.execute("INSERT INTO work VALUES (?, ?)", (stage, json.dumps(dict(work))))
                return
        other = json.loads(found[0])
        changed = [name for name in {**work, **other} if work.get(name) != other.get(name)]
        if changed:
            raise ValueError(
                f"checkpoint: expected the file of the same check, found in {str(self.path)!r} one of another check, "
                f"which differs in: {', '.join(changed)}; {_FIX}"
            )

    def get(self, name: str) -> dict[str, Tensor] | None:
        """A finished part, ``None`` if it is not in the file."""
        with self._connected() as database:
            found = database.execute("SELECT value FROM parts WHERE name = ?", (name,)).fetchone()
        return None if found is None else torch.load(BytesIO(found[0]), weights_only=True)

    def put(self, name: str, part: Mapping[str, Tensor]) -> None:
        """Keeps a finished part."""
        buffer = BytesIO()
        torch.save(dict(part), buffer)
        with self._connected() as database:
            database.execute("INSERT OR REPLACE INTO parts VALUES (?, ?)", (name, buffer.getvalue()))

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """The database within a transaction."""
        try:
            with closing(sqlite3.connect(self.path)) as database, database:
                yield database
        except sqlite3.DatabaseError as error:
            raise ValueError(
                f"checkpoint: expected a file that an earlier check has written, or none, found {str(self.path)!r}, "
                f"which cannot be used ({error}); {_FIX}"
            ) from error


def digest(*tensors: Tensor) -> str:
    """A short word for the content of tensors.

    >>> digest(torch.tensor([1, 2])) == digest(torch.tensor([1, 2])) != digest(torch.tensor([1, 3]))
    True
    """
    code = sha256()
    for tensor in tensors:
        code.update(f"{tensor.dtype} {list(tensor.shape)} ".encode())
        code.update(tensor.detach().contiguous().numpy().tobytes())
    return code.hexdigest()[:16]


def versions() -> dict[str, str]:
    """The versions of what computes: others may give other bits.

    >>> sorted(versions())
    ['pyro_ksd', 'torch']
    """
    return {"pyro_ksd": __version__, "torch": torch.__version__}


@contextmanager
def counted_if_stopped(done: int, total: int, what: str, checkpoint: Checkpoint | None) -> Iterator[None]:
    """Has Ctrl-C say how much was done, and what to do about it.

    >>> try:
    ...     with counted_if_stopped(64, 500, "null draws", None):
    ...         raise KeyboardInterrupt
    ... except KeyboardInterrupt as stopped:
    ...     print(stopped)
    stopped after 64 of 500 null draws, which are lost; pass checkpoint="file" to keep them
    """
    try:
        yield
    except KeyboardInterrupt:
        fate = 'lost; pass checkpoint="file" to keep them'
        if checkpoint is not None:
            fate = f"kept in {str(checkpoint.path)!r}; the same call goes on from there"
        raise KeyboardInterrupt(f"stopped after {done} of {total} {what}, which are {fate}") from None
