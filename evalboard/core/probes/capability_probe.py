"""Judge for each parameter whether an external server honours it, refuses it or silently ignores it.

docs/probes.md has the rules. Where the answers cannot tell, the state is unclear: a guess would be worse.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalboard.core.probes.answers import Answer, count_shared, read_answers
from evalboard.core.probes.call import ProbeExchange, ProbeResult
from evalboard.core.probes.capability_calls import (
    CONTROLS,
    LOGPROBS,
    PENALTY,
    REFUSED,
    TEMPLATE_SWITCHES,
    TOP_LOGPROBS,
    TOP_P,
    choose_stop,
    find_control,
    list_refused_controls,
)

MAX_WORDS = 300
NO_SAMPLE = frozenset({"cached", "fallback"})  # marks of an answer that the server itself did not give just now
ECHOES = frozenset({"system_fingerprint", "token_ids", "usage"})  # additions to the answer; the others are parameters
STATES = ("honoured", "refused", "ignored", "not_asked", "unclear")
# By what names words of refusal may name a parameter, where that is not its own.
ALIASES = {
    "logprobs": ("logprobs", "top_logprobs"),
    "top_logprobs": ("logprobs", "top_logprobs"),
    "max_tokens": ("max_tokens", "max_completion_tokens", "max_output_tokens"),
}
# Names that are no words of English: refused words with one of them are of that parameter.
NAMES = frozenset(
    {"temperature", "seed", "top_p", "top_k", "min_p", "min_tokens", "ignore_eos", "logprobs", "chat_template_kwargs"}
    | {"frequency_penalty", "presence_penalty", "repetition_penalty"}
    | {"top_logprobs", "max_tokens", "max_completion_tokens", "max_output_tokens"}
)

# How often a word stands in an answer that a frequency penalty cannot leave as it is: at 2.0 it costs the last of them
# more than 20 nats.
N_REPEATED = 12

Facts = tuple[str, dict[str, Any]]  # a state, and what was seen


@dataclass(frozen=True, slots=True)
class _GroupedAnswers:
    """The calls by group and the answers by call. refused: error texts by the parameter left out."""

    calls: Mapping[str, Sequence[ProbeExchange]]
    answers: Mapping[ProbeExchange, Answer]
    refused: Mapping[str, str]

    def calls_of(self, group: str) -> Sequence[ProbeExchange]:
        return self.calls.get(group, ())

    def answered(self, *groups: str) -> list[ProbeExchange]:
        """Return the calls with an answer, of these groups or of all."""
        return [call for group in groups or self.calls for call in self.calls_of(group) if call in self.answers]

    @property
    def control(self) -> ProbeExchange | None:
        return find_control(self.answered(*CONTROLS))

    def is_one_text(self, one: ProbeExchange, other: ProbeExchange) -> bool:
        return self.answers[one] == self.answers[other]

    def shared(self, one: ProbeExchange, other: ProbeExchange) -> int:
        """Count the tokens or characters that both have alike from the start."""
        return count_shared(self.answers[one], self.answers[other])

    @property
    def is_repeated(self) -> bool:
        """Return whether the second greedy call gave the control's text, up to its stop."""
        piece, again = choose_stop(self.control), self.answered("stop")
        if self.control is None or not piece or not again:
            return False
        end = self.control.text.index(piece)
        return self.control.text[:end] == again[0].text[:end]


def judge_capability_probe(calls: Iterable[ProbeExchange]) -> ProbeResult:
    """Judge each parameter; the state is checked, ignores (one or more) or incomplete.

    A refusal counts as an answer. An answer after a retry counts like any other.
    """
    calls = tuple(call if NO_SAMPLE & {*call.marks} else replace(call, marks=()) for call in calls)
    answers = read_answers(calls)
    n_refused = sum(call.error.startswith(REFUSED) for call in calls)
    counts = {**answers.counts, "n_failed": answers.n_failed - n_refused, "n_refused": n_refused}
    if not answers.answered or 2 * (len(answers.answered) + n_refused) < len(calls):
        return ProbeResult("incomplete", counts)
    by_group: dict[str, list[ProbeExchange]] = {}
    refused: dict[str, str] = {}
    has_control = find_control(each.call for each in answers.answered) is not None
    for call in calls:
        names = list_refused_controls([call]) if has_control else []
        refused |= dict.fromkeys(names, call.error.removeprefix(REFUSED)[:MAX_WORDS])
        if not names:  # asked again without what it was refused for
            by_group.setdefault(call.group, []).append(call)
    seen = _GroupedAnswers(by_group, {each.call: each.answer for each in answers.answered}, refused)
    rows = [_row(name, wanted, judge(seen)) for name, (wanted, judge) in PARAMETERS.items()]
    states = Counter(row["state"] for row in rows)
    numbers = {**counts, "compared": answers.unit, "states": {state: states[state] for state in STATES}, "rows": rows}
    ignores = any(row["state"] == "ignored" and row["parameter"] not in ECHOES for row in rows)
    return ProbeResult("ignores" if ignores else "checked", numbers)


