"""The sentences about a run: why it waits, which runs a worker skips, what its draws say.

Its warnings are in run_warnings.py.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any

from evalboard.wording.numbers import capital, counted, listed, points

if TYPE_CHECKING:
    from evalboard.contract.bucket import Metric, VarianceParts
    from evalboard.contract.parts import WaitingFor
    from evalboard.contract.run import Ahead, Run, Trouble

Facts = Mapping[str, Any]

MARKED = {
    "cached": "came out of a cache",
    "fallback": "came from another model or backend than asked for",
    "retried": "came after a failed try",
}
TRACE_REASONS = {
    "spelled_otherwise": "The tokens do not spell the answer.",
    "partial": "The tokens spell only a part of the answer.",
    "covers_thinking": "The tokens are those of the thinking alone, and are compared as thinking.",
    "merged": "The server counts more tokens than it lists: several share one logprob.",
    "all_zero": "Every logprob is exactly 0: the server gives none.",
    "placeholder_logprobs": (
        "Placeholder logprobs: tokens stand at exactly 0 next to others that are likely too, as draft tokens do that a "
        "server accepts."
    ),
    "not_listed": "The server has no logprob of the chosen tokens, and gives a placeholder such as −9999.",
}


def waiting(code: str, facts: Facts) -> str:
    """Say why no worker decodes a run that has not ended."""
    return _fill(WAITING[code], facts)


def queue_full(person: str, *, n_waiting: int, n_more: int, limit: int, run_ids: Sequence[int]) -> str:
    """Say why no more of a person's work is queued, and what to do. run_ids: the largest first."""
    would = f"{counted(n_more, 'response')} more would make {n_waiting + n_more:,} in the queue of {person}"
    text = f"{would}, and one person may have {limit:,} there."
    if not run_ids:
        return f"{text} Ask for fewer repeats, or have EVALBOARD_MAX_QUEUED_RESPONSES raised."
    runs = f"{'run' if len(run_ids) == 1 else 'runs'} {listed([str(run_id) for run_id in run_ids])}"
    return f"{text} Wait until some are decoded, or cancel what is not needed; most are of {runs}."


def describe_ahead(ahead: "Ahead") -> str:
    """Say how much work is queued before a run, and how long it takes at the present rate."""
    if not ahead.n_shards:
        return "Nothing stands before it."
    stand = "stands" if ahead.n_shards == 1 else "stand"
    text = f"{counted(ahead.n_shards, 'shard')} of {counted(ahead.n_runs, 'run')} {stand} before it"
    return f"{text}." if ahead.seconds is None else f"{text}; about {duration(ahead.seconds)} at the present rate."


def duration(seconds: float) -> str:
    """Write a rough duration: "40 s", "4 min", "3 h"."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.0f} h"


def leaves_alone(facts: Facts) -> str:
    """Say which work a worker does not claim, and why."""
    return f"Leaves {facts['noun']} {facts['id']} alone: {facts['why']}"


def left_out_metric(code: str) -> str:
    """Say which metrics of draws are not there, and why."""
    return LEFT_OUT_METRICS[code]


def explain_no_interval(metric: "Metric") -> "Metric":
    """Add the sentence for why a metric has no interval on these cases."""
    if metric.no_interval_code is None:
        return metric
    return metric.model_copy(update={"no_interval": f"{NO_INTERVAL[metric.no_interval_code]} {REACH_HOLDS}"})


def describe_metric(name: str) -> str:
    """Say what "pass@5" or another metric of draws is, for a table."""
    kind, k = name[:5], name[5:]
    return METRICS[kind].format(k=k) if kind in METRICS else METRICS[name[:4]].format(k=name[4:])


def describe_split(parts: "VarianceParts", *, n_buckets: int, is_external: bool) -> str:
    """Say what moves a score: "Of 1.2 points between repeats: sampler 1.1, batch 0.4, backend none seen."."""
    total, sampler, batch = parts.total, parts.sampler, parts.batch
    backend = "backend none seen" if n_buckets == 1 else "backends scored apart"
    if is_external and batch is None:
        return (
            f"Repeats differ by {points(total)} points. That is the server's own: sampling or batching, which no "
            f"answer tells apart; {backend}."
        )
    if batch is None and sampler == 0:
        text = f"Of {points(total)} points between repeats: neither sampler nor batch, which is the same each time here"
        return f"{text}: something moves bits that no fingerprint shows; {backend}."
    if sampler is None or batch is None:
        text = f"Of {points(total)} points between repeats: sampler and batch together {points(total)}, {backend}."
        return f"{text} The batch alone was not measured: run the same seed under another batch class."
    return f"Of {points(total)} points between repeats: sampler {points(sampler)}, batch {points(batch)}, {backend}."


def clock(at: datetime, zone: tzinfo | None = UTC) -> str:
    """Write a time of today: "07:02:11 UTC". zone: None for this machine's own, as on a command line."""
    return f"{at.astimezone(zone):%H:%M:%S %Z}"


