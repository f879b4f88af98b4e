"""Sources of variance and the states of their findings; importable without numpy.

The order of sources is that of a plan: the control first, what costs no run last.
"""

from dataclasses import dataclass
from enum import StrEnum


class Source(StrEnum):
    """A source that a condition varies while all others are fixed; `control` varies nothing."""

    CONTROL = "control"
    ORDER = "order"
    BATCH = "batch"
    GRAPHS = "graphs"
    PREFIX_CACHE = "prefix_cache"
    DTYPE = "dtype"
    KV_CACHE = "kv_cache"
    ROUTING = "routing"
    SAMPLER = "sampler"
    ATTENTION = "attention"
    TENSOR_PARALLEL = "tensor_parallel"
    PARSER = "parser"
    BUILD = "build"
    JUDGE = "judge"


CONTROL = Source.CONTROL
SOURCES = tuple(Source)
STEP = "step"  # the source of a bisect's steps
# What is chosen and not drawn: another choice moves the score by as much every time, so its range is not sampled.
CHOICES = frozenset({Source.DTYPE, Source.KV_CACHE, Source.ATTENTION, Source.TENSOR_PARALLEL, Source.PARSER})


class State(StrEnum):
    """The state of a row. The control is stable, or its bits, its answers or its score vary."""

    HOLDS = "holds"
    HOLDS_IN_ANSWERS = "holds_in_answers"
    MOVED = "moved"
    SOURCE = "source"
    ANSWERS_ONLY = "answers_only"
    BITS_ONLY = "bits_only"
    NONE_SEEN = "none_seen"
    NOT_BLAMED = "not_blamed"
    NOT_SCORED = "not_scored"
    NOT_MEASURED = "not_measured"


@dataclass(frozen=True, slots=True)
class SourceFinding:
    """A state with its size.

    reach: by how many points the score moved either way. at_most: by how many it may at most, None if not sampled.
    """

    state: State
    reach: float | None = None
    at_most: float | None = None


class StepAnswer(StrEnum):
    """Which side's answer a bisect's step gave for a case, compared up to where the two runs diverge."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"
    OTHER = "other"
    MISSING = "missing"


class FieldReach(StrEnum):
    """Whether a field can be set here, by another pool's worker, by scoring again, or not at all."""

    HERE = "here"
    WORKER = "worker"
    SCORER = "scorer"
    NOT_REACHABLE = "not_reachable"


class FieldState(StrEnum):
    """A bisect's finding for a field. Only a field tried both ways is the cause, or part of it."""

    CAUSE = "cause"
    PART = "part"
    TOGETHER = "together"
    EITHER = "either"
    CLEARED = "cleared"
    OPEN = "open"
    NOT_TRIED = "not_tried"
    SCORER_ONLY = "scorer_only"
    NOT_REACHABLE = "not_reachable"
