"""Find where two runs part and why, whether they may be compared, and what decoding again gave (docs/divergence.md)."""

from evalboard.core.compare.alignment import Alignment, align, align_by_bytes
from evalboard.core.compare.cause import CAUSES, ENDED, Cause, find_cause
from evalboard.core.compare.chosen_pairs import (
    PARTED_ALIKE,
    AlikeRows,
    ChosenPair,
    ToldCluster,
    choose_gravest,
    cluster_pairs,
    count_looks,
)
from evalboard.core.compare.comparability import (
    BLOCK_ORDER,
    BLOCK_WARNINGS,
    LOADED_BATCHES,
    Block,
    ServedShare,
    SideSetup,
    allows_comparing,
    find_blocks,
    is_steady_batch,
)
from evalboard.core.compare.comparison import CASE_PARTS, COMPARISON_VERSION, NO_PART, SCORE_MISSING
from evalboard.core.compare.divergence import Divergence, find_divergence, find_divergences, find_text_divergence
from evalboard.core.compare.drift import measure_distances, measure_drift
from evalboard.core.compare.excerpt import cut_hit, cut_text, cut_tokens
from evalboard.core.compare.greedy import find_not_greedy
from evalboard.core.compare.judging import AlikePairs
from evalboard.core.compare.known_pair import (
    CHOOSING,
    UNKNOWN_SERVING,
    CauseFacts,
    KnownResponse,
    Pair,
    RequestSettings,
    ResponseFacts,
    ServingFacts,
    make_response,
)
from evalboard.core.compare.leak import Beside, Continuation, Ids, find_continuation
from evalboard.core.compare.ledger import round_to_tenths
from evalboard.core.compare.pair_noise import EndedRepeats, Measured, PairNoise
from evalboard.core.compare.pipeline import SUMMED_FACTS, Comparing, ComparisonReport, Reads, run
from evalboard.core.compare.replay import (
    REPLAY_OUTCOMES,
    ReplayResult,
    choose_shifts,
    list_neighbours,
    list_result_traces,
    make_decoded_result,
    make_failed_result,
)
from evalboard.core.compare.scores import judge_outcomes, list_scores
from evalboard.core.compare.sides import AnswerKey, Bools, BucketFacts, Indexes, ScoredAnswer, Side, read_side_draws
from evalboard.core.compare.traced_text import TracedText, WordsById, distance_tables, find_parting

__all__ = [
    "BLOCK_ORDER",
    "BLOCK_WARNINGS",
    "CASE_PARTS",
    "CAUSES",
    "CHOOSING",
    "COMPARISON_VERSION",
    "ENDED",
    "LOADED_BATCHES",
    "NO_PART",
    "PARTED_ALIKE",
    "REPLAY_OUTCOMES",
    "SCORE_MISSING",
    "SUMMED_FACTS",
    "UNKNOWN_SERVING",
    "Alignment",
    "AlikePairs",
    "AlikeRows",
    "AnswerKey",
    "Beside",
    "Block",
    "Bools",
    "BucketFacts",
    "Cause",
    "CauseFacts",
    "ChosenPair",
    "Comparing",
    "ComparisonReport",
    "Continuation",
    "Divergence",
    "EndedRepeats",
    "Ids",
    "Indexes",
    "KnownResponse",
    "Measured",
    "Pair",
    "PairNoise",
    "Reads",
    "ReplayResult",
    "RequestSettings",
    "ResponseFacts",
    "ScoredAnswer",
    "ServedShare",
    "ServingFacts",
    "Side",
    "SideSetup",
    "ToldCluster",
    "TracedText",
    "WordsById",
    "align",
    "align_by_bytes",
    "allows_comparing",
    "choose_gravest",
    "choose_shifts",
    "cluster_pairs",
    "count_looks",
    "cut_hit",
    "cut_text",
    "cut_tokens",
    "distance_tables",
    "find_blocks",
    "find_cause",
    "find_continuation",
    "find_divergence",
    "find_divergences",
    "find_not_greedy",
    "find_parting",
    "find_text_divergence",
    "is_steady_batch",
    "judge_outcomes",
    "list_neighbours",
    "list_result_traces",
    "list_scores",
    "make_decoded_result",
    "make_failed_result",
    "make_response",
    "measure_distances",
    "measure_drift",
    "read_side_draws",
    "round_to_tenths",
    "run",
]
