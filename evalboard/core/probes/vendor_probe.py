"""Judge the rows of a vendor card; docs/probes.md has the rules.

A row names a fault only where chance gives as much in at most one honest endpoint of 1,000. Else it says that it
cannot tell: a false accusation is worse than a miss.
"""

import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator

from evalboard.core.probes.answers import read_answers
from evalboard.core.probes.call import ProbeExchange, ProbeResult
from evalboard.core.probes.capability_calls import REFUSED
from evalboard.core.probes.capability_probe import NO_SAMPLE
from evalboard.core.probes.vendor_calls import (
    CITY_SCHEMA,
    MIDDLE_SENTENCES,
    SHORT_SENTENCES,
    TOOL_NAME,
    TOOL_SCHEMA,
    list_codes,
    place_in_group,
)
from evalboard.core.profile import names_calls
from evalboard.core.stats import binomial_tail, hypergeometric_tail

SIGNIFICANT = 0.001
USUAL_SHARE = 0.1  # of bad answers that an honest server may give, where no reference shows its own
MIN_COUNTED_SHARE = 0.9  # of the tokens that a long prompt has by the shorter ones
EARLY_CHARACTERS = 60
USUAL_EARLY = 0.25  # the share of texts that another kernel or batch moves that early, at most
LOGPROB_LIMIT = 0.2  # nats, the median over prompts of the mean difference
MAX_FAR_SHARE = 0.2  # of the prompts beyond that limit, above which an endpoint is not called good
MIN_COMPARED = 10  # prompts
MIN_SHARED = 3  # alternatives that both list
TOO_LONG = "prompt_too_long: "  # how the error of a call begins whose prompt has no room
ENDINGS = frozenset({"stop", "length", "tool_calls", "function_call", "content_filter"})
MAX_WORDS, MAX_TEXT, MAX_NAMES = 200, 400, 6

Facts = Mapping[str, Any]
Verdict = tuple[str, dict[str, Any]]  # a state of VENDOR_STATES, and what the sentence is made of
VENDOR_STATES = ("good", "fault", "refused", "unclear", "measured", "several", "not_measured")


def judge_vendor_probe(calls: Iterable[ProbeExchange], *, parameters: Mapping[str, Any]) -> ProbeResult:
    """Judge one endpoint without a reference; the state is measured, faults (one or more) or incomplete."""
    calls = tuple(calls)
    answers = read_answers(calls)
    n_answered = sum(not call.error for call in calls)
    n_refused = sum(call.error.startswith(REFUSED) for call in calls)
    counts = {**answers.counts, "n_failed": len(calls) - n_answered - n_refused, "n_refused": n_refused, "n_marked": 0}
    if not n_answered or 2 * (n_answered + n_refused) < len(calls):
        return ProbeResult("incomplete", counts)
    facts = {**_collect_facts(calls), "context_sentences": parameters["context_sentences"]}
    rows = judge_vendor_facts(facts)
    faults = [row["row"] for row in rows if row["state"] == "fault"]
    return ProbeResult("faults" if faults else "measured", {**counts, "facts": facts, "vendor_rows": rows})


def judge_vendor_facts(facts: Facts, reference: Facts | None = None) -> list[dict[str, Any]]:
    """Return the rows of an endpoint's card: `row`, `state` and `detail`, which has n.

    facts: the `facts` of its vendor probe. reference: those of the endpoint that it is compared with.
    """
    rows = []
    for name, judge in _ROWS.items():
        state, detail = judge(facts, reference)
        rows.append({"row": name, "state": state, "detail": detail})
    return rows


