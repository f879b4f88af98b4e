"""The sentences about a run: why it waits, which runs a worker skips, what its draws say.

Its warnings are in run_warnings.py.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any

from evalboard.wording.judge import JUDGING
from evalboard.wording.messages import Messages, write
from evalboard.wording.numbers import capital, counted, fixed, listed, percent, points

if TYPE_CHECKING:
    from evalboard.contract.bucket import Metric, VarianceParts
    from evalboard.contract.parts import CostEstimate, WaitingFor
    from evalboard.contract.run import Ahead, Run, Trouble

Facts = Mapping[str, Any]

MARKED = {
    "cached": "came from a cache",
    "fallback": "came from a fallback model or backend",
    "retried": "came after a retry",
}
TRACE_REASONS = {
    "spelled_otherwise": "The tokens do not spell the answer.",
    "partial": "The tokens spell only a part of the answer.",
    "covers_thinking": "The tokens are those of the thinking only, and are compared as thinking.",
    "merged": "The server counts more tokens than it lists: several share one logprob.",
    "all_zero": "Every logprob is exactly 0: the server gives none.",
    "placeholder_logprobs": "Some logprobs are exactly 0, as servers write for draft tokens they accepted.",
    "not_listed": "The server has no logprob of the chosen tokens, only a placeholder such as −9999.",
}


def describe_score(score: float | None) -> str:
    """Return a response's score in a word: right, wrong, unscored, or how much of it is right."""
    if score is None:
        return "unscored"
    return {1.0: "right", 0.0: "wrong"}.get(score) or f"{percent(score)} right"


def waiting(code: str, facts: Facts) -> str:
    """Say why no worker decodes a run that has not ended."""
    return WAITING.write(code, facts)


def queue_full(person: str, *, n_waiting: int, n_more: int, limit: int, run_ids: Sequence[int]) -> str:
    """Say why no more of a person's work is queued, and what to do. run_ids: the largest first."""
    text = write(
        "{n_more:response} more would make {total:,} in the queue of {person}. The limit is {limit:,}.",
        n_more=n_more,
        total=n_waiting + n_more,
        person=person,
        limit=limit,
    )
    if not run_ids:
        return f"{text} Request fewer repeats, or raise EVALBOARD_MAX_QUEUED_RESPONSES."
    runs = f"{'run' if len(run_ids) == 1 else 'runs'} {listed([str(run_id) for run_id in run_ids])}"
    return f"{text} Wait, or cancel what you do not need. The largest: {runs}."


def describe_ahead(ahead: "Ahead") -> str:
    """Say how much work is queued before a run, and how long it takes at the present rate."""
    if not ahead.n_shards:
        return "It is next in the queue."
    text = write("{n:shard} of {n_runs:run} {n:is|are} queued before it", n=ahead.n_shards, n_runs=ahead.n_runs)
    return f"{text}." if ahead.seconds is None else f"{text}, about {duration(ahead.seconds)} at the present rate."


def duration(seconds: float) -> str:
    """Write a rough duration: "40 s", "4 min", "3 h"."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.0f} h"


def leaves_alone(facts: Facts) -> str:
    """Say which work a worker does not claim, and why."""
    return f"Does not take {facts['noun']} {facts['id']}: {facts['why']}"


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
    """Say what makes repeats differ: "Repeats differ by 0.3 points, all of it from batching."."""
    code = split_code(parts, is_external=is_external)
    seen = "No second backend answered." if n_buckets == 1 else "Backends are scored separately."
    return f"{SPLITS.write(code, total=parts.total, sampler=parts.sampler, batch=parts.batch)} {seen}"


def split_code(parts: "VarianceParts", *, is_external: bool) -> str:
    """Return the code of the sentence for what makes repeats differ, in SPLITS."""
    sampler, batch = parts.sampler, parts.batch
    if is_external and batch is None:
        return "external"
    if batch is None and sampler == 0:
        return "unexplained"
    if sampler is None or batch is None:
        return "together"
    by_zero = {"batch": sampler, "sampler": batch, "none": parts.total}  # the last that is shown as 0 decides
    return next((code for code, value in reversed(by_zero.items()) if points(value) == points(0)), "both")


SPLITS = Messages(
    "split",
    {
        ("variance", "denies"): {"none": "Repeats have the same score."},
        ("batching", "asserts"): {
            "batch": "Repeats differ by {total:points} points, all of it from batching.",
            "both": "Repeats differ by {total:points} points: sampling {sampler:points}, batching {batch:points}.",
        },
        ("variance", "asserts"): {"sampler": "Repeats differ by {total:points} points, all of it from sampling."},
        ("variance", "unknown"): {
            "external": "Repeats differ by {total:points} points, from the server's sampling or batching.",
            "unexplained": "Repeats differ by {total:points} points, from neither sampling nor batching. No "
            "fingerprint shows the "
            "cause.",
            "together": "Repeats differ by {total:points} points, from sampling and batching together. To "
            "separate them, run the "
            "same seed under another batch class.",
        },
    },
)


def clock(at: datetime, zone: tzinfo | None = UTC) -> str:
    """Write a time of today: "07:02:11 UTC". zone: None for this machine's own, as on a command line."""
    return f"{at.astimezone(zone):%H:%M:%S %Z}"