def as_sentence(text: str) -> str:
    """Return a text of a server with an end, so that another sentence can follow."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def describe_pause(*, n_failures: int, reason: str, until: datetime, zone: tzinfo | None = UTC) -> str:
    """Say why an endpoint is not called, and until when.

    "Paused after 5 failed calls: connection refused. Next try 07:02:11 UTC." reason: one or more sentences, or "".
    """
    after = f" after {counted(n_failures, 'failed call')}" if n_failures else ""
    why = f": {reason[:1].lower()}{reason[1:]}" if reason else ""
    return f"{as_sentence(f'Paused{after}{why}')} Next try {clock(until, zone)}."


def without_tokens(who: str, n: int, n_there: int, reasons: Mapping[str, int]) -> str:
    """Say how many responses are compared by text only, "" for none. who: "The log" or "The server".

    n: of those without tokens. reasons: why tokens are not measured, with the number of responses of each.
    """
    parts = [f"{who} has no tokens of {n:,} of {n_there:,} responses: their texts alone can be compared."] if n else []
    parts += [
        f"{n_alike:,} of {n_there:,} responses: {explain_trace_reason(code)}" for code, n_alike in reasons.items()
    ]
    return " ".join(parts)


def explain_trace_reason(code: str) -> str:
    """Say why a response's tokens are not measured. code: a non-empty importers.spelling.TraceReason."""
    why = TRACE_REASONS[code]
    return why if code == "covers_thinking" else f"{why} The tokens are shown, and only the texts are compared."


def without_odd_ones(score: float | None, odd: Sequence[tuple[str, str]]) -> str:
    """Say what a run scores without minor backends: "80.9 without the 7 % that backend B answered."

    score: in points, of who answered most. odd: the others' shares, as they are shown, and names. "" where it has no
    score or there are no others.
    """
    if score is None or not odd:
        return ""
    return f"{points(score)} without {listed([f'the {part} that {name} answered' for part, name in odd])}."


def dropped_fields(n_by_name: Mapping[str, int]) -> str:
    """Say which fields of how many answers could not be read."""
    parts = [f"{name} of {counted(n, 'answer')}" for name, n in sorted(n_by_name.items())]
    return f"Could not be read and is left out: {listed(parts)}. The answers are kept."


def unknown_ending(word: str, n: int, endpoint: str) -> str:
    """Say that answers with an unknown finish reason have no score, and what to do."""
    ended = f"{counted(n, 'answer')} ended with {word!r}, a word that Evalboard does not know, so they have no score."
    return f"{ended} If it means that an answer is complete: evalboard endpoint set {endpoint} --ending {word}=complete"


def usual_ending(word: str, n: int, total: int) -> str:
    """Say that a word of no list is taken for the end of complete answers."""
    return f"{n:,} of {counted(total, 'answer')} ended with {word!r}, so that is taken to mean: complete."


def unclean_responses(n_marked: Mapping[str, int], n_there: int) -> str:
    """Say how many responses carry each mark of `core.stats.live_answers`."""
    parts = ", ".join(f"{n:,} {MARKED[mark]}" for mark, n in sorted(n_marked.items()))
    rule = "Noise, ranges and verdicts leave out what a cache or a fallback answered."
    return f"Of {n_there:,} responses, {parts}. {rule}"


def describe_course(run: "Run") -> tuple[tuple[str, str], ...]:
    """Describe a run in three headed lines: what was requested, what was sent, what answered."""
    return ("Asked", f"{_describe_asked(run)}."), ("Sent", _describe_sent(run)), ("Answered", _describe_answered(run))