def _collect_facts(calls: Sequence[ProbeExchange]) -> dict[str, Any]:
    by_group: dict[str, list[ProbeExchange]] = {}
    for call in sorted(calls, key=lambda call: (call.round, call.prompt)):
        by_group.setdefault(call.group, []).append(call)
    tools, named, none = (by_group.get(group, []) for group in ("tool", "named", "none"))
    return {
        "tools_called": _shares(tools, lambda call: "" if call.tool_calls else _shown(call.text) or "no text"),
        "tool_arguments": _shares([call for call in tools if call.error or call.tool_calls], _argument_problem),
        "tool_choice": _shares([*named, *none], _choice_problem, "tool_choice"),
        "json_schema": _shares(by_group.get("schema", []), _schema_problem, "response_format"),
        "endings": _shares([call for call in calls if not call.error], _ending_problem),
        "stream": _stream_facts(by_group),
        "prompt_tokens": {
            f"{call.prompt}": call.n_prompt_tokens
            for group in ("text", "counted")
            for call in _clean(by_group.get(group, []))
            if call.n_prompt_tokens is not None
        },
        "context": _context_facts(by_group),
        "answers": {
            "texts": {f"{call.prompt}": call.text[:MAX_TEXT] for call in _clean(by_group.get("text", [])) if call.text},
            "top": {f"{call.prompt}": dict(call.top) for call in _clean(by_group.get("text", [])) if call.top},
        },
        "models": Counter(call.model for call in calls if not call.error and call.model),
        "builds": Counter(_build_of(call) for call in calls if not call.error and _build_of(call)),
        "n_fallback": sum("fallback" in call.marks for call in calls),
        "latency": _latency_facts(by_group.get("text", [])),
    }


def _clean(calls: Iterable[ProbeExchange]) -> list[ProbeExchange]:
    return [call for call in calls if not call.error and not NO_SAMPLE & {*call.marks}]


def _shown(text: str) -> str:
    return " ".join(text.split())[:MAX_WORDS]


def _build_of(call: ProbeExchange) -> str:
    return call.backend or call.system_fingerprint


def _shares(
    calls: Sequence[ProbeExchange], problem: Callable[[ProbeExchange], str | None], parameter: str = ""
) -> dict[str, Any]:
    """Count the answers of calls, and the bad ones.

    problem: says what is wrong with an answer, "" if nothing is, None if the answer shows nothing.
    """
    sent = [call for call in _clean(calls) if parameter not in call.left_out]
    problems = [words for call in sent if (words := problem(call)) is not None]
    bad = [words for words in problems if words]
    dropped = sum(bool(parameter) and parameter in call.left_out for call in calls)
    errors = [call.error for call in calls if call.error]
    refused = next((error.removeprefix(REFUSED) for error in errors if error.startswith(REFUSED)), "")
    return {
        "n": len(problems),
        "n_bad": len(bad),
        "example": bad[0] if bad else "",
        "is_refused": not problems and bool(dropped or refused),
        "words": (refused or (errors[0] if errors else ""))[:MAX_WORDS],
    }


def _argument_problem(call: ProbeExchange) -> str:
    return next(filter(None, (_invalid(name, arguments) for name, arguments in call.tool_calls)), "")


def _invalid(name: str, arguments: str) -> str:
    if name != TOOL_NAME:
        return _shown(f"it calls {name or 'a tool without a name'}, which was not offered")
    return _against_schema(arguments, TOOL_SCHEMA)


def _against_schema(text: str, schema: Mapping[str, Any]) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return _shown(f"no JSON: {text}")
    error = next(Draft202012Validator(schema).iter_errors(value), None)
    return "" if error is None else _shown(f"{error.message} in {text}")


def _choice_problem(call: ProbeExchange) -> str:
    if call.group == "none":
        return "it calls a tool under none" if call.tool_calls else ""
    return "" if any(name == TOOL_NAME for name, _ in call.tool_calls) else "it does not call the tool that is named"


def _schema_problem(call: ProbeExchange) -> str | None:
    return None if call.finish_reason == "length" else _against_schema(call.text, CITY_SCHEMA)


