# SPDX-License-Identifier: Apache-2.0
"""How many small bugs the fast tests notice: ``python -m benchmarks.mutants --sample 200``, or with files."""