def _describe_asked(run: "Run") -> str:
    """ "gpt-4o, temperature 0, top_p 1, max_tokens 64, a seed for each call from 42"."""
    seed = "a seed for each call from {}" if run.draws.has_call_seeds else "seed {}"
    given = {name: run.sampling.get(name) for name in ("temperature", "top_p", "max_tokens", "seed")}
    numbers = {name: f"{value:g}" for name, value in given.items() if isinstance(value, int | float)}
    is_default = given["temperature"] == "default"
    if is_default and given["top_p"] == 1:
        del numbers["top_p"]  # it is not sent then
    words = ["the server's own temperature"] if is_default else []
    words += [seed.format(number) if name == "seed" else f"{name} {number}" for name, number in numbers.items()]
    return ", ".join([run.asked_model, *words])


def _describe_sent(run: "Run") -> str:
    """Say which settings calls went without, and which a check or the answers show to be dropped."""
    is_refuted = any(fact.source == "answers" for fact in run.settings)
    return f"{_describe_calls(run)}{' The answers show that temperature 0 was not in effect.' if is_refuted else ''}"


def _describe_calls(run: "Run") -> str:
    if not run.is_reported:
        return "The same, to an engine of our own that reads its settings back."
    if _is_logged(run):
        is_said = run.settings[0].wanted is not None
        return "What the log says." if is_said else "What the log says; it names no temperature."
    left_out = [fact.name for fact in run.settings if fact.source == "refusal"]
    probes = {fact.probe for fact in run.settings if fact.source == "refusal" and fact.probe}
    ignored = [fact for fact in run.settings if fact.source == "check"]
    text = "The same with each call."
    if any((fact.name, fact.wanted) == ("temperature", "default") for fact in run.settings):
        text = "The same with each call, and no temperature."
    if left_out:
        by = f", as probe {min(probes)} found" if probes else ""
        text = f"The same but {listed(left_out)}: the server refused {'it' if len(left_out) == 1 else 'them'}{by}."
    if not ignored:
        return text
    return f"{text} Probe {ignored[0].probe} found that the server ignores {listed([fact.name for fact in ignored])}."


def fingerprints_of_calls(n_different: int, n: int, *, endpoint: str) -> str:
    """Say that fingerprints identify calls, not servers: n_different of n answers differ."""
    text = f"{n:,} answers came with {n_different:,} different fingerprints"
    if n_different == n:
        return f"{text}, so a fingerprint names a call and no server. Who answered is unknown."
    return (
        f"{text}, so a fingerprint may name a call. Each counts as a server of its own. "
        f"If they name none: evalboard endpoint set {endpoint} --ignore-fingerprint"
    )


def _is_logged(run: "Run") -> bool:
    return any(fact.source == "log" for fact in run.settings)


def _describe_answered(run: "Run") -> str:
    """Name the models that answered, as self-reported, with their number of answers."""
    given: Counter[str] = Counter()
    for bucket in run.buckets:
        given[bucket.model_reported or bucket.model.name] += bucket.n_responses
    if not given:
        return "Nothing yet."
    models = listed([f"{name} ({n:,} of {counted(given.total(), 'answer')})" for name, n in given.items()])
    return f"{models}, as {'the log' if _is_logged(run) else 'the server'} says." if run.is_reported else f"{models}."


def _fill(sentence: str | Callable[[Facts], str], facts: Facts) -> str:
    return sentence.format(**facts) if isinstance(sentence, str) else sentence(facts)


def _left_alone(facts: Facts) -> str:
    return f"Every worker of pool {facts['pool']} leaves this run alone. {_reasons(facts)}"


def _resting(facts: Facts) -> str:
    pool, n, until = facts["pool"], facts["n_resting"], clock(facts["until"])
    who = f"The worker of pool {pool} rests" if n == 1 else f"{n} workers of pool {pool} rest"
    text = f"{who} after failures of the engine, until {until}"
    return f"{text}; the others leave this run alone. {_reasons(facts)}" if facts["reasons"] else f"{text}."


def _endpoint_rests(facts: Facts) -> str:
    return describe_pause(n_failures=facts.get("n_failures", 0), reason=facts["reason"], until=facts["until"])


def _queued(facts: Facts) -> str:
    at_work = ", all at work on other runs" if facts["are_busy"] else ""
    text = f"Waits for a worker of pool {facts['pool']}; {facts['n_alive']} seen lately{at_work}."
    ahead = facts["ahead"]
    return f"{text} {describe_ahead(ahead)}" if ahead and ahead.n_shards else text