def _row(parameter: str, wanted: Any, facts: Facts) -> dict[str, Any]:
    state, detail = facts
    return {"parameter": parameter, "asked": wanted, "state": state, "detail": detail}


def _unanswered(calls: Sequence[ProbeExchange], parameter: str) -> Facts:
    """Return why there is no answer to judge: the parameter was refused, or the call failed otherwise."""
    refused = next((call.error.removeprefix(REFUSED) for call in calls if call.error.startswith(REFUSED)), None)
    if refused is None:
        failed = next((call.error for call in calls if call.error), None)
        return "unclear", {"why": "no_answer"} if failed is None else {"why": "failed", "words": failed[:MAX_WORDS]}
    words = refused[:MAX_WORDS]
    named = NAMES & {*re.findall(r"\w+", refused.lower())}
    if named and not named & {parameter, *ALIASES.get(parameter, ())}:
        return "unclear", {"why": "refused_for_another", "another": sorted(named)[0], "words": words}
    return "refused", {"words": words}


def _is_left_out(calls: Sequence[ProbeExchange], parameter: str) -> bool:
    return bool(calls) and all(parameter in call.left_out for call in calls)


def _asked_for(
    group: str, judge: Callable[[_GroupedAnswers, ProbeExchange], Facts], parameter: str = ""
) -> Callable[[_GroupedAnswers], Facts]:
    """Judge the one call of a group, where it was sent with its parameter and answered."""
    name = parameter or group

    def facts(seen: _GroupedAnswers) -> Facts:
        calls = seen.calls_of(group)
        if _is_left_out(calls, name):
            return "not_asked", {}
        answered = seen.answered(group)
        return judge(seen, answered[0]) if answered else _unanswered(calls, name)

    return facts


def _echoed(values: Sequence[bool]) -> str:
    return "honoured" if all(values) else "unclear" if any(values) else "ignored"


def _system_fingerprint(seen: _GroupedAnswers) -> Facts:
    """Honoured with every answer, whether it stays the same or not: several of them are several servers."""
    prints = [call.system_fingerprint for call in seen.answered()]
    given = Counter(filter(None, prints)).most_common()
    facts = {"n": sum(map(bool, prints)), "n_answers": len(prints), "n_distinct": len(given)}
    return _echoed([*map(bool, prints)]), facts | ({"value": given[0][0]} if given else {})


def _usage(seen: _GroupedAnswers) -> Facts:
    is_given = [call.n_tokens is not None and call.n_prompt_tokens is not None for call in seen.answered()]
    return _echoed(is_given), {"n": sum(is_given), "n_answers": len(is_given)}


def _token_ids(seen: _GroupedAnswers) -> Facts:
    calls = seen.answered()
    if _is_left_out(calls, "return_token_ids"):
        return "not_asked", {}
    # They come with the logprobs; if any call has these, the others prove nothing.
    is_given = [bool(call.token_ids) for call in [call for call in calls if call.top] or calls]
    return _echoed(is_given), {"n": sum(is_given), "n_answers": len(is_given)}


def _seed(seen: _GroupedAnswers) -> Facts:
    """Two calls with one seed against a third: so few tell a seed that does all or nothing, and no more."""
    calls = [*seen.calls_of("same"), *seen.calls_of("different")]
    same, others = seen.answered("same"), seen.answered("different")
    if _is_left_out(calls, "seed"):
        return "not_asked", {}
    if len(same) < 2 or not others:
        return _unanswered([call for call in calls if call not in seen.answers], "seed")
    one, two = same[:2]
    own, chance = seen.shared(one, two), max(seen.shared(each, others[0]) for each in same)
    facts = {"shared": own, "shared_other": chance}
    if seen.is_one_text(one, two):
        return ("unclear", {"why": "one_text"}) if seen.is_one_text(one, others[0]) else ("honoured", facts)
    return ("ignored", facts) if own <= chance else ("unclear", {"why": "parted_late", **facts})


