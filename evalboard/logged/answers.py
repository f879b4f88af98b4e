"""Convert an external server's answer to a response's row, from a log or from a call."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from evalboard.core import digest
from evalboard.core.document import storable
from evalboard.core.stats import make_mark
from evalboard.core.trace import Ending, TokenTrace, encode_block, find_ending, is_truncated
from evalboard.importers.records import LoggedResponse
from evalboard.importers.spelling import is_measured


def answer_fields(response: LoggedResponse, trace: TokenTrace | None) -> dict[str, Any]:
    """Return the fields of `ResponseRecord` that an answer fills, without its trace's place.

    Without tokens, the text's digest replaces the trace's: such responses are equal if their texts are. The same
    applies if tokens do not spell the answer.
    """
    n_tokens = response.n_tokens if trace is None else len(trace)
    if not is_measured(response):
        trace = None
    text_digest = digest.text_digest(response.text)
    reasoning = None if response.reasoning is None else storable(response.reasoning)
    # An answer known only by token ids is not empty, although its text is unknown.
    has_ids_alone = not response.finish_reason and response.positions is not None and response.positions.has_ids_alone
    ending = (
        None
        if has_ids_alone
        else find_ending(response.finish_reason, text=response.text, is_refusal=response.is_refusal)
    )
    return {
        "text": storable(response.text),
        "reasoning": reasoning,
        "is_truncated": is_truncated(text=response.text, reasoning=reasoning, is_cut=ending is Ending.CUT),
        "finish_reason": storable(response.finish_reason)[:40],
        "ending": ending or "",
        "text_digest": text_digest,
        "trace_digest": text_digest if trace is None else trace.digest,
        "prompt_digest": _prompt_digest(response.prompt_token_ids),
        "trace_reason": response.trace_reason,
        "n_reasoning_tokens": None if trace is None else response.n_reasoning_tokens,
        "n_tokens": n_tokens,
        "n_prompt_tokens": _n_prompt_tokens(response),
        "seed_sent": response.seed if response.seed is None or abs(response.seed) < 2**63 else None,
        "request_id": storable(response.request_id)[:100],
        "marks": make_mark(response.flags),
    }


def pack_unmeasured(response: LoggedResponse, trace: TokenTrace | None) -> bytes | None:
    """Return a block of a trace whose tokens do not spell the answer, for its page; None for others."""
    return None if trace is None or is_measured(response) else encode_block([trace])


def _prompt_digest(ids: Sequence[int] | None) -> bytes | None:
    return None if ids is None else digest.short_digest(np.asarray(ids, dtype="<i4").tobytes())


def _n_prompt_tokens(response: LoggedResponse) -> int | None:
    return response.n_prompt_tokens if response.prompt_token_ids is None else len(response.prompt_token_ids)
