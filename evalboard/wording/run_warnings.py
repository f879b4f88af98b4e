"""Warnings of a run, worst first: when each applies, and its sentence.

Each is a function under `@warns`. Its name is the code, and its docstring is its text in docs/api-reference.md. It
yields no sentence, one, or one for each bucket. The codes are listed nowhere else.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalboard.contract.base import Severity
from evalboard.contract.run import Actor, RunWarning
from evalboard.wording.manifest import render_batching
from evalboard.wording.messages import Claim, Strength, speak, write
from evalboard.wording.numbers import capital, counted, listed, nats_rounded, percent_at_least, percent_rounded, points
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
    no worker takes it. deletions: sentences on what was deleted. doorbell_problem: in words.
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
    deletions: Sequence[str] = ()
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
    """A warning. severity: "warning" if the numbers may mislead or are missing, "info" otherwise.

    subject, strength: as in `wording.messages.Message`.
    """

    code: str
    severity: Severity
    must_act: Actor | None
    subject: str
    strength: Strength
    sentences: Sentences

    @property
    def means(self) -> str:
        return self.sentences.__doc__ or ""


WARNINGS: list[WarningRow] = []


def warns(
    severity: Severity, *, must_act: Actor | None, subject: str, strength: Strength = "asserts"
) -> Callable[[Sentences], Sentences]:
    """Make a row of the function below.

    must_act: as `RunWarning` has it.
    """

    def add(sentences: Sentences) -> Sentences:
        WARNINGS.append(WarningRow(sentences.__name__, severity, must_act, subject, strength, sentences))
        return sentences

    return add


def list_warnings(run: WarnedRun, *, with_codes: Iterable[str] = ()) -> tuple[RunWarning, ...]:
    """Return the warnings of a run, worst first: what voids the numbers, then what limits their meaning.

    with_codes: of the claims that its page makes elsewhere.
    """
    return tuple(
        RunWarning(code=row.code, text=spoken, severity=row.severity, must_act=row.must_act)
        for row in WARNINGS
        for text in row.sentences(run)
        if (spoken := speak([Claim(f"run.{row.code}", row.subject, row.strength, text)], with_codes=with_codes))
    )


@warns("warning", must_act="operator", subject="pins")
def pins_broken(run: WarnedRun) -> Iterator[str]:
    """the engine did not do what the profile pins; which, wanted and found"""
    if not run.broken:
        return
    n = len(run.broken)
    named = ", ".join(f"{name} (should be {due}, is {actual})" for name, due, actual in run.broken[:PINS_NAMED])
    more = f" and {n - PINS_NAMED} more" if n > PINS_NAMED else ""
    yield write("{n:pin} of the profile {n:is|are} broken: {named}{more}.", n=n, named=named, more=more)


@warns("warning", must_act="operator", subject="status")
def failed(run: WarnedRun) -> Iterator[str]:
    """the run failed, and why"""
    if run.status == "failed":
        first_line = next(iter(run.failure.strip().splitlines()), "")  # a traceback may follow; history keeps it
        yield f"The run failed, so it has no score. {first_line}".strip()


@warns("warning", must_act="author", subject="status")
def cancelled(run: WarnedRun) -> Iterator[str]:
    """the run was cancelled; how many responses came before"""
    if run.status == "cancelled":
        n_done = run.n_decoded - run.errors.total()
        yield f"The run was cancelled at {n_done:,} of {run.n_total:,} responses, so it has no score."


@warns("warning", must_act="author", subject="missing")
def incomplete(run: WarnedRun) -> Iterator[str]:
    """responses are missing: how many, and why"""
    if not run.lacks_responses:
        return
    why = [*run.errors.items(), ("not in the log" if run.is_logged else "never decoded", run.n_never)]
    yield write(
        "{n:,} of {total:response} {n:is|are} missing ({parts}), so there is no score.",
        n=sum(n for _, n in why),
        total=run.n_total,
        parts=", ".join(f"{n:,} {code}" for code, n in sorted(why, key=lambda part: -part[1]) if n),
    )


@warns("warning", must_act="operator", subject="samples")
def few_draws(run: WarnedRun) -> Iterator[str]:
    """too many answers came from a cache or a fallback, so there is no score"""
    if run.status == "incomplete" and not run.lacks_responses:
        text = "{n:,} of {total:answer} came from a cache or a fallback, so there is no score."
        yield write(text, n=run.n_left_out, total=run.n_total)


@warns("warning", must_act="operator", subject="backends")
def several_buckets(run: WarnedRun) -> Iterator[str]:
    """more than one bucket answered it"""
    if run.n_buckets > 1:
        yield write(
            "{n:bucket} answered this run. Each is scored separately, and no verdict reads a pooled score.",
            n=run.n_buckets,
        )


@warns("warning", must_act="operator", subject="model")
def other_model(run: WarnedRun) -> Iterator[str]:
    """the answers name another model than requested, and no `same model` entry joins the two"""
    if run.other_models:
        n, named = sum(run.other_models.values()), listed(list(run.other_models))
        n_answers = run.n_decoded - run.errors.total()
        yield f"The run requested {run.asked_model}, but {named} answered {n:,} of {n_answers:,}."


@warns("warning", must_act="operator", subject="sampling")
def not_greedy(run: WarnedRun) -> Iterator[str]:
    """temperature 0 was not in effect: repeats are judged as samples.

    At least 3 answers, and 1 % of them, have a token below the most likely one
    """
    if run.not_greedy:
        n, total = run.not_greedy
        text = (
            "At temperature 0, {n:,} of {total:answer} {n:has|have} a less likely token. Repeats are judged as samples."
        )
        yield write(f"Decoding was not greedy. {text}", n=n, total=total)


@warns("warning", must_act="operator", subject="samples", strength="allows")
def first_repeat_differs(run: WarnedRun) -> Iterator[str]:
    """the later repeats are copies of each other and the first is none of them, as behind a prefix cache
    ([copies](docs/verdict.md#copies))
    """
    if n := run.n_of_cold_cache:
        yield (
            f"Repeats 2 to {n} are copies of each other and count as one sample. Only repeat 1 differs, as with a cold "
            "cache."
        )


@warns("warning", must_act="operator", subject="identity", strength="unknown")
def unvouched(run: WarnedRun) -> Iterator[str]:
    """the self-check stopped giving the same bits; these responses came after the last good one"""
    if n := run.n_unvouched:
        yield write("{n:response} came after a failed self-check of the engine. Run {n:it|them} again.", n=n)


@warns("warning", must_act="author", subject="endings")
def truncated(run: WarnedRun) -> Iterator[str]:
    """answers were cut inside their [thinking](docs/profiles.md#thinking).

    They score 0 unless their scorer reads the thinking. A larger `max_tokens` gives them room
    """
    if n := run.n_truncated:
        what = "" if run.is_logged else " and {n:scores|score} 0"  # a log's own scores may stand
        yield write(f"{{n:answer}} {{n:was|were}} cut inside the thinking{what}. Raise max_tokens.", n=n)


@warns("warning", must_act="author", subject="endings")
def ended_otherwise(run: WarnedRun) -> Iterator[str]:
    """answers are `cut` at a limit, `filtered` by the provider, `refused` by the model, or `empty`.

    They are scored like any other; `endings` counts them, and the list of cases filters by them
    """
    parts = [(ending, n) for ending, n in run.endings.items() if ending != "unknown"]
    if parts:
        counts = listed([f"{n:,} {'was' if n == 1 else 'were'} {ending}" for ending, n in parts])
        yield f"Of {counted(run.n_decoded - run.errors.total(), 'answer')}, {counts}. They are scored like any other."


@warns("warning", must_act="author", subject="endings")
def prompts_filtered(run: WarnedRun) -> Iterator[str]:
    """the provider's filter refused prompts, and the score leaves them out.

    A release leaves out those that both sides refuse
    """
    if run.status == "finished" and (n := run.errors["prompt_filtered"]):
        text = "The provider refused {n:,} of {total:prompt}. The score leaves {n:it|them} out."
        yield write(text, n=n, total=run.n_total)


@warns("warning", must_act="operator", subject="endings", strength="unknown")
def unknown_ending(run: WarnedRun) -> Iterator[str]:
    """answers have an unknown finish reason, so they have no score.

    The text names it, and the command that declares its meaning
    """
    if n := run.endings.get("unknown"):
        yield run.notes.get("unknown_ending", write("{n:answer} ended with an unknown word.", n=n))


@warns("info", must_act=None, subject="endings", strength="allows")
def usual_ending(run: WarnedRun) -> Iterator[str]:
    """at least nine of ten answers have the same unknown finish reason, which is taken for `complete`"""
    if text := run.notes.get("usual_ending"):
        yield text


@warns("warning", must_act="operator", subject="computation")
def two_computations(run: WarnedRun) -> Iterator[str]:
    """some responses are outliers, while the others of their case agree (docs/divergence.md#strays).

    `strays` of the bucket counts them, and `GET /runs/{id}/strays/` lists them
    """
    yield from map(_describe_strays, run.strays)


@warns("warning", must_act="operator", subject="batching")
def unsteady(run: WarnedRun) -> Iterator[str]:
    """repeats differ in bits under a batch class that must give the same bits.

    These are batch size 1, `invariant`, and `fixed-N` without sampling. If outliers cause it, the other warning says so
    """
    for bucket in run.unsteady:
        n, cases = bucket["n_apart"], bucket["cases"]
        yield write(
            "Repeats have different bits in {n_apart:,} of {n_cases:case} ({named}{more}). {batched}, repeats should "
            "give the same bits. No fingerprint shows why these differ. Replay one.",
            **bucket,
            batched=capital(render_batching(bucket["batch_class"])),
            named=", ".join(cases),
            more=f" and {n - len(cases):,} more" if n > len(cases) else "",
        )


@warns("warning", must_act="operator", subject="batching", strength="unknown")
def uncertified(run: WarnedRun) -> Iterator[str]:
    """an `invariant` run's node has no [determinism certificate](docs/probes.md#determinism).

    There is none for this model, engine and driver. The text names the node and the command
    """
    if run.uncertified:
        command = f"evalboard probe {run.endpoint} --kind determinism --profile {run.profile}"
        where = f"No determinism certificate covers {listed(run.uncertified)} with this model, engine and driver."
        yield f"{where} To measure it: {command}"


@warns("warning", must_act="operator", subject="batching")
def self_check_differs(run: WarnedRun) -> Iterator[str]:
    """engine processes of one bucket gave different self-checks"""
    if run.has_unlike_self_checks:
        what = "Engines with equal settings gave different answers to the fixed test prompts"
        yield f"{what}. No recorded setting shows the cause."


@warns("warning", must_act="operator", subject="identity", strength="unknown")
def unknown_stack(run: WarnedRun) -> Iterator[str]:
    """the serving stack of some responses is not in the log, or not reported by the server"""
    if run.is_stack_unknown:
        where = "in the log" if run.is_logged else "reported by the server"
        yield f"The stack of some responses is not {where}. They cannot be compared with other runs."


@warns("info", must_act=None, subject="identity", strength="unknown")
def reported(run: WarnedRun) -> Iterator[str]:
    """an external server answered: its identity is self-reported"""
    if run.is_reported and not run.is_logged:
        yield "External server: its identity is self-reported."


@warns("warning", must_act=None, subject="identity", strength="unknown")
def call_fingerprints(run: WarnedRun) -> Iterator[str]:
    """more than half of the answers have a unique fingerprint, so it may identify calls.

    If all have, who answered is unknown
    """
    if text := run.notes.get("call_fingerprints"):
        yield text


@warns("info", must_act=None, subject="tokens")
def text_only(run: WarnedRun) -> Iterator[str]:
    """there are no tokens of some responses"""
    if text := run.notes.get("text_only"):
        yield text


@warns("warning", must_act="operator", subject="fields")
def dropped_fields(run: WarnedRun) -> Iterator[str]:
    """fields of some answers, such as logprobs or token counts, could not be read.

    The text says which, and of how many answers. The answers are kept
    """
    if text := run.notes.get("dropped_fields"):
        yield text


@warns("warning", must_act="operator", subject="samples")
def unclean_responses(run: WarnedRun) -> Iterator[str]:
    """some answers came from a cache, from a fallback or after a retry.

    Those from a cache or a fallback are in no range (`n_left_out` of a repeat)
    """
    if text := run.notes.get("unclean_responses"):
        yield text


@warns("info", must_act=None, subject="source")
def imported(run: WarnedRun) -> Iterator[str]:
    """it was read from a log (docs/imports.md)"""
    if run.tool:
        yield f"Imported from a log of {run.tool}."


@warns("info", must_act=None, subject="batching", strength="unknown")
def unknown_batching(run: WarnedRun) -> Iterator[str]:
    """how an external server batched the responses is unknown, and nothing measured it"""
    if run.is_reported:
        yield "How the responses were batched is unknown. Batching alone can change answers between runs."


@warns("warning", must_act="operator", subject="status")
def endpoint_rests(run: WarnedRun) -> Iterator[str]:
    """the endpoint is paused: it failed too often in a row, or requested a pause.

    The text says why and when the next try is; then the run continues
    """
    if run.pause:
        yield describe_pause(**run.pause)


@warns("warning", must_act="operator", subject="status")
def no_matching_worker(run: WarnedRun) -> Iterator[str]:
    """no worker can take it, and why"""
    if run.deserted:
        yield waiting(*run.deserted)


@warns("warning", must_act="operator", subject="status")
def queue_delayed(run: WarnedRun) -> Iterator[str]:
    """it waits, and Redis cannot tell workers of it: they find it when they next look"""
    if run.doorbell_problem:
        yield f"The queue is delayed. {run.doorbell_problem}"


@warns("info", must_act=None, subject="batching")
def rough_profile(run: WarnedRun) -> Iterator[str]:
    """the profile batches cases as they come"""
    if run.is_mixed and not run.is_reported:  # `unknown_batching` says it
        yield f"Profile {run.profile} batches cases as they come. Repeats may differ."


@warns("info", must_act=None, subject="noise")
def one_process(run: WarnedRun) -> Iterator[str]:
    """all repeats shared one engine process"""
    if n := run.n_of_one_process:
        yield f"All {n} repeats shared one engine process. The range does not include restarts."


@warns("info", must_act=None, subject="resolution")
def coarse_suite(run: WarnedRun) -> Iterator[str]:
    """one case is more than a point of the score"""
    if run.n_cases and (worth := 100 / run.n_cases) > POINTS_WORTH_A_WARNING:
        yield f"One of {run.n_cases:,} cases is {points(worth)} points."


def _describe_strays(strays: Facts) -> str:
    """Say that some responses of a bucket are outliers within their case."""
    noise = strays["noise"]
    agree = f"within {nats_rounded(noise)}" if noise else "to the bit"
    if noise and strays["n_identical"]:
        agree = f"{agree} ({percent_at_least(strays['n_identical'] / strays['n_responses'])} of all to the bit)"
    return write(
        "{n_strays:outlier response} ({share}) in {n_stray_cases:case}: {distance:nats_rounded} from the other repeats "
        "of the case, which agree {agree}. Another build probably answered. Check the routing.",
        **strays,
        share=percent_rounded(strays["n_strays"] / strays["n_responses"]),
        agree=agree,
    )


@warns("info", must_act=None, subject="deletion")
def answers_deleted(run: WarnedRun) -> Iterator[str]:
    """its traces, texts or a case were deleted; when, and by which rule or why. Scores are kept"""
    yield from run.deletions
