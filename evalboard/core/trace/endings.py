"""How an answer ended: the one closed list of the words that servers and tools use for it."""

from collections.abc import Mapping
from enum import StrEnum


class Ending(StrEnum):
    """How an answer ended.

    REFUSED: the model refused. EMPTY: there is neither text nor a tool call. FAILED: the server broke off, so the
    answer is missing. UNKNOWN: it ended with a word of no list, so nothing says whether it is whole.
    """

    COMPLETE = "complete"
    CUT = "cut"
    FILTERED = "filtered"
    REFUSED = "refused"
    EMPTY = "empty"
    FAILED = "failed"
    UNKNOWN = "unknown"


ENDINGS: Mapping[Ending, tuple[str, ...]] = {
    Ending.COMPLETE: (
        *("stop", "stop_sequence", "eos", "eos_token", "end", "end_turn", "complete", "completed", "repetition"),
        *("tool_call", "tool_calls", "tool_use", "function_call"),
    ),
    Ending.CUT: (
        *("length", "max_tokens", "max_output_tokens", "token_limit"),
        *("model_length", "model_context_window_exceeded", "error_limit"),
    ),
    Ending.FILTERED: (
        *("content_filter", "content_filtered", "safety", "image_safety", "recitation", "blocklist", "spii"),
        *("prohibited_content", "guardrail_intervened", "sensitive", "error_toxic"),
    ),
    Ending.REFUSED: ("refusal", "refused"),
    Ending.FAILED: (
        *("error", "failed", "failure", "abort", "aborted", "cancel", "cancelled", "canceled", "user_cancel"),
        *("network_error", "connection_error", "stream_error", "upstream_error", "provider_error", "engine_error"),
        *("api_error", "server_error", "internal_error", "internal_server_error", "timeout", "timed_out"),
        *("insufficient_system_resource", "overloaded", "overloaded_error", "unavailable", "service_unavailable"),
    ),
}
MIN_USUAL_SHARE = 0.9  # of the answers that end with a word; one that ends so many means that they are complete
SAYABLE = (Ending.COMPLETE, Ending.CUT, Ending.FILTERED, Ending.REFUSED)  # what a person may say that a word means
BY_WORD = (*SAYABLE, Ending.UNKNOWN)  # those that a word alone decides
# Endings that the run's page counts. A complete answer needs no word.
NOTABLE = (Ending.CUT, Ending.FILTERED, Ending.REFUSED, Ending.EMPTY, Ending.UNKNOWN)


def read_ending(word: str) -> Ending | None:
    """Return the ending of a finish reason, ignoring case, `-` and `_`; None if unknown."""
    return _BY_WORD.get(plain_word(word))


def find_ending(word: str, *, text: str, is_refusal: bool = False) -> Ending | None:
    """Return how a present answer ended; None if that is unknown, as in a log without endings.

    word: its finish reason, "" for none. text: all its parts but the thinking. is_refusal: it has a refusal of its own.
    """
    by_word = read_ending(word)
    if by_word is Ending.FILTERED:
        return by_word
    if is_refusal:
        return Ending.REFUSED
    if by_word in (Ending.CUT, Ending.REFUSED):
        return by_word
    if not text.strip():
        return Ending.EMPTY
    return by_word or (Ending.UNKNOWN if word else None)


def judge_words(n_by_word: Mapping[str, int], meant: Mapping[str, str]) -> dict[str, Ending]:
    """Return what each word of no list means, of all words that end the answers of a run.

    n_by_word: how many answers each ends. meant: what a person says of a word. A word that ends nine of ten answers, or
    more, means that they are complete; any other is unknown.
    """
    by_person = {plain_word(word): Ending(ending) for word, ending in meant.items()}
    unlisted = {word: n for word, n in n_by_word.items() if word and read_ending(word) is None}
    total = sum(n for word, n in n_by_word.items() if word)
    usual = {word for word, n in unlisted.items() if n >= MIN_USUAL_SHARE * total}
    return {
        word: by_person.get(plain_word(word), Ending.COMPLETE if word in usual else Ending.UNKNOWN) for word in unlisted
    }


def plain_word(word: str) -> str:
    """Return a word as words of servers are compared: in small letters, without white space, `-` and `_`."""
    return "".join(word.split()).replace("-", "").replace("_", "").lower()


_BY_WORD = {plain_word(word): ending for ending, words in ENDINGS.items() for word in words}
