# SPDX-License-Identifier: Apache-2.0
"""Networks that predict the next symbol, such as language models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from pyro_ksd.common.chunk_sizes import EDITED_SEQUENCES, LOGITS, in_chunks
from pyro_ksd.common.option_checks import check_function, check_number, found
from pyro_ksd.common.random_numbers import check_generator
from pyro_ksd.common.row_groups import distinct_rows
from pyro_ksd.common.tensor_checks import shown
from pyro_ksd.edits.neighborhoods import BeforeEnd, Neighborhood
from pyro_ksd.edits.prefix_neighborhoods import prefix_zs
from pyro_ksd.edits.splices import Edits, check_edits
from pyro_ksd.models.base import check_alphabet_size
from pyro_ksd.models.chunked_model import ChunkedModel
from pyro_ksd.models.distributions.sampling import cumulative, pick
from pyro_ksd.models.networks.cached_prefixes import CausalLM, PrefixNetwork
from pyro_ksd.models.networks.prompts import Prompts, checked_prompt, has_prompts
from pyro_ksd.models.networks.sampling_rules import SamplingRule, Scores, TopK, after_rules, checked_rules, rounding
from pyro_ksd.models.programs.program_errors import is_ours
from pyro_ksd.models.repeated_runs import repeatable
from pyro_ksd.models.session_state import isolated
from pyro_ksd.models.wrappers.ended import ends_once
from pyro_ksd.models.wrappers.rejection import MAX_PROPOSALS, accepted, accepted_given
from pyro_ksd.sequences.container import Sequences
from pyro_ksd.sequences.covariates import Covariates, check_covariates

Network = Callable[[Tensor], Tensor]
"""Takes codes, long ``[N, L]``, and returns the logits (or log-probabilities) of the next symbols, ``[N, L, S]``."""

_SHOWN = 10  # codes in a message
_ADVICE = "raise max_length, or choose a prompt after which sequences come to an end"


class AutoregressiveModel(ChunkedModel):
    r"""The sequences that a network generates by predicting the next symbol, given that they end in time.

    The first symbol follows a prompt, and the symbol ``end`` ends the sequence:

    .. math:: p(x) \propto \prod_{t=1}^{\ell} p(x_t \mid \text{prompt}, x_1 \ldots x_{t-1}), \quad
        x_\ell = \text{end}, \quad \ell \le \text{max\_length},

    the distribution of the network's output conditioned on its form, known up to a constant: for a language model, that
    of the *questions* after a prompt if ``end`` is the question mark (Baum, Kanagawa and Gretton, 2023, section
    "Inspecting output-constrained generative models"). It is sampled by rejection.

    Calls of the network are bounded in size, and every sequence, or prefix when sequences are drawn, is evaluated once,
    however often it occurs. Gradients are not tracked.

    :param network: takes codes, long ``[N, L]``, those of the prompt and of all ``S`` symbols; returns the logits (or
        log-probabilities) ``[N, L, S]`` of the next symbol after each of them, which must not depend on later codes. In
        evaluation mode, without dropout.
    :param prompt: the codes that the network sees first, at least one, such as a start symbol. They are not part of the
        sequences and do not have to be symbols of the alphabet. By default, each sequence has its own prompt in its
        covariates: ``data.with_covariates(prompts)``, a list of codes for each sequence.
    :param end: the code of the symbol with which a sequence ends. It is part of the sequence and occurs only once.
    :param max_length: the largest number of symbols of a sequence, ``end`` among them.
    :param rules: how the next symbol is sampled, in the order in which the rules are applied: see
        :class:`~pyro_ksd.models.Temperature`, :class:`~pyro_ksd.models.TopK`, :class:`~pyro_ksd.models.TopP` and
        :class:`~pyro_ksd.models.RepetitionPenalty`. By default, from the distribution that the network predicts.

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
        prompt: Sequence[int] | Tensor | None = None,
        end: int,
        max_length: int,
        rules: Sequence[SamplingRule] | SamplingRule = (),
    ) -> None:
        check_function("network", network, "codes")
        max_length = check_number("max_length", max_length, least=1)
        self._network = network
        self._prompt = None if prompt is None else checked_prompt(prompt)
        self._max_length = max_length
        size = self._checked_network()
        super().__init__(size)
        check_number("end", end, least=0)
        _check_known("end", end, size - 1, size)
        self._end = int(end)
        self._rules = checked_rules(rules)
        for rule in self._rules:
            if isinstance(rule, TopK):
                _check_known("rules: TopK", rule.k, size, size)
        self._most = min((rule.k for rule in self._rules if isinstance(rule, TopK)), default=size)

    @classmethod
    def from_causal_lm(
        cls,
        lm: Any,
        *,
        prompt: Sequence[int] | Tensor | None = None,
        end: int,
        max_new_tokens: int,
        rules: Sequence[SamplingRule] | SamplingRule = (),
    ) -> AutoregressiveModel:
        """The model of what a causal language model of the package ``transformers`` generates.

        The alphabet are the token ids ``0 .. vocab_size - 1``.

        :param lm: a model with a language modeling head, such as ``AutoModelForCausalLM.from_pretrained("gpt2")``.
        :param prompt: the token ids of the prompt, such as ``tokenizer("Where is")["input_ids"]``. Left out, each
            sequence has a prompt of its own, as for :class:`AutoregressiveModel`.
        :param end: the token id with which a sequence ends, such as that of ``?``.
        :param max_new_tokens: the largest number of tokens after the prompt.
        :param rules: as for :class:`AutoregressiveModel`. ``generate`` of the package ``transformers`` applies
            a repetition penalty first, then the temperature, then top-k, then top-p.
        """
        if not callable(lm) or not hasattr(lm, "device"):
            raise ValueError(
                f"lm: expected a causal language model of the package transformers, found {found(lm)}; for other "
                "networks see AutoregressiveModel"
            )
        check_number("max_new_tokens", max_new_tokens, least=1)

        return cls(CausalLM(lm), prompt=prompt, end=end, max_length=max_new_tokens, rules=rules)

    @property
    def defines_lengths(self) -> bool:
        return True

    @property
    def ends(self) -> tuple[int, ...]:
        return (self._end,)

    @property
    def default_neighborhood(self) -> Neighborhood:
        """Edits in front of ``end``, by symbols that are possible there."""
        return BeforeEnd(prefix_zs(self.candidates, self._most))

    def candidates(self, sequences: Sequences, top: int) -> Tensor:
        """The most probable symbols after each prefix, for :func:`~pyro_ksd.edits.prefix_zs`.

        :returns: long ``[N, T + 1, K]`` with ``K`` up to ``top``; -1 in place of ``end`` and of impossible symbols.
        """
        if not len(sequences):
            return sequences.tokens.new_empty(0, sequences.width + 1, min(top, self._most))
        parts = []
        prompts = self._prompts(sequences)
        for rows in in_chunks(torch.arange(len(sequences)), self._together(prompts, sequences.width)):
            tokens, own = sequences.tokens[rows], prompts.take(rows)
            scores, codes = _largest(self._scores(tokens, own).strict, top)
            self._refuse(~(scores[..., 0] < torch.inf), tokens, own)
            parts.append(codes.masked_fill((codes == self._end) | (scores == -torch.inf), -1))
        return _side_by_side(parts, -1)

    def has_ended(self, sequences: Sequences) -> Tensor:
        """Which sequences have ``end`` as their last symbol, and nowhere before; boolean ``[N]``."""
        return ends_once(sequences, self.ends)

    def check_data(self, sequences: Sequences) -> None:
        """Checks that all data have come to an end, and have prompts where the model has none.

        :raises ValueError: naming those that have not.
        """
        self._prompts(sequences)
        if self._prompt is not None and has_prompts(sequences.covariates):
            raise ValueError(
                f"prompt: found prompts among the covariates, but the model has one for all, {self._prompt.tolist()}, "
                "and would ignore them; leave out prompt=, or the covariate 'prompt'"
            )
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
        num_sequences = check_number("num_sequences", num_sequences, least=1)
        if self._prompt is None:
            raise ValueError("draw: expected prompts to draw for, as the model has none for all; call draw_given")
        prompt = self._prompt
        if generator is not None:
            check_generator(generator)
        return accepted(
            lambda count, generator: self._propose(Prompts.same(prompt, count), generator),
            self.has_ended,
            num_sequences,
            generator,
            max_proposals=MAX_PROPOSALS,
            advice=_ADVICE,
        )

    @property
    def takes_covariates(self) -> bool:
        return self._prompt is None

    def draw_given(self, covariates: Covariates, generator: torch.Generator | None = None) -> Sequences:
        """A sequence after each prompt, by rejection of those that do not end in time."""
        check_covariates(covariates)
        if generator is not None:
            check_generator(generator)
        if self._prompt is not None:
            return self.draw(len(covariates), generator).with_covariates(covariates)

        def propose(rows: Covariates, generator: torch.Generator | None) -> Sequences:
            return self._propose(Prompts.of(rows), generator).with_covariates(rows)

        return accepted_given(
            propose, self.has_ended, covariates, generator, max_proposals=MAX_PROPOSALS, advice=_ADVICE
        )

    def _prompts(self, sequences: Sequences) -> Prompts:
        """What the network sees before each of the sequences."""
        return Prompts.of(sequences.covariates) if self._prompt is None else Prompts.same(self._prompt, len(sequences))

    def _evaluate(self, sequences: Sequences) -> Tensor:
        values = torch.full((len(sequences),), -torch.inf, dtype=torch.double)
        rows = (self.has_ended(sequences) & (sequences.lengths <= self._max_length)).nonzero().squeeze(1)
        prompts = self._prompts(sequences)
        for part in in_chunks(rows, self._together(prompts, sequences.width)):
            some, own = sequences[part].narrowed(), prompts.take(part)
            values[part] = self._log_probs(some, own).sum(1)
        return values

    def _log_probs(self, sequences: Sequences, prompts: Prompts) -> Tensor:
        """The log-probability of each symbol after those before it, double ``[N, T]``, 0 after the end."""
        scores = self._scores(sequences.tokens[:, :-1], prompts)
        return self._chosen(scores, sequences.tokens, sequences.mask, sequences.tokens[:, :-1], prompts)

    def _chosen(self, scores: Scores, symbols: Tensor, mask: Tensor, tokens: Tensor, prompts: Prompts) -> Tensor:
        """The log-probabilities of symbols, double ``[N, K]``, 0 outside of a mask.

        :param scores: those of the next symbols after the longest ``K`` prefixes.
        :param symbols: long ``[N, K]``.
        :param mask: boolean ``[N, K]``.
        :param tokens: the sequences up to there, for errors, long ``[N, T]``.
        :param prompts: what stands before them.
        """
        # What was drawn must be possible here too, although other batches round the logits in another way.
        chosen = scores.lenient.gather(2, symbols[..., None]).squeeze(2)
        total = scores.strict.double().logsumexp(-1)
        self._refuse(~total.isfinite() & mask, tokens, prompts)
        return (chosen.double() - total).masked_fill(~mask, 0.0)

    def log_ratio(self, sequences: Sequences, edits: Edits) -> Tensor:
        """``log p(y) - log p(x)`` for every edit ``y`` of its owner ``x``, ``[E]``; every ``p(x) > 0``.

        A language model of :meth:`from_causal_lm` evaluates what stands before an edit once, for all edits at this
        place. Edits near the end of long sequences then take a fraction of the time.
        """
        if not isinstance(self._network, PrefixNetwork):
            return super().log_ratio(sequences, edits)
        check_alphabet_size(self, sequences)
        check_edits(edits, sequences)
        prompts = self._prompts(sequences)
        before = torch.zeros(len(sequences), sequences.width + 1, dtype=torch.double)
        for rows in in_chunks(torch.arange(len(sequences)), self._together(prompts, sequences.width)):
            before[rows, 1:] = self._log_probs(sequences[rows], prompts.take(rows)).cumsum(1)
        values = torch.full((len(edits),), -torch.inf, dtype=torch.double)
        for index in in_chunks(torch.arange(len(edits)), EDITED_SEQUENCES):
            chosen = edits.select(index)
            edited = chosen.apply(sequences)
            possible = (self.has_ended(edited) & (edited.lengths <= self._max_length)).nonzero().squeeze(1)
            if len(possible):
                start = torch.cat([block.start for block in chosen.blocks])[possible]
                owner = chosen.owner[possible]
                after = self._after_prefixes(edited[possible], prompts.take(owner), start)
                values[index[possible]] = before[owner, start] + after
        return values - before[edits.owner, -1]

    @property
    def has_quick_ratios(self) -> bool:
        return False  # a network is asked about every edit

    def _after_prefixes(self, sequences: Sequences, prompts: Prompts, start: Tensor) -> Tensor:
        """The log-probability of the symbols from some place on, given those before, double ``[E]``.

        :param start: long ``[E]``, the places.
        """
        whole = prompts.followed_by(sequences.tokens)
        kinds = torch.cat([prompts.lengths[:, None], sequences.lengths[:, None], start[:, None], whole], 1)
        first, inverse = distinct_rows(kinds)
        known = prompts.lengths + start - 1  # all codes before but the last one, which predicts the first symbol
        values = torch.empty(len(first), dtype=torch.double)
        for size in known[first].unique().tolist():
            same = (known[first] == size).nonzero().squeeze(1)
            for part in in_chunks(same, self._together(prompts, sequences.width)):
                rows = first[part]
                values[part] = self._after_prefix(sequences[rows], prompts.take(rows), start[rows], size).sum(1)
        return values[inverse]

    def _after_prefix(self, sequences: Sequences, prompts: Prompts, start: Tensor, size: int) -> Tensor:
        """The log-probabilities of the symbols from some place on, ``[E, K]``, after ``size`` codes and one more."""
        count = int((sequences.lengths - start).max())
        codes = prompts.followed_by(sequences.tokens)[:, : size + count]
        prefix, which = distinct_rows(codes[:, :size])
        network = self._network
        assert isinstance(network, PrefixNetwork)
        if size:
            logits = self._called(codes, lambda: network.after(codes[prefix, :size], which, codes[:, size:]))
        else:
            logits = self._called(codes, lambda: network(codes))
        places = start[:, None] + torch.arange(count)
        mask = places < sequences.lengths[:, None]
        symbols = sequences.tokens.gather(1, places.clamp(max=sequences.width - 1))
        last = (size + torch.arange(count)).expand(len(codes), -1)
        scores = after_rules(self._rules, logits.cpu(), codes, last)
        return self._chosen(scores, symbols, mask, sequences.tokens[:, :-1], prompts)

    def _propose(self, prompts: Prompts, generator: torch.Generator | None) -> Sequences:
        """A sequence after each prompt that ends, or is cut off at ``max_length``."""
        num_sequences = len(prompts)
        tokens = torch.zeros(num_sequences, self._max_length, dtype=torch.long)
        lengths = torch.full((num_sequences,), self._max_length)
        growing = torch.arange(num_sequences)
        for position in range(self._max_length):
            for rows in in_chunks(growing, max(1, LOGITS // self._most)):
                tokens[rows, position] = self._next_symbols(tokens[rows, :position], prompts.take(rows), generator)
            ended = tokens[growing, position] == self._end
            lengths[growing[ended]] = position + 1
            growing = growing[~ended]
        return Sequences(tokens, lengths, self.alphabet_size)

    def _next_symbols(self, prefixes: Tensor, prompts: Prompts, generator: torch.Generator | None) -> Tensor:
        """The next symbol after each prefix, long ``[A]``, from prefixes ``[A, T]`` and the prompts before them."""
        first, inverse = distinct_rows(torch.cat([prompts.lengths[:, None], prompts.codes, prefixes], 1))
        batches = first.split(self._together(prompts, prefixes.shape[1]))
        largest = [
            _largest(self._scores(prefixes[some], prompts.take(some)).strict[:, -1], self.alphabet_size)
            for some in batches
        ]
        codes = _side_by_side([found for _, found in largest], -1)
        probabilities = _side_by_side([scores for scores, _ in largest], -torch.inf).double().softmax(-1)
        self._refuse(probabilities.isnan().any(1, keepdim=True), prefixes[first], prompts.take(first))
        return codes[inverse, pick(cumulative(probabilities)[inverse], generator)]

    def _scores(self, tokens: Tensor, prompts: Prompts) -> Scores:
        """The scores after each prefix of the sequences ``[N, T]``, also the empty one: ``[N, T + 1, S]``."""
        codes = prompts.followed_by(tokens)
        logits = prompts.behind(self._called(codes, lambda: self._network(codes)).cpu())
        return after_rules(self._rules, logits, codes, prompts.last_places(tokens.shape[1] + 1))

    def _called(self, codes: Tensor, call: Callable[[], Any]) -> Any:
        """What a call of the network for codes ``[N, L]`` returns."""
        try:
            with isolated():
                return repeatable(call, "network")
        except Exception as error:
            if is_ours(error):
                raise
            prompt = "prompts" if self._prompt is None else f"the prompt of {len(self._prompt)} codes"
            raise ValueError(
                f"network: expected one that takes {prompt} and up to "
                f"max_length={self._max_length} symbols after it, found that it fails for codes of shape "
                f"{list(codes.shape)}: {type(error).__name__}: {error}; if they are more than the network has "
                "positions, lower max_length or shorten the prompt"
            ) from error

    def _refuse(self, bad: Tensor, tokens: Tensor, prompts: Prompts) -> None:
        """Refuses logits that are no numbers.

        :param bad: boolean ``[N, P]``, where there are some behind the longest ``P`` prefixes of the sequences.
        :param tokens: the sequences, long ``[N, T]``.
        :param prompts: what stands before them.
        """
        if not bad.any():
            return
        row, column = bad.nonzero()[0].tolist()
        length = tokens.shape[1] + 1 - bad.shape[1] + column
        codes = [*prompts.codes[row, : prompts.lengths[row]].tolist(), *tokens[row, :length].tolist()]
        raise ValueError(
            "network: expected logits that are numbers, at least one of them above -inf after each code, found NaN or "
            f"infinity after the codes {codes[-_SHOWN:]}; look for training that diverged, or a division by 0"
        )

    def _together(self, prompts: Prompts, width: int) -> int:
        """How many sequences of some width the network gets at once, after prompts."""
        return max(1, LOGITS // ((prompts.width + width) * self.alphabet_size))

    def _checked_network(self) -> int:
        """The number of symbols that the network knows, after a look at what it makes of the prompt."""
        prompt = torch.zeros(1, 1, dtype=torch.long) if self._prompt is None else self._prompt[None]
        logits = self._called(prompt, lambda: self._network(prompt))
        shape = list(logits.shape) if isinstance(logits, Tensor) else None
        if shape is None or len(shape) != 3 or shape[:2] != [1, prompt.shape[1]] or not logits.is_floating_point():
            raise ValueError(
                f"network: expected floating-point logits [1, {prompt.shape[1]}, S] for codes of shape "
                f"[1, {prompt.shape[1]}], found {shown(logits)}; give the logits of the next symbol after each code"
            )
        self._refuse(logits[:, -1:].isnan().any(-1).cpu(), prompt[:, :0], Prompts.same(prompt[0], 1))
        size = int(shape[2])
        followed = torch.cat([prompt.expand(2, -1), torch.tensor([[0], [size - 1]])], 1)
        again = self._called(followed, lambda: self._network(followed))[:, :-1]
        if not torch.allclose(again, logits.expand_as(again), rtol=0, atol=float(rounding(logits))):
            raise ValueError(
                "network: expected logits that depend on nothing but the codes up to their own, found that those of "
                "the prompt change with what follows it, or from call to call; use a causal network, in evaluation "
                "mode (network.eval())"
            )
        return size


def _largest(scores: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The largest scores of possible symbols and the codes of these, in descending order.

    :param scores: ``[..., S]``.
    :returns: ``[..., K]`` each; ``K`` is the largest number of possible symbols anywhere, and at most ``most``.
    """
    possible = int((scores != -torch.inf).sum(-1).max()) if scores.numel() else 0
    found = scores.topk(min(most, max(1, possible)), -1)
    return found.values, found.indices


def _side_by_side(parts: Sequence[Tensor], filling: float) -> Tensor:
    """Rows of all parts, filled in the last dimension up to the widest."""
    most = max(part.shape[-1] for part in parts)
    return torch.cat([torch.nn.functional.pad(part, (0, most - part.shape[-1]), value=filling) for part in parts])


def _check_known(name: str, number: int, most: int, size: int) -> None:
    if number > most:
        raise ValueError(f"{name}: expected at most {most}, as the network knows {size} symbols, found {number}")
