# SPDX-License-Identifier: Apache-2.0
"""Labels of tokens against what trained tokenizers decode."""

from __future__ import annotations

from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

from pyro_ksd import Sequences
from pyro_ksd.sequences import token_labels

TEXT = ["Where is the cat?\n", "Wo ist die Straße – dort?", "the  cat is där.", "是的 naïve 🙂"] * 5


def byte_level() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, special_tokens=["<|end|>"])
    tokenizer.train_from_iterator(TEXT, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def sentence_pieces() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE(byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=80, special_tokens=["<s>", "<0x0A>", "<0xE2>"]))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


@pytest.mark.parametrize("tokenizer", [byte_level(), sentence_pieces()], ids=["bytes", "pieces"])
def test_labels_spell_the_text(tokenizer: Any) -> None:
    labels = token_labels(tokenizer)
    assert len(set(labels)) == len(labels) == len(tokenizer)
    for text in ("Where is the cat?", "Wo ist die Straße"):
        spelled = "".join(labels[code] for code in tokenizer(text)["input_ids"]).removeprefix("␣")
        assert spelled == text.replace(" ", "␣")
    assert all(label.isprintable() and " " not in label for label in labels)


def test_every_byte_has_a_label() -> None:
    tokenizer = byte_level()
    labels = token_labels(tokenizer)
    special = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t", ord(" "): "␣"}
    for byte, letter in bytes_to_unicode().items():
        shown = chr(byte) if 32 < byte < 127 else f"\\x{byte:02x}"
        assert labels[tokenizer.convert_tokens_to_ids(letter)] == special.get(byte, shown)
    assert labels[tokenizer.convert_tokens_to_ids("<|end|>")] == "<|end|>"


def test_marks_of_pieces_and_bytes() -> None:
    tokenizer = sentence_pieces()
    labels = token_labels(tokenizer, size=100)
    assert labels[:3] == ("<s>", "\\n#1", "\\xe2")  # a line break is a token of its own, too
    assert labels[-1] == "<unused 99>"
    assert len(labels) == 100


def test_tokens_with_the_same_text_are_told_apart() -> None:
    class Twice:
        def __len__(self) -> int:
            return 3

        def convert_ids_to_tokens(self, ids: list[int]) -> list[str | None]:
            return ["\n", "<0x0A>", None]

    assert token_labels(Twice()) == ("\\n#0", "\\n#1", "<unused 2>")


def test_ids_read_with_labels() -> None:
    tokenizer = byte_level()
    labels = token_labels(tokenizer)
    ids = tokenizer(["the cat?", " is"])["input_ids"]
    data = Sequences.of(ids, alphabet=len(labels)).over(labels)
    assert ["".join(map(str, row)) for row in data.to_lists()] == ["the␣cat?", "␣is"]


def test_refuses() -> None:
    with pytest.raises(ValueError, match="tokenizer: expected a tokenizer of the package transformers, found 'gpt2'"):
        token_labels("gpt2")
    with pytest.raises(ValueError, match=r"size: expected at least the [0-9]+ tokens of the tokenizer, found 7"):
        token_labels(byte_level(), size=7)
