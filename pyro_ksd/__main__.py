# SPDX-License-Identifier: Apache-2.0
"""The command line: ``python -m pyro_ksd``."""

import sys

from pyro_ksd.command_line.entry_point import main

if __name__ == "__main__":
    sys.exit(main())