def _reasons(facts: Facts) -> str:
    """Say why workers do not claim a run, with how many workers share each reason."""
    return " ".join(f"{n} workers: {why}" if n > 1 else capital(why) for why, n in facts["reasons"])


def describe_waiting(paused: "WaitingFor") -> str:
    """Say what a run waits for, as "Waiting for prod after 7 failed calls: it answered 503." """
    after = f" after {counted(paused.n_failures, 'failed call')}" if paused.n_failures else ""
    why = f": {paused.reason[:1].lower()}{paused.reason[1:]}" if paused.reason else ""
    return as_sentence(f"Waiting for {paused.endpoint}{after}{why}")


def describe_trouble(code: str, cause: str, *, endpoint: str, pool: str) -> "Trouble":
    """Return a run's trouble with the steps that mend it. cause: "" for the sentence of the code."""
    from evalboard.contract.run import StepToMend, Trouble

    steps = tuple(
        StepToMend(text=text, command=command.format(endpoint=endpoint, pool=pool)) for text, command in MEND[code]
    )
    return Trouble(code=code, cause=cause or CAUSES_OF_TROUBLE[code], steps=steps)


_ASK_SERVER = ("See what the server answers", "evalboard endpoint check {endpoint} --wait")
_RUN_AGAIN = ("Run it again", "")
# What mends a run, by the code of its trouble: (what to do, the command for it).
MEND: Mapping[str, Sequence[tuple[str, str]]] = {
    "key_unreadable": (
        ("Set the key on that worker", ""),
        ("Start the worker again", "evalboard worker --pool {pool}"),
        _RUN_AGAIN,
    ),
    "endpoint_refused": (_ASK_SERVER, ("Correct its address, model or key", ""), _RUN_AGAIN),
    "engine_start_failed": (
        ("Read the engine's own words in the history", ""),
        ("Correct the model's path or the profile", ""),
        _RUN_AGAIN,
    ),
    "failed": (("Read the history", ""), _RUN_AGAIN),
    "no_answer": (_ASK_SERVER, ("Run the missing responses", "")),
    "cancelled": (),
    "endpoint_rests": (),
    "no_worker": (("Start a worker", "evalboard worker --pool {pool}"),),
}
FAILURES = ("key_unreadable", "endpoint_refused", "engine_start_failed")  # codes of history lines too
CAUSES_OF_TROUBLE = {
    "failed": "The run failed, and left no reason.",
    "no_answer": "No call gave an answer.",
    "cancelled": "The run was cancelled before the first answer.",
}

METRICS = {
    "avg@": "the score: how often a draw is right",
    "pass@": "how often at least one of {k} draws is right",
    "pass^": "how often all of {k} draws are right",
    "maj@": "how often the answer is right that most of {k} draws gave; a tie is broken by chance",
}
NO_INTERVAL = {
    "every_draw": "Every draw of a case is taken, so that none can be left out to measure how far one moves it; with "
    "further repeats one can.",
    "vote": "A vote of fewer draws is another vote, so that none can be left out to measure how far this one moves.",
    "draws_missing": "Some draws are missing.",
}
REACH_HOLDS = "The interval for cases like these holds for these as well, and is wider than it need be."
LEFT_OUT_METRICS = {
    "graded": "Some scores lie between wrong and right. pass@k, pass^k and maj@n count right draws; they are left out.",
    "answers_unlike": "The scorer reads no single answer out of a response, so it is not known which draws agree, and "
    "maj@n is left out.",
    "answers_unread": "The responses were scored before their answers were stored, so maj@n is left out. Score the run "
    "again with the suite's own scorer to have it.",
}

# A sentence is a text with the names of its facts, or a function where it takes more than to fill them in.
Table = Mapping[str, str | Callable[[Facts], str]]

WAITING: Table = {
    "nobody": "No worker of pool {pool} is there; start one with `evalboard worker --pool {pool}`.",
    "no_engine": "No worker of pool {pool} has an engine; start one where vLLM is: `evalboard worker --pool {pool}`.",
    "left_alone": _left_alone,
    "resting": _resting,
    "endpoint_rests": _endpoint_rests,
    "paused": lambda facts: f"The engine did not start; it is tried again at {clock(facts['until'])}.",
    "queued": _queued,
}