def as_sentence(text: str) -> str:
    """Return a text of a server with an end, so that another sentence can follow."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def describe_pause(
    *, n_failures: int, reason: str, until: datetime, zone: tzinfo | None = UTC, endpoint: str = ""
) -> str:
    """Say why an endpoint is not called, and until when.

    "The endpoint is paused after 5 failed calls: connection refused. Next try 07:02:11 UTC."

    reason: one or more sentences, or "". endpoint: named where it is not the run's.
    """
    after = f" after {counted(n_failures, 'failed call')}" if n_failures else ""
    named = f"Endpoint {endpoint}" if endpoint else "The endpoint"
    is_word = reason[1:2].islower()  # "Connection refused", not "HTTP 503"
    why = f": {reason[:1].lower() if is_word else reason[:1]}{reason[1:]}" if reason else ""
    return f"{as_sentence(f'{named} is paused{after}{why}')} Next try {clock(until, zone)}."


PAUSES = "Each failed try in a row doubles the pause, up to 10 minutes."


def describe_try(endpoint: str) -> str:
    """Say what follows from letting the next call of a paused endpoint go at once."""
    return f"The next call of {endpoint} goes at once. If it fails, the endpoint is paused again. {PAUSES}"


def describe_giving_up(at: datetime, zone: tzinfo | None = UTC) -> str:
    """Say when a run whose endpoint is paused gives up its first cases."""
    return f"Gives up its first cases at {clock(at, zone)}."


def without_tokens(who: str, n: int, n_there: int, reasons: Mapping[str, int]) -> str:
    """Say how many responses are compared by text only, "" for none. who: "The log" or "The server".

    n: of those without tokens. reasons: why tokens are not measured, with the number of responses of each.
    """
    parts = [f"{who} has no tokens for {n:,} of {n_there:,} responses, so only texts are compared."] if n else []
    parts += [
        f"{n_alike:,} of {n_there:,} responses: {explain_trace_reason(code)}" for code, n_alike in reasons.items()
    ]
    return " ".join(parts)


def explain_trace_reason(code: str) -> str:
    """Say why a response's tokens are not measured. code: a non-empty importers.spelling.TraceReason."""
    why = TRACE_REASONS[code]
    return why if code == "covers_thinking" else f"{why} Only the texts are compared."


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
    return f"Some fields could not be read: {listed(parts)}. The answers are used."


def unknown_ending(word: str, n: int, endpoint: str) -> str:
    """Say that answers with an unknown finish reason have no score, and what to do."""
    return write(
        "{n:answer} ended with {word!r}, an unknown finish reason, so {n:it has|they have} no score. If it means "
        "complete: evalboard endpoint set {endpoint} --ending {word}=complete",
        n=n,
        word=word,
        endpoint=endpoint,
    )


def usual_ending(word: str, n: int, total: int) -> str:
    """Say that a word of no list is taken for the end of complete answers."""
    return write("{n:,} of {total:answer} ended with {word!r}, which is read as complete.", n=n, total=total, word=word)


def unclean_responses(n_marked: Mapping[str, int], n_there: int) -> str:
    """Say how many responses carry each mark of `core.stats.live_answers`."""
    parts = ", ".join(f"{n:,} {MARKED[mark]}" for mark, n in sorted(n_marked.items()))
    return f"Of {n_there:,} responses, {parts}. Answers from a cache or a fallback count in no noise, range or verdict."


