# SPDX-License-Identifier: Apache-2.0
"""Networks that predict the next symbol, such as language models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import LOGITS, in_chunks
from pyro_ksd.common.option_checks import check_number
from pyro_ksd.edits.neighborhoods import BeforeEnd, Neighborhood
from pyro_ksd.edits.prefix_neighborhoods import prefix_zs
from pyro_ksd.models.chunked_model import ChunkedModel
from pyro_ksd.models.distributions.sampling import cumulative, pick
from pyro_ksd.models.evaluation import distinct
from pyro_ksd.models.wrappers.rejection import MAX_PROPOSALS, accepted
from pyro_ksd.sequences.container import Sequences

Network = Callable[[Tensor], Tensor]
"""Takes codes, long ``[N, L]``, gives the logits (or log-probabilities) of the symbol behind each, ``[N, L, S]``."""

_ROUNDINGS = 32  # by so many units of rounding a logit may change with the batch that it is computed in


class AutoregressiveModel(ChunkedModel):
    r"""The sequences that a network makes by predicting symbol after symbol, given that they come to an end in time.

    The first symbol follows a prompt, and the sequence is over when a certain symbol, ``end``, has come:

    .. math:: p(x) \propto \prod_{t=1}^{\ell} p(x_t \mid \text{prompt}, x_1 \ldots x_{t-1}), \quad
        x_\ell = \text{end}, \quad \ell \le \text{max\_length},

    the distribution of the network's output conditioned on its form, known up to a constant: for a language model, that
    of the *questions* after a prompt if ``end`` is the question mark (Baum, Kanagawa and Gretton, 2023, section
    "Inspecting output-constrained generative models"). It is sampled by rejection.

    Calls of the network are bounded in size, and every sequence, or prefix when sequences are drawn, is evaluated once,
    however often it occurs. Gradients are not tracked.

    :param network: takes codes, long ``[N, L]``, those of the prompt and of all ``S`` symbols; gives the logits (or
        log-probabilities) ``[N, L, S]`` of the symbol behind each of them, which must depend on no later code. In
        evaluation mode, without dropout.
    :param prompt: the codes that the network sees first, at least one: a start symbol where there is nothing else to
        say. They are no part of the sequences, and need not be symbols of the alphabet.
    :param end: the code of the symbol with which a sequence ends. It is part of the sequence, and comes but once.
    :param max_length: the largest number of symbols of a sequence, ``end`` among them.
    :param top_k: only the ``top_k`` most probable symbols are possible at each step, with probabilities that are
        normalized again; ``None`` for all.

    An embedding is the simplest network, a Markov chain. Here 2 is the start symbol, and 1 the end:

    >>> moves = torch.tensor([[0.5, 0.5], [0.5, 0.5], [0.8, 0.2]])
    >>> chain = AutoregressiveModel(torch.nn.Embedding.from_pretrained(moves.log()), prompt=[2], end=1, max_length=3)
    >>> chain.log_joint(Sequences.of([[1], [0, 1], [0, 0, 1], [0, 0], [0, 0, 0, 1]])).exp()
    tensor([0.2000, 0.4000, 0.2000, 0.0000, 0.0000], dtype=torch.float64)
    >>> chain.draw(4, torch.Generator().manual_seed(0)).to_lists()
    [[1], [0, 0, 1], [1], [0, 1]]
    """

    def __init__(
        self,
        network: Network,
        *,
        prompt: Sequence[int] | Tensor,
        end: int,
        max_length: int,
        top_k: int | None = None,
    ) -> None:
        self._network = network
        self._prompt = _checked_prompt(prompt)
        size = self._checked_network()
        super().__init__(size)
        check_number("max_length", max_length, least=1)
        for name, number, least, most in (("end", end, 0, size - 1), ("top_k", top_k, 1, size)):
            if number is not None:
                check_number(name, number, least=least)
                if number > most:
                    raise ValueError(
                        f"{name}: expected at most {most}, as the network knows {size} symbols, found {number}"
                    )
        self._end = end
        self._max_length = max_length
        self._top_k = size if top_k is None else top_k

    @classmethod
    def from_causal_lm(
        cls,
        lm: Any,
        *,
        prompt: Sequence[int] | Tensor,
        end: int,
        max_new_tokens: int,
        top_k: int | None = None,
    ) -> AutoregressiveModel:
        """The model of what a causal language model of the package ``transformers`` generates.

        The alphabet are the token ids ``0 .. vocab_size - 1``.

        :param lm: a model with a language modeling head, such as ``AutoModelForCausalLM.from_pretrained("gpt2")``.
        :param prompt: the token ids of the prompt, such as ``tokenizer("Where is")["input_ids"]``.
        :param end: the token id with which a sequence ends, such as that of ``?``.
        :param max_new_tokens: the largest number of tokens after the prompt.
        :param top_k: as for :class:`AutoregressiveModel`.
        """

        def network(tokens: Tensor) -> Tensor:
            # No token attends to a later one, so what fills the short sequences of a batch needs no mask. A mask of
            # ones says so to models that would take some token for padding.
            ids = tokens.to(lm.device)
            logits: Tensor = lm(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits
            return logits

        return cls(network, prompt=prompt, end=end, max_length=max_new_tokens, top_k=top_k)

    @property
    def default_neighborhood(self) -> Neighborhood:
        """Edits in front of ``end``, by symbols that are possible there."""
        return BeforeEnd(prefix_zs(self.candidates, self._top_k))

    def candidates(self, sequences: Sequences, top: int) -> Tensor:
        """The most probable symbols after each prefix, for :func:`~pyro_ksd.edits.prefix_zs`.

        :returns: long ``[N, T + 1, K]`` with ``K`` up to ``top``; -1 in place of ``end`` and of impossible symbols.
        """
        parts = [sequences.tokens.new_empty(0, sequences.width + 1, min(top, self._top_k))]
        for tokens in in_chunks(sequences.tokens, self._together(sequences.width)):
            logits, codes = self._logits(tokens).topk(min(top, self._top_k), -1)
            parts.append(codes.masked_fill((codes == self._end) | (logits == -torch.inf), -1))
        return torch.cat(parts)

    def has_ended(self, sequences: Sequences) -> Tensor:
        """Which sequences have ``end`` as their last symbol, and nowhere before; boolean ``[N]``."""
        ends = (sequences.tokens == self._end) & sequences.mask
        return (ends.cumsum(1) == 0).sum(1) == sequences.lengths - 1

    def check_data(self, sequences: Sequences) -> None:
        """Checks that all data have come to an end.

        :raises ValueError: naming those that have not.
        """
        other = (~self.has_ended(sequences)).nonzero().squeeze(1)
        if len(other):
            row = int(other[0])
            raise ValueError(
                f"expected sequences with the end symbol {self._end} as their last symbol, and nowhere else, found "
                f"others in {len(other)} of {len(sequences)}, first sequence {row}, {sequences[[row]].to_lists()[0]}; "
                "add the end symbol, and leave out sequences that were cut off"
            )

    def draw(self, num_sequences: int, generator: torch.Generator | None = None) -> Sequences:
        """Independent sequences from the model, by rejection of those that do not end in time."""
        check_number("num_sequences", num_sequences, least=1)
        return accepted(
            self._propose,
            self.has_ended,
            num_sequences,
            generator,
            max_proposals=MAX_PROPOSALS,
            advice="raise max_length, or choose a prompt after which sequences come to an end",
        )

    def _evaluate(self, sequences: Sequences) -> Tensor:
        values = torch.full((len(sequences),), -torch.inf, dtype=torch.double)
        rows = (self.has_ended(sequences) & (sequences.lengths <= self._max_length)).nonzero().squeeze(1)
        for part in in_chunks(rows, self._together(sequences.width)):
            some = sequences[part].narrowed()
            logits = self._logits(some.tokens[:, :-1])
            chosen = logits.gather(2, some.tokens[..., None]).squeeze(2)
            log_probs = self._log_probs(logits, chosen)
            values[part] = log_probs.masked_fill(~some.mask, 0.0).sum(1)
        return values

    def _log_probs(self, logits: Tensor, chosen: Tensor) -> Tensor:
        """The log-probabilities of symbols, double ``[N, T]``, from all logits ``[N, T, S]`` and their own."""
        if self._top_k == self.alphabet_size:
            return chosen.double() - logits.double().logsumexp(-1)
        top = logits.topk(self._top_k, -1).values
        # What was drawn must be possible here too, although other batches round the logits in another way.
        possible = chosen.double() >= top[..., -1].double() - _rounding(logits)
        return (chosen.double() - top.double().logsumexp(-1)).masked_fill(~possible, -torch.inf)

    def _propose(self, num_sequences: int, generator: torch.Generator | None) -> Sequences:
        """Sequences that end, or are cut off at ``max_length``."""
        tokens = torch.zeros(num_sequences, self._max_length, dtype=torch.long)
        lengths = torch.full((num_sequences,), self._max_length)
        growing = torch.arange(num_sequences)
        for position in range(self._max_length):
            for rows in in_chunks(growing, max(1, LOGITS // self._top_k)):
                tokens[rows, position] = self._next_symbols(tokens[rows, :position], generator)
            ended = tokens[growing, position] == self._end
            lengths[growing[ended]] = position + 1
            growing = growing[~ended]
        return Sequences(tokens, lengths, self.alphabet_size)

    def _next_symbols(self, prefixes: Tensor, generator: torch.Generator | None) -> Tensor:
        """A symbol behind each prefix, long ``[A]``, from prefixes ``[A, T]``."""
        first, inverse = distinct(prefixes)
        batches = prefixes[first].split(self._together(prefixes.shape[1]))
        top = [self._logits(batch)[:, -1].topk(self._top_k, -1) for batch in batches]
        codes = torch.cat([part.indices for part in top])
        probabilities = torch.cat([part.values for part in top]).double().softmax(-1)
        return codes[inverse, pick(cumulative(probabilities)[inverse], generator)]

    def _logits(self, tokens: Tensor) -> Tensor:
        """The logits behind each prefix of the sequences ``[N, T]``, also the empty one: ``[N, T + 1, S]``."""
        with torch.no_grad():
            logits = self._network(torch.cat([self._prompt.expand(len(tokens), -1), tokens], 1)).cpu()
        return logits[:, len(self._prompt) - 1 :]

    def _together(self, width: int) -> int:
        """How many sequences of some width the network gets at once."""
        return max(1, LOGITS // ((len(self._prompt) + width) * self.alphabet_size))

    def _checked_network(self) -> int:
        """The number of symbols that the network knows, after a look at what it makes of the prompt."""
        prompt = self._prompt[None]
        with torch.no_grad():
            logits = self._network(prompt)
            shape = list(logits.shape) if isinstance(logits, Tensor) else None
            if shape is None or len(shape) != 3 or shape[:2] != [1, prompt.shape[1]] or not logits.is_floating_point():
                found = f"{logits.dtype} {shape}" if isinstance(logits, Tensor) else type(logits).__name__
                raise ValueError(
                    f"network: expected floating-point logits [1, {prompt.shape[1]}, S] for codes of shape "
                    f"[1, {prompt.shape[1]}], found {found}; give the logits of the symbol behind each code"
                )
            size = int(shape[2])
            followed = torch.cat([prompt.expand(2, -1), torch.tensor([[0], [size - 1]])], 1)
            again = self._network(followed)[:, :-1]
        if not torch.allclose(again, logits.expand_as(again), rtol=0, atol=float(_rounding(logits))):
            raise ValueError(
                "network: expected logits that depend on nothing but the codes up to their own, found that those of "
                "the prompt change with what follows it, or from call to call; use a causal network, in evaluation "
                "mode (network.eval())"
            )
        return size


def _checked_prompt(prompt: Sequence[int] | Tensor) -> Tensor:
    if not isinstance(prompt, Tensor) and any(isinstance(symbol, str) for symbol in prompt):
        raise ValueError(
            f"prompt: expected codes for the network, found the symbols {prompt!r}; give their codes, data.encode(...)"
        )
    codes = torch.as_tensor(prompt).cpu()
    if codes.ndim != 1 or not len(codes) or codes.is_floating_point() or codes.dtype == torch.bool:
        raise ValueError(
            f"prompt: expected codes for the network, at least one, in one dimension, found {codes.dtype} "
            f"{list(codes.shape)}; give a start symbol where there is nothing else to say"
        )
    return codes.long()


def _rounding(logits: Tensor) -> Tensor:
    """By how much logits may differ from one batch to another, by rounding alone; a scalar."""
    largest = logits.masked_fill(logits == -torch.inf, 0.0).abs().amax()
    # Logits in double precision may be made of numbers in single precision.
    unit = max(torch.finfo(logits.dtype).eps, torch.finfo(torch.float).eps)
    return largest.double() * (_ROUNDINGS * unit)
