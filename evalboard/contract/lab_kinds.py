"""Where variance may come from, and what is said of each source. Contracts and words need these, and no numpy.

The order of sources is that of a plan: the control first, what costs no run last.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

LABEL = "experiment"  # of a run that is an arm of one
ID = re.compile(r"[0-9]{1,18}", re.ASCII)


class Source(StrEnum):
    """One thing that a condition lets go of, with all else pinned; `control` lets go of nothing."""

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
STEP = "step"  # what stands for a source where an arm is a step of a bisect
# What is chosen and not drawn: another choice moves the score by as much every time, so its range is not sampled.
CHOICES = frozenset({Source.DTYPE, Source.KV_CACHE, Source.ATTENTION, Source.TENSOR_PARALLEL, Source.PARSER})


class State(StrEnum):
    """What a row says. Of the control: it holds, its bits move, its answers or its score move."""

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
    """A state. reach: by how many points the score moved either way; at_most: by how many it may yet, None if not
    sampled.
    """

    state: State
    reach: float | None = None
    at_most: float | None = None


class StepAnswer(StrEnum):
    """What a step of a bisect gave for a case, up to where the two runs part: one side's answer, or a third one."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"
    OTHER = "other"
    MISSING = "missing"


class FieldReach(StrEnum):
    """Whether a field can be set here, by another worker's pool, on stored texts alone, or not at all."""

    HERE = "here"
    WORKER = "worker"
    SCORER = "scorer"
    NOT_REACHABLE = "not_reachable"


class FieldState(StrEnum):
    """What a bisect says of a field. Only what was tried both ways is the cause, or part of it."""

    CAUSE = "cause"
    PART = "part"
    TOGETHER = "together"
    EITHER = "either"
    CLEARED = "cleared"
    OPEN = "open"
    NOT_TRIED = "not_tried"
    SCORER_ONLY = "scorer_only"
    NOT_REACHABLE = "not_reachable"


def experiment_of(labels: Mapping[str, str]) -> str | None:
    """Return the id of the experiment whose arm a run is by its labels, None without; anybody may write another one."""
    label = labels.get(LABEL, "")
    return label if ID.fullmatch(label) else None