def describe_course(run: "Run") -> tuple[tuple[str, str], ...]:
    """Describe a run in three headed lines: what was requested, what was sent, what answered."""
    return (
        ("Requested", f"{_describe_asked(run)}."),
        ("Sent", _describe_sent(run)),
        ("Answered", _describe_answered(run)),
    )


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
        return "The same, to our own engine, which reads its settings back."
    if _is_logged(run):
        is_known = run.settings[0].wanted is not None
        return "As in the log." if is_known else "As in the log, which has no temperature."
    left_out = [fact.name for fact in run.settings if fact.source == "refusal"]
    probes = {fact.probe for fact in run.settings if fact.source == "refusal" and fact.probe}
    ignored = [fact for fact in run.settings if fact.source == "check"]
    text = "The same with each call."
    if any((fact.name, fact.wanted) == ("temperature", "default") for fact in run.settings):
        text = "The same with each call, without a temperature."
    if left_out:
        by = f" (probe {min(probes)})" if probes else ""
        text = f"The same without {listed(left_out)}, which the server refuses{by}."
    from evalboard.core.profile import WHERE_HONOURED  # takes longer than a command takes to its help

    by_check = next((fact for fact in run.settings if fact.wanted == WHERE_HONOURED and fact.probe), None)
    if by_check is not None:
        saw = f"probe {by_check.probe} saw" if by_check.sent else f"probe {by_check.probe} did not see"
        text = f"{text} Logprobs are {'' if by_check.sent else 'not '}requested, as {saw} them honoured."
    if not ignored:
        return text
    return f"{text} The server ignores {listed([fact.name for fact in ignored])} (probe {ignored[0].probe})."


def fingerprints_of_calls(n_different: int, n: int, *, endpoint: str) -> str:
    """Say that fingerprints identify calls, not servers: n_different of n answers differ."""
    text = f"{n:,} answers have {n_different:,} different fingerprints."
    if n_different == n:
        return f"{text} A fingerprint identifies a call here, so who answered is unknown."
    return (
        f"{text} Each counts as a server. If they identify calls instead: evalboard endpoint set {endpoint} "
        "--ignore-fingerprint"
    )


def _is_logged(run: "Run") -> bool:
    return any(fact.source == "log" for fact in run.settings)


def _describe_answered(run: "Run") -> str:
    """Name the models that answered, as self-reported, with their number of answers."""
    given: Counter[str] = Counter()
    for bucket in run.buckets:
        given[bucket.model_reported or bucket.model.name] += bucket.n_responses
    if not given:
        n_done = run.progress.n_done
        return f"{counted(n_done, 'answer')}. Who gave them is shown when a repeat ends." if n_done else "Nothing yet."
    models = listed([f"{name} ({n:,} of {counted(given.total(), 'answer')})" for name, n in given.items()])
    return f"{models}, according to the {'log' if _is_logged(run) else 'server'}." if run.is_reported else f"{models}."


def _left_alone(facts: Facts) -> str:
    return f"No worker of pool {facts['pool']} takes this run. {_reasons(facts)}"


def _resting(facts: Facts) -> str:
    pool, n, until = facts["pool"], facts["n_resting"], clock(facts["until"])
    who = f"The worker of pool {pool} is" if n == 1 else f"{n} workers of pool {pool} are"
    text = f"{who} paused until {until} after engine failures."
    return f"{text} The others do not take this run. {_reasons(facts)}" if facts["reasons"] else text


def _judging(facts: Facts) -> str:
    """Say how far the judge is. pause: the fields of a `Pause`, where its endpoint is paused."""
    text = JUDGING.write("waits" if facts["judge_run"] else "begins", facts)
    if not facts.get("pause"):
        return text
    return f"{text} {describe_pause(**facts['pause'], endpoint=facts['endpoint'])}"


def _no_scorer(facts: Facts) -> str:
    """Name the scorer that no worker has.

    instead: what workers have under its name, or why they cannot use that.
    """
    instead = f"; they have {listed(facts['instead'])}" if facts.get("instead") else ""
    return (
        f"All responses are there. No worker that runs has the scorer {listed(facts['names'])}{instead}. "
        "Install it on one; it looks again every 15 seconds."
    )