def _ending_problem(call: ProbeExchange) -> str:
    if call.finish_reason not in ENDINGS:
        return f"it ended by {call.finish_reason[:40]}"
    if call.group == "tool" and call.tool_calls and call.finish_reason not in ("tool_calls", "function_call"):
        return f"it calls a tool and ended by {call.finish_reason}"
    if call.group == "counted" and call.finish_reason == "stop" and (call.n_tokens or 0) > 1:
        return f"it ended by stop, after {call.n_tokens} tokens where 1 is the limit"
    return ""


def _stream_facts(by_group: Mapping[str, Sequence[ProbeExchange]]) -> dict[str, Any]:
    plain = {call.prompt: call for call in _clean(by_group.get("text", []))}
    counts: dict[str, Any] = {"words": next((call.error for call in by_group.get("stream", []) if call.error), "")}
    for group in ("again", "stream"):
        pairs = [(plain[call.prompt], call) for call in _clean(by_group.get(group, [])) if call.prompt in plain]
        pairs = [(one, other) for one, other in pairs if one.text or other.text]
        counts[f"n_{group}"] = len(pairs)
        counts[f"n_{group}_other"] = sum(one.text != other.text for one, other in pairs)
    return counts


def _context_facts(by_group: Mapping[str, Sequence[ProbeExchange]]) -> dict[str, Any]:
    short, long = (_clean(by_group.get(group, [])) for group in ("short", "long"))

    def n_right(calls: Iterable[ProbeExchange]) -> int:
        return sum(list_codes()[place_in_group(call)] in call.text.lower() for call in calls)

    def tokens(calls: Sequence[ProbeExchange]) -> float | None:
        counts = [call.n_prompt_tokens for call in calls]
        known = [count for count in counts if count is not None]
        return statistics.median(known) if known and len(known) == len(counts) else None

    return {
        "n_short": len(short),
        "n_short_right": n_right(short),
        "n_long": len(long),
        "n_long_right": n_right(long),
        "tokens_short": tokens([call for call in short if place_in_group(call) % 2]),
        "tokens_middle": tokens([call for call in short if not place_in_group(call) % 2]),
        "tokens_long": tokens(long),
        "words": next((call.error for call in by_group.get("long", []) if call.error), "")[:MAX_WORDS],
    }


def _latency_facts(calls: Iterable[ProbeExchange]) -> dict[str, Any]:
    timed = [call for call in _clean(calls) if call.seconds is not None]
    seconds = sorted(call.seconds for call in timed if call.seconds is not None)
    rates = [call.n_tokens / call.seconds for call in timed if call.n_tokens and call.seconds]
    if not seconds:
        return {"n": 0}
    slow = seconds[min(len(seconds) - 1, int(0.9 * len(seconds)))]
    return {
        "n": len(seconds),
        "median": statistics.median(seconds),
        "slow": slow,
        "tokens_per_second": statistics.median(rates) if rates else None,
    }


# --- the rows: each returns its state with what its sentence says


def _share_row(name: str) -> Callable[[Facts, Facts | None], Verdict]:
    """Judge a share of bad answers, by Fisher's test next to the reference's or else next to USUAL_SHARE."""

    def judge(facts: Facts, reference: Facts | None) -> Verdict:
        own = facts[name]
        other = reference[name] if reference is not None and reference[name]["n"] else None
        detail = {**own, "n_reference": None, "n_bad_reference": None}
        if own["is_refused"]:
            return "refused", detail
        if not own["n"]:
            return "unclear", {**detail, "why": "no_answer"}
        if not own["n_bad"]:
            return "good", detail
        if other is None:
            chance = binomial_tail(own["n"], own["n_bad"], USUAL_SHARE)
        else:
            n_bad = own["n_bad"] + other["n_bad"]
            chance = hypergeometric_tail(own["n"] + other["n"], n_bad, own["n"], own["n_bad"])
            detail |= {"n_reference": other["n"], "n_bad_reference": other["n_bad"]}
        return ("fault", detail) if chance <= SIGNIFICANT else ("unclear", {**detail, "why": "few"})

    return judge


