# SPDX-License-Identifier: Apache-2.0
"""The allocator keeps freed memory."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys

import pytest

MAPPED = """
import ctypes, sys, torch
from pyro_ksd.common.kept_memory import keep_freed_memory

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usm fsm ford used keep".split()]

info = ctypes.CDLL(None).mallinfo2
info.restype = Info
if sys.argv[1] == "kept":
    keep_freed_memory()
before = info().hblks
block = torch.empty(20 * 2**20, dtype=torch.uint8)
print(info().hblks - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs the allocator of glibc")
@pytest.mark.parametrize(("how", "blocks"), [("kept", 0), ("returned", 1)])
def test_large_blocks_come_from_kept_memory(how: str, blocks: int) -> None:
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("needs glibc 2.33")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", MAPPED, how]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert int(shown.stdout) == blocks
