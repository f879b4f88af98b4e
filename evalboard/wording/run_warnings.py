"""Warnings of a run, worst first: when each applies, and its sentence.

Each is a function under `@warns`. Its name is the code, and its docstring is its text in docs/api-reference.md. It
yields no sentence, one, or one for each bucket. The codes are listed nowhere else.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalboard.contract.base import Severity
from evalboard.contract.run import Actor, RunWarning
from evalboard.wording.numbers import counted, listed, nats_rounded, percent_at_least, percent_rounded, points
from evalboard.wording.run import describe_pause, waiting

PINS_NAMED = 3
# Below this a single case moves the score by less than what people round away.
POINTS_WORTH_A_WARNING = 1.0

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarnedRun:
    """The facts from which a run's warnings are made; the defaults cause none.

    broken: (pin, wanted, found) of each. other_models: how many answers name a model that was not asked for, by name.
    not_greedy: how many answers to greedy calls hold a token that was not the most likely one, of how many.
    is_reported: who served it is what others say; is_logged: it was imported; tool: of another tool's log, "" of none.
    strays, unsteady: as the run has them. uncertified: the hosts. notes: the
    newest line of its history by code. n_of_cold_cache: how many repeats there are, where all but the first are copies
    of each other. n_decoded: responses that are done, with those that came to an error.
    endings: how many answers ended notably, by ending. pause: of its endpoint. deserted: the code and the facts of why
    no worker takes it. doorbell_problem: in words.
    """

    broken: Sequence[tuple[str, Any, Any]] = ()
    status: str = ""
    failure: str = ""
    endpoint: str = ""
    profile: str = ""
    asked_model: str = ""
    other_models: Mapping[str, int] = field(default_factory=dict)
    not_greedy: tuple[int, int] | None = None
    is_mixed: bool = False
    is_reported: bool = False
    is_logged: bool = False
    tool: str = ""
    n_cases: int = 0
    n_total: int = 0
    n_decoded: int = 0
    n_left_out: int = 0
    n_unvouched: int = 0
    n_truncated: int = 0
    endings: Mapping[str, int] = field(default_factory=dict)
    n_buckets: int = 1
    n_of_cold_cache: int = 0
    n_of_one_process: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    strays: Sequence[Facts] = ()
    unsteady: Sequence[Facts] = ()
    uncertified: Sequence[str] = ()
    has_unlike_self_checks: bool = False
    is_stack_unknown: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)
    pause: Facts | None = None
    deserted: tuple[str, Facts] | None = None
    doorbell_problem: str | None = None

    @property
    def n_never(self) -> int:
        return self.n_total - self.n_decoded

    @property
    def lacks_responses(self) -> bool:
        return self.status == "incomplete" and bool(self.n_never or self.errors.total())


Sentences = Callable[[WarnedRun], Iterator[str]]


@dataclass(frozen=True, slots=True)
class WarningRow:
    """A warning. severity: "warning" if the numbers may mislead or are missing, "info" otherwise."""

    code: str
    severity: Severity
    must_act: Actor | None
    sentences: Sentences

    @property
    def means(self) -> str:
        return self.sentences.__doc__ or ""


WARNINGS: list[WarningRow] = []


def warns(severity: Severity, *, must_act: Actor | None) -> Callable[[Sentences], Sentences]:
    """Make a row of the function below.

    must_act: as `RunWarning` has it.
    """

    def add(sentences: Sentences) -> Sentences:
        WARNINGS.append(WarningRow(sentences.__name__, severity, must_act, sentences))
        return sentences

    return add


def list_warnings(run: WarnedRun) -> tuple[RunWarning, ...]:
    """Return the warnings of a run, worst first: what voids the numbers, then what limits their meaning."""
    return tuple(
        RunWarning(code=row.code, text=text, severity=row.severity, must_act=row.must_act)
        for row in WARNINGS
        for text in row.sentences(run)
    )


@warns("warning", must_act="operator")
def pins_broken(run: WarnedRun) -> Iterator[str]:
    """the engine did not do what the profile pins; which, wanted and found"""
    if not run.broken:
        return
    n = len(run.broken)
    named = ", ".join(f"{name} (should be {due}, is {actual})" for name, due, actual in run.broken[:PINS_NAMED])
    more = f" and {n - PINS_NAMED} more" if n > PINS_NAMED else ""
    what = f"{counted(n, 'pin')} {'is' if n == 1 else 'are'} broken"
    yield f"{what}: {named}{more}. The run was not decoded as its profile says."


@warns("warning", must_act="operator")
def failed(run: WarnedRun) -> Iterator[str]:
    """the run failed, and why"""
    if run.status == "failed":
        first_line = next(iter(run.failure.strip().splitlines()), "")  # a traceback may follow; history keeps it
        yield f"The run failed, so it has no score. {first_line}".strip()


@warns("warning", must_act="author")
def cancelled(run: WarnedRun) -> Iterator[str]:
    """the run was cancelled; how many responses came before"""
    if run.status == "cancelled":
        n_done = run.n_decoded - run.errors.total()
        yield f"The run was cancelled with {n_done:,} of {run.n_total:,} responses; it has no score."


@warns("warning", must_act="author")
def incomplete(run: WarnedRun) -> Iterator[str]:
    """responses are missing: how many, and why"""
    if not run.lacks_responses:
        return
    why = [*run.errors.items(), ("not in the log" if run.is_logged else "never decoded", run.n_never)]
    parts = ", ".join(f"{n:,} {code}" for code, n in sorted(why, key=lambda part: -part[1]) if n)
    n_missing, total = sum(n for _, n in why), counted(run.n_total, "response")
    yield f"{n_missing:,} of {total} {'is' if n_missing == 1 else 'are'} missing ({parts}); no score is given."


@warns("warning", must_act="operator")
def few_draws(run: WarnedRun) -> Iterator[str]:
    """too many answers came from a cache or a fallback, so there is no score"""
    if run.status == "incomplete" and not run.lacks_responses:
        yield (
            f"{counted(run.n_left_out, 'answer')} of {run.n_total:,} came out of a cache or from a fallback, which are "
            "no draws of this model; no score is given."
        )


@warns("warning", must_act="operator")
def several_buckets(run: WarnedRun) -> Iterator[str]:
    """more than one bucket answered it"""
    if run.n_buckets > 1:
        yield f"{run.n_buckets} buckets served this run; each is scored apart, and no verdict reads a pooled score."


@warns("warning", must_act="operator")
def other_model(run: WarnedRun) -> Iterator[str]:
    """the answers name another model than requested, and no `same model` entry joins the two"""
    if run.other_models:
        n, named = sum(run.other_models.values()), listed(list(run.other_models))
        yield f"Asked for {run.asked_model}; {named} answered {n:,} of {run.n_decoded - run.errors.total():,}."


@warns("warning", must_act="operator")
def not_greedy(run: WarnedRun) -> Iterator[str]:
    """temperature 0 was not in effect: repeats are judged as samples.

    At least 3 answers, and 1 % of them, have a token below the most likely one
    """
    if run.not_greedy:
        n, total = run.not_greedy
        yield (
            f"Decoding was not greedy: at temperature 0, {n:,} of {counted(total, 'answer')} hold a token that was not "
            "the most likely one. Repeats are judged as samples."
        )


@warns("warning", must_act="operator")
def first_repeat_differs(run: WarnedRun) -> Iterator[str]:
    """the later repeats are copies of each other and the first is none of them, as behind a prefix cache
    ([copies](docs/verdict.md#copies))
    """
    if n := run.n_of_cold_cache:
        yield (
            f"Repeats 2 to {n} are copies of each other, and repeat 1 alone differs, as before a cache is warm. The "
            "copies count as one sample."
        )


@warns("warning", must_act="operator")
def unvouched(run: WarnedRun) -> Iterator[str]:
    """the self-check stopped giving the same bits; these responses came after the last good one"""
    if n := run.n_unvouched:
        text = f"{counted(n, 'response')} {'is' if n == 1 else 'are'} not vouched for"
        yield f"{text}: the engine's self-check no longer gave the same bits."


@warns("warning", must_act="author")
def truncated(run: WarnedRun) -> Iterator[str]:
    """answers were cut inside their [thinking](docs/profiles.md#thinking).

    They score 0 unless their scorer reads the thinking. A larger `max_tokens` gives them room
    """
    if n := run.n_truncated:
        was, score = ("was cut inside its", "scores") if n == 1 else ("were cut inside their", "score")
        what = "" if run.is_logged else f" and {score} 0"  # a log's own scores may stand
        yield f"{counted(n, 'answer')} {was} thinking{what}: raise max_tokens."


@warns("warning", must_act="author")
def ended_otherwise(run: WarnedRun) -> Iterator[str]:
    """answers are `cut` at a limit, `filtered` by the provider, `refused` by the model, or `empty`.

    They are scored like any other; `endings` counts them, and the list of cases filters by them
    """
    parts = [(ending, n) for ending, n in run.endings.items() if ending != "unknown"]
    if parts:
        counts = listed([f"{n:,} {'was' if n == 1 else 'were'} {ending}" for ending, n in parts])
        yield f"Of {counted(run.n_decoded - run.errors.total(), 'answer')}, {counts}. They are scored as they are."


@warns("warning", must_act="author")
def prompts_filtered(run: WarnedRun) -> Iterator[str]:
    """the provider's filter refused prompts, and the score leaves them out.

    A release leaves out those that both sides refuse
    """
    if run.status == "finished" and (n := run.errors["prompt_filtered"]):
        calls = counted(run.n_total, "time")
        yield f"The provider's filter refused the prompt {n:,} of {calls}; the score is over the rest."


@warns("warning", must_act="operator")
def unknown_ending(run: WarnedRun) -> Iterator[str]:
    """answers have an unknown finish reason, so they have no score.

    The text names it, and the command that declares its meaning
    """
    if run.endings.get("unknown"):
        yield run.notes.get("unknown_ending", f"{run.endings['unknown']:,} answers ended with an unknown word.")


@warns("info", must_act=None)
def usual_ending(run: WarnedRun) -> Iterator[str]:
    """at least nine of ten answers have the same unknown finish reason, which is taken for `complete`"""
    if text := run.notes.get("usual_ending"):
        yield text


@warns("warning", must_act="operator")
def two_computations(run: WarnedRun) -> Iterator[str]:
    """some responses are outliers, while the others of their case agree (docs/divergence.md#strays).

    `strays` of the bucket counts them, and `GET /runs/{id}/strays/` lists them
    """
    yield from map(_describe_strays, run.strays)


@warns("warning", must_act="operator")
def unsteady(run: WarnedRun) -> Iterator[str]:
    """repeats differ in bits under a batch class that must give the same bits.

    These are batch size 1, `invariant`, and `fixed-N` without sampling. If outliers cause it, the other warning says so
    """
    for bucket in run.unsteady:
        n, cases, total = bucket["n_apart"], bucket["cases"], counted(bucket["n_cases"], "case")
        more = f" and {n - len(cases):,} more" if n > len(cases) else ""
        yield (
            f"Repeats are not the same to the bit in {n:,} of {total} ({', '.join(cases)}{more}), and "
            f"under batch class {bucket['batch_class']} they must be: something moves bits that no fingerprint shows. "
            "Replay one of them to see whether it comes again."
        )


@warns("warning", must_act="operator")
def uncertified(run: WarnedRun) -> Iterator[str]:
    """an `invariant` run's node has no [determinism certificate](docs/probes.md#determinism).

    There is none for this model, engine and driver. The text names the node and the command
    """
    if run.uncertified:
        command = f"evalboard probe {run.endpoint} --kind determinism --profile {run.profile}"
        where = f"No determinism certificate speaks of {listed(run.uncertified)} with this model, engine and driver"
        yield f"{where}: that batching moves no bit here is the profile's promise, and was not measured. Ask: {command}"


@warns("warning", must_act="operator")
def self_check_differs(run: WarnedRun) -> Iterator[str]:
    """engine processes of one bucket gave different self-checks"""
    if run.has_unlike_self_checks:
        yield (
            "Engine processes of one bucket gave different self-checks: something moves bits that no fingerprint shows."
        )


@warns("warning", must_act="operator")
def unknown_stack(run: WarnedRun) -> Iterator[str]:
    """the serving stack of some responses is not in the log, or not reported by the server"""
    if run.is_stack_unknown:
        who = "The log" if run.is_logged else "The server"
        yield f"{who} does not say what served some responses, so they are comparable with no other run."


@warns("info", must_act=None)
def reported(run: WarnedRun) -> Iterator[str]:
    """an external server answered: its identity is self-reported"""
    if run.is_reported and not run.is_logged:
        yield (
            "A server of others answered: who served is what it says itself, and it does not say how the responses "
            "were batched."
        )


@warns("warning", must_act=None)
def call_fingerprints(run: WarnedRun) -> Iterator[str]:
    """more than half of the answers have a unique fingerprint, so it may identify calls.

    If all have, who answered is unknown
    """
    if text := run.notes.get("call_fingerprints"):
        yield text


@warns("info", must_act=None)
def text_only(run: WarnedRun) -> Iterator[str]:
    """there are no tokens of some responses"""
    if text := run.notes.get("text_only"):
        yield text


@warns("warning", must_act="operator")
def dropped_fields(run: WarnedRun) -> Iterator[str]:
    """fields of some answers, such as logprobs or token counts, could not be read.

    The text says which, and of how many answers. The answers are kept
    """
    if text := run.notes.get("dropped_fields"):
        yield text


@warns("warning", must_act="operator")
def unclean_responses(run: WarnedRun) -> Iterator[str]:
    """some answers came from a cache, from a fallback or after a retry.

    Those from a cache or a fallback are in no range (`n_left_out` of a repeat)
    """
    if text := run.notes.get("unclean_responses"):
        yield text


@warns("info", must_act=None)
def imported(run: WarnedRun) -> Iterator[str]:
    """it was read from a log (docs/imports.md), which lacks how the responses were batched"""
    if run.tool:
        yield f"Read from a log of {run.tool}, which does not say how the responses were batched."


@warns("warning", must_act="operator")
def endpoint_rests(run: WarnedRun) -> Iterator[str]:
    """the endpoint is paused: it failed too often in a row, or requested a pause.

    The text says why and when the next try is; then the run continues
    """
    if run.pause:
        yield describe_pause(**run.pause)


@warns("warning", must_act="operator")
def no_matching_worker(run: WarnedRun) -> Iterator[str]:
    """no worker can take it, and why"""
    if run.deserted:
        yield waiting(*run.deserted)


@warns("warning", must_act="operator")
def queue_delayed(run: WarnedRun) -> Iterator[str]:
    """it waits, and Redis cannot tell workers of it: they find it when they next look"""
    if run.doorbell_problem:
        yield f"The queue is delayed. {run.doorbell_problem}"


@warns("info", must_act=None)
def rough_profile(run: WarnedRun) -> Iterator[str]:
    """the profile batches cases as they come"""
    if run.is_mixed and not run.is_reported:  # `reported` and `imported` say it
        yield f"Profile {run.profile} batches cases as they come: a rough signal, as repeats may differ."


@warns("info", must_act=None)
def one_process(run: WarnedRun) -> Iterator[str]:
    """all repeats shared one engine process"""
    if n := run.n_of_one_process:
        yield f"All {n} repeats shared one engine process, so the range does not show what a fresh start changes."


@warns("info", must_act=None)
def coarse_suite(run: WarnedRun) -> Iterator[str]:
    """one case is more than a point of the score"""
    if run.n_cases and (worth := 100 / run.n_cases) > POINTS_WORTH_A_WARNING:
        yield f"One of {run.n_cases:,} cases is worth {points(worth)} points."


def _describe_strays(strays: Facts) -> str:
    """Say that some responses of a bucket are outliers within their case."""
    n_strays, noise = strays["n_strays"], strays["noise"]
    agree = f"within {nats_rounded(noise)}" if noise else "to the bit"
    lie = f"lie {nats_rounded(strays['distance'])} from"
    where = f"{counted(n_strays, 'response')} in {counted(strays['n_stray_cases'], 'case')}"
    must = "Repeats must be the same to the bit here; look" if strays["is_steady"] else "Look"
    look = f"{must} for requests that were routed to another build."
    agreeing = percent_at_least(strays["n_agreeing"] / strays["n_responses"])
    share = percent_rounded(n_strays / strays["n_responses"])
    if noise and strays["n_identical"]:
        agree = f"{agree}, {percent_at_least(strays['n_identical'] / strays['n_responses'])} of all to the bit"
    return (
        f"Two computations answered: {agreeing} of the responses agree with most others of their case, and {share} "
        f"({where}) {lie} those others, which agree {agree}. {look}"
    )
