# SPDX-License-Identifier: Apache-2.0
"""The data: variable-length sequences of discrete symbols."""

from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.covariate_groups import PromptContent
from pyro_ksd.sequences.files.file_reading import read
from pyro_ksd.sequences.partitions import PartitionedSequences
from pyro_ksd.sequences.splitting import split
from pyro_ksd.sequences.tokenizer_labels import token_labels

__all__ = ["PartitionedSequences", "PromptContent", "Sequences", "read", "split", "token_labels"]