def _logprobs(seen: _GroupedAnswers) -> Facts:
    asks = [(k, call) for k in LOGPROBS for call in seen.calls_of(f"logprobs_{k}")]
    calls = [call for _, call in asks]
    if _is_left_out(calls, "logprobs"):
        return "not_asked", {}
    k, call = next(((k, call) for k, call in asks if call in seen.answers), (0, None))
    if call is None:
        return _unanswered(calls, "logprobs")
    refused = [row.error.removeprefix(REFUSED)[:MAX_WORDS] for row in calls if row.error.startswith(REFUSED)]
    facts = {"k": k, "given": len(call.top), **({"words": refused[0]} if refused else {})}
    return "honoured" if call.top else "ignored", facts


def _top_logprobs(seen: _GroupedAnswers) -> Facts:
    calls = seen.calls_of("top_logprobs")
    if not calls:  # it was not needed, after the row above
        state, facts = _logprobs(seen)
        return state if state != "honoured" else "unclear", facts
    if not (answered := seen.answered("top_logprobs")):
        return _unanswered(calls, "top_logprobs")
    given = len(answered[0].top)
    return "honoured" if given == TOP_LOGPROBS else "ignored", {"given": given}


def _temperature(seen: _GroupedAnswers) -> Facts:
    """Judge temperature: 0 must repeat a text and 1 must vary it.

    Two texts at 0 show that it is ignored if one seed repeats its text.
    """
    control, warm = seen.control, seen.answered("same", "different")
    if "temperature" in seen.refused:
        return "refused", {"words": seen.refused["temperature"]}
    if control is None:
        return _unanswered([call for group in CONTROLS for call in seen.calls_of(group)], "temperature")
    if not warm:
        return _unanswered([*seen.calls_of("same"), *seen.calls_of("different")], "temperature")
    n_other = sum(not seen.is_one_text(call, control) for call in warm)
    facts = {"n_other": n_other, "n": len(warm)}
    if not n_other:
        return "ignored", facts
    if seen.is_repeated:
        return "honoured", facts
    again = seen.answered("stop")
    shared = seen.shared(control, again[0]) if again else 0
    is_apart = bool(again) and 2 * shared < min(len(seen.answers[each]) for each in (control, again[0]))
    if is_apart and _seed(seen)[0] == "honoured":
        return "ignored", {"shared": shared}
    return "unclear", {"why": "not_repeated"}


def _stop(seen: _GroupedAnswers, call: ProbeExchange) -> Facts:
    piece = choose_stop(seen.control)
    if seen.control is None or not piece:
        return "unclear", {"why": "no_control"}
    facts = {"stop": piece, "n_characters": len(call.text), "n_characters_without": len(seen.control.text)}
    if piece in call.text:
        return "ignored", facts
    is_stopped = call.text.strip() == seen.control.text.partition(piece)[0].strip()
    return ("honoured", facts) if is_stopped else ("unclear", {"why": "not_repeated"})


def _max_tokens(seen: _GroupedAnswers, call: ProbeExchange) -> Facts:
    facts = {"n_tokens": call.n_tokens} if call.n_tokens is not None else {}
    if call.n_tokens is not None and call.n_tokens > 1:
        return "ignored", facts
    control = seen.control
    if call.finish_reason == "length" and (control is None or len(call.text) < len(control.text)):
        return "honoured", facts
    if control is not None and seen.is_one_text(call, control):
        return "ignored", facts
    return "unclear", {"why": "ended_early", **facts}


def _narrowed(seen: _GroupedAnswers, call: ProbeExchange) -> Facts:
    """Judge a setting that leaves only the most likely token: it must make a warm call greedy."""
    control, warm = seen.control, seen.answered("same", "different")
    is_likeliest = "temperature" not in seen.refused and (seen.is_repeated or not seen.answered("stop"))
    if control is None or not warm:
        return "unclear", {"why": "no_control"}
    if not is_likeliest or any(seen.is_one_text(each, control) for each in warm):
        return "unclear", {"why": "no_variety" if is_likeliest else "not_repeated"}
    own, chance = seen.shared(call, control), max(seen.shared(each, control) for each in warm)
    facts = {"shared": own, "shared_other": chance}
    if seen.is_one_text(call, control):
        return "honoured", facts
    return ("ignored", facts) if own <= chance else ("unclear", {"why": "parted_late", **facts})


def _changed(
    seen: _GroupedAnswers, calls: Sequence[ProbeExchange], control: ProbeExchange | None, *, must_change: bool
) -> Facts:
    """Judge a setting that may change a greedy text. must_change: an unchanged text means it is ignored."""
    if control is None:
        return "unclear", {"why": "no_control"}
    if all(seen.is_one_text(call, control) for call in calls):
        return ("ignored", {}) if must_change else ("unclear", {"why": "no_effect"})
    # Where greedy answers do not repeat, another text says nothing.
    return ("honoured", {}) if seen.is_repeated else ("unclear", {"why": "not_repeated"})


