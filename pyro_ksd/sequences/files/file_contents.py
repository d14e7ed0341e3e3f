# SPDX-License-Identifier: Apache-2.0
"""What is in a file: its bytes, unpacked, and its lines of text."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

from pyro_ksd.common.option_checks import found

_GZIP = b"\x1f\x8b"
_ARCHIVES = {
    b"PK\x03\x04": "a zip archive",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ": "an xz file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
}
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class FileContent:
    """The bytes of a file, unpacked.

    :param name: its name without the folder, as errors show it.
    """

    name: str
    data: bytes

    def lines(self) -> list[str]:
        r"""The lines of a text in UTF-8, or in UTF-16 with a byte order mark; they end in LF, CRLF or CR.

        >>> FileContent("names.txt", b"\xef\xbb\xbfanna\r\nbob\n").lines()
        ['anna', 'bob']
        """
        text = self._text()
        if "\0" in text:
            raise ValueError(f"{self.name}: expected a text, found a file with the character NUL; is it a binary file?")
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        if not lines[-1]:
            lines.pop()
        if not lines:
            raise ValueError(f"{self.name}: expected at least one sequence, found an empty file")
        return lines

    def _text(self) -> str:
        encoding = "utf-16" if self.data.startswith(_UTF16) else "utf-8-sig"
        try:
            return self.data.decode(encoding)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(encoding, errors="replace")
            before = before.replace("\r\n", "\n").replace("\r", "\n")
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            name = "UTF-16" if encoding == "utf-16" else "UTF-8"
            raise ValueError(
                f"{self.name}, line {line}, column {column}: found the byte 0x{error.object[error.start]:02x}, "
                f"expected text in {name}; convert the file, such as iconv -f latin1 -t utf-8 {self.name} > new_file"
            ) from None


def content_of(path: str | os.PathLike[str]) -> FileContent:
    """The bytes of a file; those of a file of gzip are unpacked, whatever its name."""
    if not isinstance(path, str | os.PathLike):
        raise ValueError(
            f"path: expected the path of a file, found {found(path)}; for data in memory, use Sequences.of"
        )
    file = Path(path)
    if not file.exists():
        raise ValueError(f"path: expected a file, found nothing at {str(file)!r}; is the path complete?")
    if file.is_dir():
        raise ValueError(f"path: expected a file, found the folder {str(file)!r}; pass the path of one file")
    data = file.read_bytes()
    if data.startswith(_GZIP):
        data = _unpacked(file.name, data)
    elif file.suffix == ".gz":
        raise ValueError(
            f"{file.name}: expected a file of gzip, as its name says, found one that begins with {data[:4]!r}; rename "
            "it"
        )
    for start, kind in _ARCHIVES.items():
        if data.startswith(start):
            raise ValueError(f"{file.name}: expected a text or a table, found {kind}; unpack it, or pack it by gzip")
    return FileContent(file.name, data)


def _unpacked(name: str, data: bytes) -> bytes:
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(
            f"{name}: expected a whole file of gzip, found one that cannot be unpacked ({error}); copy it again"
        ) from error