def _skill_row(name: str) -> Callable[[Facts, Facts | None], Verdict]:
    """Judge a share that the model decides: without a reference it is no fault of the vendor."""

    def judge(facts: Facts, reference: Facts | None) -> Verdict:
        state, detail = _share_row(name)(facts, reference)
        is_alone = state == "fault" and detail["n_reference"] is None
        return ("unclear", {**detail, "why": "few"}) if is_alone else (state, detail)

    return judge


def _prompt_tokens(facts: Facts, reference: Facts | None) -> Verdict:
    """Compare counts but for a constant, which a template may add to every prompt."""
    own = facts["prompt_tokens"]
    if not own:
        return "unclear", {"why": "no_counts", "n": 0}
    if reference is None or not reference["prompt_tokens"]:
        return "not_measured", {"why": "no_reference", "n": len(own)}
    shared = sorted(own.keys() & reference["prompt_tokens"].keys(), key=int)
    apart = Counter(own[prompt] - reference["prompt_tokens"][prompt] for prompt in shared)
    detail = {"n": len(shared), "n_other": 0, "added": 0}
    if len(shared) < MIN_COMPARED:
        return "unclear", {**detail, "why": "no_counts"}
    [(added, n_usual)] = apart.most_common(1)
    detail |= {"added": added, "n_other": len(shared) - n_usual}
    return ("good" if len(apart) == 1 else "fault"), detail


def _stream(facts: Facts, reference: Facts | None) -> Verdict:
    """Compare streamed with repeated texts: both differ as often if streaming changes nothing."""
    own = facts["stream"]
    n, n_other = own["n_stream"], own["n_stream_other"]
    detail = {**own, "n": n}
    if not n or not own["n_again"]:
        return "unclear", {**detail, "why": "no_answer"}
    n_all_other = n_other + own["n_again_other"]
    if not n_other:
        return "good", detail
    chance = hypergeometric_tail(n + own["n_again"], n_all_other, n, n_other)
    return ("fault", detail) if chance <= SIGNIFICANT else ("unclear", {**detail, "why": "few"})


def _context(facts: Facts, reference: Facts | None) -> Verdict:
    """Judge by the server's count of tokens, else by a code word at the start of a long prompt."""
    own = facts["context"]
    detail = {**own, "n": own["n_long"], "expected": None}
    if not own["n_long"]:
        is_refused = own["words"].startswith((REFUSED, TOO_LONG))
        return ("refused" if is_refused else "unclear"), {**detail, "why": "no_answer"}
    short, middle, long = (own[f"tokens_{which}"] for which in ("short", "middle", "long"))
    n_sentences = facts.get("context_sentences")
    if short is not None and middle is not None and long is not None and n_sentences and middle > short:
        per_sentence = (middle - short) / (MIDDLE_SENTENCES - SHORT_SENTENCES)
        detail["expected"] = short + per_sentence * (n_sentences - SHORT_SENTENCES)
        if long < MIN_COUNTED_SHARE * detail["expected"]:
            return "fault", detail
    n, n_right = own["n_long"] + own["n_short"], own["n_long_right"] + own["n_short_right"]
    if own["n_long_right"] == own["n_long"]:
        return "good", detail
    n_lost = own["n_long"] - own["n_long_right"]
    chance = hypergeometric_tail(n, n - n_right, own["n_long"], n_lost) if own["n_short"] else 1.0
    if chance > SIGNIFICANT:
        return "unclear", {**detail, "why": "few"}
    if reference is None:
        return "unclear", {**detail, "why": "no_reference"}
    other = reference["context"]
    is_able = other["n_long"] and other["n_long_right"] == other["n_long"]
    return ("fault", detail) if is_able else ("unclear", {**detail, "why": "as_reference"})


