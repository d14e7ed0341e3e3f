# SPDX-License-Identifier: Apache-2.0
"""What every stage needs: checks of options, seeded generators, and how much work is done at once."""
