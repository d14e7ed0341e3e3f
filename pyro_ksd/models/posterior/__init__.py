# SPDX-License-Identifier: Apache-2.0
"""One model for each posterior draw of a program, evaluated in batches."""
