"""Hold what came back: responses, their traces and vocabularies, and all of them as bytes (docs/trace-format.md)."""

from evalboard.core.trace.case_columns import (
    differ,
    pack_answers,
    pack_buckets,
    pack_chances,
    pack_digests,
    pack_marks,
    pack_scores,
    pack_selection,
    unpack_answers,
    unpack_buckets,
    unpack_chances,
    unpack_digests,
    unpack_marks,
    unpack_scores,
    unpack_selection,
)
from evalboard.core.trace.clocks import ClockAhead, combine_clocks, measure_clock
from evalboard.core.trace.codec import BLOCK_VERSION, encode_block, read_block, read_trace, read_traces
from evalboard.core.trace.directory import start_size
from evalboard.core.trace.endings import ENDINGS, NOTABLE, Ending, find_ending, plain_word, read_ending
from evalboard.core.trace.provenance import ERROR_CODES, Decoded, Failed, Forced, Outcome, Timings, is_truncated
from evalboard.core.trace.reading import Piece, Reading
from evalboard.core.trace.reasons import (
    directory_size,
    find_reason,
    pack_reasons,
    unpack_frame_of_reasons,
    unpack_reasons,
)
from evalboard.core.trace.stretches import lowest_of_stretches
from evalboard.core.trace.trace import IMPOSSIBLE, NO_TOKEN, Trace, make_trace
from evalboard.core.trace.trace_columns import TraceColumns, join_traces
from evalboard.core.trace.vocabulary import END, Vocabulary, VocabularyDamaged, pack_vocabulary

__all__ = [
    "BLOCK_VERSION",
    "END",
    "ENDINGS",
    "ERROR_CODES",
    "IMPOSSIBLE",
    "NOTABLE",
    "NO_TOKEN",
    "ClockAhead",
    "Decoded",
    "Ending",
    "Failed",
    "Forced",
    "Outcome",
    "Piece",
    "Reading",
    "Timings",
    "Trace",
    "TraceColumns",
    "Vocabulary",
    "VocabularyDamaged",
    "combine_clocks",
    "differ",
    "directory_size",
    "encode_block",
    "find_ending",
    "find_reason",
    "is_truncated",
    "join_traces",
    "lowest_of_stretches",
    "make_trace",
    "measure_clock",
    "pack_answers",
    "pack_buckets",
    "pack_chances",
    "pack_digests",
    "pack_marks",
    "pack_reasons",
    "pack_scores",
    "pack_selection",
    "pack_vocabulary",
    "plain_word",
    "read_block",
    "read_ending",
    "read_trace",
    "read_traces",
    "start_size",
    "unpack_answers",
    "unpack_buckets",
    "unpack_chances",
    "unpack_digests",
    "unpack_frame_of_reasons",
    "unpack_marks",
    "unpack_reasons",
    "unpack_scores",
    "unpack_selection",
]