def _repetition_penalty(seen: _GroupedAnswers, call: ProbeExchange) -> Facts:
    return _changed(seen, [call], seen.control, must_change=bool(seen.control and seen.control.text.strip()))


def _frequency_penalty(seen: _GroupedAnswers, call: ProbeExchange) -> Facts:
    """It grows with each time that a token comes again, so that no answer goes on saying one word."""
    control = next(iter(seen.answered("repeated")), None)
    words = Counter(control.text.split()) if control else Counter()
    return _changed(seen, [call], control, must_change=max(words.values(), default=0) >= N_REPEATED)


def _presence_penalty(seen: _GroupedAnswers) -> Facts:
    """Judge presence_penalty by calls at both limits.

    It shifts each token by at most 2.0, once: a confident answer may stay the same.
    """
    groups = ("presence_penalty", "presence_penalty_below")
    calls = [call for group in groups for call in seen.calls_of(group)]
    if _is_left_out(calls, "presence_penalty"):
        return "not_asked", {}
    answered = seen.answered(*groups)
    if not answered:
        return _unanswered(calls, "presence_penalty")
    return _changed(seen, answered, seen.control, must_change=False)


def _chat_template_kwargs(seen: _GroupedAnswers) -> Facts:
    """Judge template switches by the prompt's length, else by the text.

    A template may legitimately not read them.
    """
    groups = ("template_off", "template_on")
    calls = [call for group in groups for call in seen.calls_of(group)]
    if _is_left_out(calls, "chat_template_kwargs"):
        return "not_asked", {}
    answered, control = seen.answered(*groups), seen.control
    if not answered:
        return _unanswered(calls, "chat_template_kwargs")
    lengths = {call.n_prompt_tokens for call in answered} - {None}
    without = control.n_prompt_tokens if control else None
    if without is not None and (others := lengths - {without}):
        return "honoured", {"n_prompt_tokens": max(filter(None, others)), "n_prompt_tokens_without": without}
    return _changed(seen, answered, control, must_change=False)


def _lasting(seen: _GroupedAnswers, call: ProbeExchange) -> Facts:
    """Judge a setting that prevents a short answer from ending: it must reach the length limit."""
    if call.finish_reason != "length":
        if any(len(call.text) > len(each.text) for each in seen.answered("top_logprobs")):
            return "unclear", {"why": "ended_late"}
        return "ignored", {} if call.n_tokens is None else {"n_tokens": call.n_tokens}
    others = seen.answered("top_logprobs", "min_tokens", "ignore_eos")
    if any(each.finish_reason == "stop" for each in others if each != call):
        return "honoured", {} if call.n_tokens is None else {"n_tokens": call.n_tokens}
    return "unclear", {"why": "none_is_short"}


# In the order of the table: what is asked for, and how its answers are judged.
PARAMETERS: dict[str, tuple[Any, Callable[[_GroupedAnswers], Facts]]] = {
    "system_fingerprint": (None, _system_fingerprint),
    "seed": ("two calls with one, a third with another", _seed),
    "temperature": ("0, 1", _temperature),
    "top_p": (TOP_P, _asked_for("top_p", _narrowed)),
    "stop": ("a text of the answer", _asked_for("stop", _stop)),
    "max_tokens": (1, _asked_for("max_tokens", _max_tokens)),
    "logprobs": (max(LOGPROBS), _logprobs),
    "top_logprobs": (TOP_LOGPROBS, _top_logprobs),
    "token_ids": (None, _token_ids),
    "top_k": (1, _asked_for("top_k", _narrowed)),
    "min_p": (1, _asked_for("min_p", _narrowed)),
    "frequency_penalty": (PENALTY, _asked_for("frequency_penalty", _frequency_penalty)),
    "presence_penalty": (f"{PENALTY:g}, {-PENALTY:g}", _presence_penalty),
    "repetition_penalty": (PENALTY, _asked_for("repetition_penalty", _repetition_penalty)),
    "min_tokens": ("the answer's limit", _asked_for("min_tokens", _lasting)),
    "ignore_eos": (True, _asked_for("ignore_eos", _lasting)),
    "chat_template_kwargs": (f"{' and '.join(TEMPLATE_SWITCHES)} off, then on", _chat_template_kwargs),
    "usage": (None, _usage),
}
