# SPDX-License-Identifier: Apache-2.0
"""Memory for the many short-lived tensors of a check, which the process keeps and does not return each time."""

from __future__ import annotations

from functools import cache

import torch

from pyro_ksd.common.chunk_sizes import FREED_BYTES


@cache
def keep_freed_memory() -> None:
    """Lets the allocator of glibc keep up to 64 MB of free memory for the next tensors.

    It returns free memory beyond twice the size of the largest block that was freed until then, and the system must
    fill each page with zeros when it is needed again, which takes up to a tenth of the time of a check. So a block is
    freed here. Nothing is written to it, so that it takes no memory. Where the user has set
    ``MALLOC_TRIM_THRESHOLD_``, and with other allocators, nothing changes.
    """
    torch.empty(FREED_BYTES, dtype=torch.uint8)
