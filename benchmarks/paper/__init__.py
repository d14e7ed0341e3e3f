# SPDX-License-Identifier: Apache-2.0
"""The experiments of Baum, Kanagawa and Gretton (2023), done again: ``python -m benchmarks.paper NAME [--quick]``."""