def _queued(facts: Facts) -> str:
    at_work = ", all busy with other runs" if facts["are_busy"] else ""
    text = f"Waits for a worker of pool {facts['pool']} ({facts['n_alive']} active{at_work})."
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
    "avg@": "the score: how often a sample is right",
    "pass@": "how often at least one of {k} samples is right",
    "pass^": "how often all of {k} samples are right",
    "maj@": "how often the most frequent answer of {k} samples is right; ties are broken by chance",
}
NO_INTERVAL = {
    "every_draw": "All samples of a case are used, so none can be left out to measure the spread. Add repeats.",
    "vote": "A vote of fewer samples is a different vote, so none can be left out to measure the spread.",
    "draws_missing": "Some samples are missing.",
}
REACH_HOLDS = "The interval for new cases covers these too, and is wider than needed."
LEFT_OUT_METRICS = {
    "graded": "pass@k, pass^k and maj@n are left out: some scores are partial.",
    "answers_unlike": "maj@n is left out: the scorer extracts no answer, so which samples agree is unknown.",
    "answers_unread": "maj@n is left out: the answers were not stored. Score the run again to get it.",
}
WAITING = Messages(
    "waiting",
    {
        ("status", "asserts"): {
            "nobody": "Pool {pool} has no worker. Run evalboard worker --pool {pool} to start one.",
            "no_engine": "No worker of pool {pool} has an engine. Run evalboard worker --pool {pool} where vLLM "
            "is installed.",
            "left_alone": _left_alone,
            "resting": _resting,
            "endpoint_rests": lambda facts: describe_pause(
                n_failures=facts.get("n_failures", 0), reason=facts["reason"], until=facts["until"]
            ),
            "no_scorer": _no_scorer,
            "scoring": "All responses are there. A worker scores them with {names:list}: {n_done:,} of {n:,}.",
            "judging": _judging,
            "paused": lambda facts: f"The engine did not start. Next try {clock(facts['until'])}.",
            "queued": _queued,
        },
    },
)


ESTIMATE = Messages(
    "estimate",
    {
        ("cost", "asserts"): {"estimate": "{parts}."},
        ("cost", "unknown"): {
            "lacking": "Unknown: {names:list}.",
            "lacking_time": "Unknown: {names:list} (no earlier run like it on this endpoint).",
            "price": "The price is unknown.",
            "uncounted": "not known: {n:answer} came without token counts",
        },
        ("cost", "allows"): {
            "run": "About {amount}, by the token counts of run {run}.",
            "elsewhere": "About {amount}, by the token counts of run {run} on {endpoint}.",
            "probe": "About {amount}, by the token counts of probe {probe}.",
            "both": "About {amount} for both.",
            "both_limit": "At most {amount} for both.",
            "experiment": "About {amount} for all conditions, by the token counts of earlier runs.",
            "experiment_limit": "At most {amount} for all conditions: a token for every 3 characters of a prompt, and "
            "answers as long as may be.",
            "usual": "About {amount}: a token for every 3 characters of a prompt, and answers as in run {run}.",
            "limit": "At most {amount}: a token for every 3 characters of a prompt, and answers of {limit:,} tokens.",
        },
    },
)


def describe_price(price: Facts) -> str:
    """Describe a price: "input 2.50, output 10 USD for a million tokens"."""
    parts = [f"{name} {price[name]}" for name in ("input", "cached", "output", "reasoning") if price.get(name)]
    return f"{', '.join(parts)} {price['currency']} for a million tokens"


def describe_estimate(
    *,
    n_calls: int,
    tokens: int | None,
    minutes: float | None,
    paced_by: str | None,
    is_remote: bool,
    cost: "CostEstimate | None" = None,
    judge: str = "",
) -> str:
    """Say what a run would take and cost, and what of it is unknown.

    judge: the endpoint of a judge, whose calls they are.
    """
    parts = [f"The judge {judge}: {counted(n_calls, 'call')}" if judge else counted(n_calls, "call")]
    if tokens is not None:
        parts.append(f"about {counted(tokens, 'token')}")
    if minutes is not None:
        pace = f", at the pace of suite {paced_by}" if paced_by else ""
        parts.append(f"about {fixed(minutes, 1)} min{pace}" if minutes >= 1 else f"less than a minute{pace}")
    unknown = [name for name, value in (("time", minutes), ("tokens", tokens)) if value is None]
    texts = [ESTIMATE.write("estimate", parts=", ".join(parts))]
    if unknown:
        texts.append(ESTIMATE.write("lacking_time" if minutes is None else "lacking", names=unknown))
    price = [cost.text if cost else ESTIMATE.write("price")] if is_remote else []
    return " ".join([*texts, *price])
