# SPDX-License-Identifier: Apache-2.0
"""Results as HTML: the card of a notebook, and the report in one file."""