def _answers(facts: Facts, reference: Facts | None) -> Verdict:
    """Judge by logprobs of first tokens, and by how early texts leave the reference's."""
    own = facts["answers"]
    detail: dict[str, Any] = {"n": len(own["texts"]), "n_early": None, "nats": None, "n_logprobs": 0, "n_far": 0}
    if reference is None:
        return "not_measured", {**detail, "why": "no_reference"}
    other = reference["answers"]
    if (nats := _logprob_distances(own["top"], other["top"])) and len(nats) >= MIN_COMPARED:
        detail |= {"nats": statistics.median(nats), "n_logprobs": len(nats)}
        detail["n_far"] = sum(each > LOGPROB_LIMIT for each in nats)
    shared = own["texts"].keys() & other["texts"].keys()
    n_early = sum(_parts_early(own["texts"][prompt], other["texts"][prompt]) for prompt in shared)
    repeats = [each["stream"] for each in (facts, reference)]
    is_repeated = all(each["n_again"] and 5 * each["n_again_other"] <= each["n_again"] for each in repeats)
    detail |= {"n": len(shared), "n_early": n_early}
    if detail["nats"] is not None and detail["nats"] > LOGPROB_LIMIT:
        return "fault", detail
    if is_repeated and len(shared) >= MIN_COMPARED:
        chance = binomial_tail(len(shared), n_early, USUAL_EARLY)
        if chance <= SIGNIFICANT:
            return "fault", detail
    if detail["n_far"] > MAX_FAR_SHARE * detail["n_logprobs"]:  # part of the calls may meet other weights
        return "unclear", {**detail, "why": "some_far"}
    if is_repeated and len(shared) >= MIN_COMPARED:
        return "good", detail
    return ("good", detail) if detail["nats"] is not None else ("unclear", {**detail, "why": "not_repeated"})


def _logprob_distances(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[float]:
    """Return the mean distance of the logprobs that both list, by prompt."""
    distances = []
    for prompt in one.keys() & other.keys():
        shared = one[prompt].keys() & other[prompt].keys()
        if len(shared) >= MIN_SHARED:
            distances.append(statistics.fmean(abs(one[prompt][token] - other[prompt][token]) for token in shared))
    return distances


def _parts_early(one: str, other: str) -> bool:
    return one.strip()[:EARLY_CHARACTERS] != other.strip()[:EARLY_CHARACTERS]


def _one_model(facts: Facts, reference: Facts | None) -> Verdict:
    """Judge by the names in the answers, and by fallbacks: no chance is in them."""
    names = Counter[str](facts["models"]).most_common()
    detail = {"n": sum(n for _, n in names), "names": names[:MAX_NAMES], "n_fallback": facts["n_fallback"]}
    if not names and not facts["n_fallback"]:
        return "unclear", {**detail, "why": "no_names"}
    return ("fault" if len(names) > 1 or facts["n_fallback"] else "good"), detail


def _one_build(facts: Facts, reference: Facts | None) -> Verdict:
    """Name several builds without blame: a large service updates its servers one by one."""
    names = Counter[str](facts["builds"]).most_common()
    n = sum(n for _, n in names)
    detail = {"n": n, "names": names[:MAX_NAMES], "n_names": len(names)}
    if not names or names_calls(len(names), n):
        return "unclear", {**detail, "why": "no_names"}
    return ("several" if len(names) > 1 else "good"), detail


def _latency(facts: Facts, reference: Facts | None) -> Verdict:
    return ("measured" if facts["latency"]["n"] else "unclear"), {"why": "no_answer", **facts["latency"]}


# In the order of the table.
_ROWS: dict[str, Callable[[Facts, Facts | None], Verdict]] = {
    "tools_called": _skill_row("tools_called"),
    "tool_arguments": _skill_row("tool_arguments"),
    "tool_choice": _share_row("tool_choice"),
    "json_schema": _share_row("json_schema"),
    "prompt_tokens": _prompt_tokens,
    "stream": _stream,
    "endings": _share_row("endings"),
    "context": _context,
    "answers": _answers,
    "one_model": _one_model,
    "one_build": _one_build,
    "latency": _latency,
}
VENDOR_ROWS = tuple(_ROWS)
