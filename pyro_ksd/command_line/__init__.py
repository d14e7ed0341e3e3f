# SPDX-License-Identifier: Apache-2.0
"""The command line: ``python -m pyro_ksd`` or ``pyro-ksd``."""
