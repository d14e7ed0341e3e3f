# SPDX-License-Identifier: Apache-2.0
"""The bytes and the lines of files."""

from __future__ import annotations

import gzip
import re
import zipfile
from pathlib import Path

import pytest

from pyro_ksd.sequences.files.file_contents import FileContent, content_of


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"a\nb", ["a", "b"]),
        (b"a\nb\n", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\r", ["a", "b"]),
        (b"a\r\nb\nc\rd", ["a", "b", "c", "d"]),
        (b"a\n\nb\n\n", ["a", "", "b", ""]),
        (b"\xef\xbb\xbfa\n", ["a"]),
        ("äß\nö".encode(), ["äß", "ö"]),
        ("äß\r\nö".encode("utf-16"), ["äß", "ö"]),
        (b"\xfe\xff" + "ä\n".encode("utf-16-be"), ["ä"]),
        ("a\x0bb\x0cc\x1cd\x85e\u2028f\n".encode(), ["a\x0bb\x0cc\x1cd\x85e\u2028f"]),
    ],
)
def test_lines(data: bytes, lines: list[str]) -> None:
    assert FileContent("f", data).lines() == lines


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "f.txt: expected at least one sequence, found an empty file"),
        (b"\xef\xbb\xbf", "f.txt: expected at least one sequence, found an empty file"),
        (b"ab\0c", "f.txt: expected a text, found a file with the character NUL; is it a binary file?"),
        (b"anna\nRen\xe9\n", "f.txt, line 2, column 4: found the byte 0xe9, expected text in UTF-8; convert the file"),
        (b"a\r\n\xff", "f.txt, line 2, column 1: found the byte 0xff, expected text in UTF-8"),
        (b"\xc3\xa4\xc3\xa4\xff", "f.txt, line 1, column 3: found the byte 0xff, expected text in UTF-8"),
        (b"\xff\xfea\0\n", "f.txt, line 1, column 2: found the byte 0x0a, expected text in UTF-16"),
    ],
)
def test_what_is_no_text(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        FileContent("f.txt", data).lines()


@pytest.mark.parametrize("name", ["f.txt", "f.txt.gz", "f"])
def test_gzip_is_unpacked_whatever_the_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"ab\n") + gzip.compress(b"c\n"))
    assert content_of(tmp_path / name).lines() == ["ab", "c"]
    assert content_of(str(tmp_path / name)).name == name


def test_what_cannot_be_unpacked(tmp_path: Path) -> None:
    packed = gzip.compress(b"ab\n" * 100)
    for data in (packed[:-12], packed[:-1], packed[:15] + b"xx" + packed[17:], packed[:-8] + b"\0\0\0\0" + packed[-4:]):
        (tmp_path / "f.gz").write_bytes(data)
        with pytest.raises(
            ValueError, match=r"^f\.gz: expected a whole file of gzip, found one that cannot be unpacked"
        ):
            content_of(tmp_path / "f.gz")
    (tmp_path / "f.gz").write_bytes(b"ab\n")
    with pytest.raises(ValueError, match=r"^f\.gz: expected a file of gzip, as its name says, .* begins with b'ab"):
        content_of(tmp_path / "f.gz")


def test_archives_are_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "f.zip", "w") as archive:
        archive.writestr("a.txt", "ab")
    with pytest.raises(ValueError, match=r"^f\.zip: expected a text or a table, found a zip archive; unpack it"):
        content_of(tmp_path / "f.zip")


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"^path: expected a file, found nothing at '.*missing.txt'; is the path complete"
    ):
        content_of(tmp_path / "missing.txt")
    with pytest.raises(ValueError, match=r"^path: expected a file, found the folder"):
        content_of(tmp_path)
    with pytest.raises(
        ValueError, match=r"^path: expected the path of a file, found list of 2; for data in memory, use"
    ):
        content_of(["a" * 40, "b" * 40])  # type: ignore[arg-type]
