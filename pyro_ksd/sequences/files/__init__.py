# SPDX-License-Identifier: Apache-2.0
"""Sequences from files: text, CSV and TSV, JSON lines, FASTA and FASTQ, Parquet; packed by gzip or not."""
