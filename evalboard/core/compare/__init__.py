"""Find where two runs part and why, whether they may be compared, and what decoding again gave (docs/divergence.md)."""

from evalboard.core.compare.alignment import Alignment, align, align_by_bytes
from evalboard.core.compare.cause import CAUSE_CODES, CAUSES, Cause, find_cause
from evalboard.core.compare.comparability import (
    BLOCK_ORDER,
    BLOCK_WARNINGS,
    LOADED_BATCHES,
    Block,
    ServedShare,
    SideSetup,
    allows_comparing,
    find_blocks,
    find_moved_setup,
    is_steady_batch,
)
from evalboard.core.compare.comparison import (
    COMPARISON_VERSION,
    NO_POSITION,
    SCORE_MISSING,
    DifferingPairs,
    MatchedRuns,
    TokenBytes,
    begin_summary,
    complete_summary,
    is_larger,
    kind_by_consequence,
    rank_consequence,
)
from evalboard.core.compare.divergence import Divergence, find_divergence, find_divergences, find_text_divergence
from evalboard.core.compare.drift import measure_distances, measure_drift
from evalboard.core.compare.excerpt import Excerpt, cut_text, cut_tokens
from evalboard.core.compare.known_pair import CHOOSING, CauseFacts, KnownResponse, Pair
from evalboard.core.compare.leak import Beside, Continuation, Ids, find_continuation
from evalboard.core.compare.ledger import find_look, round_to_tenths
from evalboard.core.compare.paired_rows import Vocabularies
from evalboard.core.compare.pairing import PAIR_KINDS, pair_runs
from evalboard.core.compare.replay import (
    REPLAY_OUTCOMES,
    ReplayResult,
    choose_shifts,
    list_neighbours,
    list_result_traces,
    make_decoded_result,
    make_failed_result,
)

__all__ = [
    "BLOCK_ORDER",
    "BLOCK_WARNINGS",
    "CAUSES",
    "CAUSE_CODES",
    "CHOOSING",
    "COMPARISON_VERSION",
    "LOADED_BATCHES",
    "NO_POSITION",
    "PAIR_KINDS",
    "REPLAY_OUTCOMES",
    "SCORE_MISSING",
    "Alignment",
    "Beside",
    "Block",
    "Cause",
    "CauseFacts",
    "Continuation",
    "DifferingPairs",
    "Divergence",
    "Excerpt",
    "Ids",
    "KnownResponse",
    "MatchedRuns",
    "Pair",
    "ReplayResult",
    "ServedShare",
    "SideSetup",
    "TokenBytes",
    "Vocabularies",
    "align",
    "align_by_bytes",
    "allows_comparing",
    "begin_summary",
    "choose_shifts",
    "complete_summary",
    "cut_text",
    "cut_tokens",
    "find_blocks",
    "find_cause",
    "find_continuation",
    "find_divergence",
    "find_divergences",
    "find_look",
    "find_moved_setup",
    "find_text_divergence",
    "is_larger",
    "is_steady_batch",
    "kind_by_consequence",
    "list_neighbours",
    "list_result_traces",
    "make_decoded_result",
    "make_failed_result",
    "measure_distances",
    "measure_drift",
    "pair_runs",
    "rank_consequence",
    "round_to_tenths",
]
