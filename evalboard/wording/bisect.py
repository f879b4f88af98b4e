"""Sentences of a bisect: its fields and values, its steps, the finding of each, and the conclusion."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalboard.contract.lab_kinds import FieldReach, FieldState, StepAnswer
from evalboard.wording.lab import describe_end
from evalboard.wording.messages import Messages
from evalboard.wording.numbers import MINUS, listed, small_points

if TYPE_CHECKING:
    from evalboard.contract.lab import Bisect, BisectBlamed, BisectField

LABELS: Mapping[str, str] = {
    "model": "model",
    "chat_template": "chat template",
    "quantization": "quantisation",
    "max_model_len": "context length",
    "tensor_parallel_size": "tensor parallel size",
    "pipeline_parallel_size": "pipeline parallel size",
    "worker": "worker's pool",
    "limits": "answer limits",
    "engine.enable_prefix_caching": "prefix cache",
    "engine.attention_backend": "attention backend",
    "engine.kv_cache_dtype": "KV-cache dtype",
    "engine.tensor_parallel_size": "tensor parallel size of the profile",
    "sampling.chat_template_kwargs": "template variables",
}
VALUE_CHARS = 48
CASES_NAMED = 3

FINDINGS: Mapping[FieldState, str] = {
    FieldState.CAUSE: "the cause",
    FieldState.PART: "part of it",
    FieldState.TOGETHER: "only together",
    FieldState.EITHER: "sufficient alone",
    FieldState.CLEARED: "cleared",
    FieldState.OPEN: "undecided",
    FieldState.NOT_TRIED: "not tried",
    FieldState.SCORER_ONLY: "scorer only",
    FieldState.NOT_REACHABLE: "not reachable",
}
REASONS = Messages(
    "not_reachable",
    {
        ("field", "unknown"): {
            "same_path": "the same name led to other files; give each its own endpoint",
            "same_pool": "workers of one pool have both; give them pools of their own",
            "no_worker": "no live worker in pool {pool} has this setting",
            "no_worker_has": "no live worker has {value}",
            "recorded": "scores come from logs, a judge or a team's own scorer, so no text can be scored again here",
            "too_large": "the suite has too many cases to score again at once",
        },
    },
)
SAID = Messages(
    "bisect",
    {
        ("plan", "asserts"): {"planned": "Nothing has been decoded yet: this is the plan."},
        ("sides", "unknown"): {
            "sides_first": "Both sides are decoded first, unchanged; every step is compared with them.",
            "baseline_lost": "The unchanged baseline repeated its answer in 0 of {n} cases, so no flip can be "
            "attributed.",
            "both_lost": "In none of {n} cases did both unchanged sides repeat their answers, so no flip can be "
            "attributed.",
        },
        ("cause", "denies"): {
            "candidate_lost": "With all settable fields as in the candidate, 0 of {n} flips came again: none of them "
            "is the cause.",
            "cleared": "{names} {n:causes|cause} none.",
        },
        ("cause", "asserts"): {
            "one": "{names} alone causes {n_made} of {n} flips, and undoing it removes {n_undone} of {n}.",
            "either": "{names} each cause {n_cases} of {n} flips alone, and only undoing {all_of_them} removes "
            "{n_cases} of {n}.",
            "together": "{names} cause {n_cases} of {n} flips only together, and undoing {all_of_them} removes "
            "{n_cases} of {n}.",
        },
        ("cause", "unknown"): {
            "open": "{n_open} of {n} flips {n_open:is|are} not explained yet.",
            "unexplained": "{n_open} of {n} flips {n_open:is|are} explained by no field and by none of the "
            "combinations that were tried.",
            "too_few": "One case is not enough to blame a field, as answers change by chance.",
            "not_tried": "Not tried: {names:list}.",
        },
        ("cases", "asserts"): {
            "lost": "{n:chosen case} did not reproduce, and {n:is|are} left out.",
            "chance": "{n:chosen case} {n:is|are} left out as chance ({names:list}): one side gave several answers in "
            "{n_decodings} equal decodings.",
        },
        ("controls", "asserts"): {
            "none_moved": "{n:further case} that did not move {n:was a control|were controls}: none moved in any step.",
            "some_moved": "{n:further case} that did not move {n:was a control|were controls}: some moved in "
            "{n_steps:step}.",
        },
        ("steps", "asserts"): {
            "one_field": "Only this field differs, so its two steps are the settings of the two runs, decoded again.",
            "marks": "Up to where the two runs part, each step gave: {marks}.",
            "spaces": "In a token, · is a space.",
        },
        ("score", "unknown"): {
            "not_reproduced": "The cases that moved the score did not reproduce; their cause is unknown.",
        },
        ("score", "asserts"): {
            "scorer_alone": "The scorer alone moves the score, by {points} points.",
            "explains": "It explains {own} of {points} points.",
            "explains_beside": "It explains {own} of {points} points; the scorer alone moves it by {scorer}.",
        },
    },
)
MARKS: Mapping[str, str] = {
    StepAnswer.CANDIDATE: "◆",
    StepAnswer.BASELINE: "–",
    StepAnswer.OTHER: "○",
    StepAnswer.MISSING: "·",
}
MARK_WORDS: Mapping[str, str] = {
    StepAnswer.CANDIDATE: "the candidate's",
    StepAnswer.BASELINE: "the baseline's",
    StepAnswer.OTHER: "a third answer",
    StepAnswer.MISSING: "no answer",
}


def describe_field(name: str) -> str:
    """Return a field's label: "dtype", "prefix cache", "top_k", "vllm version"."""
    if name in LABELS:
        return LABELS[name]
    section, _, leaf = name.partition(".")
    if section == "versions":
        return leaf.replace("_", " ") if leaf.endswith(("_code", "_commit")) else f"{leaf} version"
    return leaf if section in ("engine", "sampling", "env") else name


def describe_value(value: Any) -> str:
    """Write a field's value briefly: "on", "bfloat16", "24 tokens"."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None or value in ("", [], {}):
        return "not set"
    if isinstance(value, Mapping) and "batch_class" in value:
        more = [f"{value[name]} {words}" for name, words in _BATCHING.items() if value.get(name)]
        return ", ".join([value["batch_class"], *more])
    if isinstance(value, Mapping) and "max_tokens" in value:
        stop = f", stop {json.dumps(value['stop'], ensure_ascii=False)}" if value.get("stop") else ""
        return _short(f"{value['max_tokens']} tokens{stop}")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return _short(text)


_BATCHING = {"group_size": "in a group", "max_num_seqs": "seats"}


def _short(text: str) -> str:
    return text if len(text) <= VALUE_CHARS else f"…{text[1 - VALUE_CHARS :]}"


def describe_reach(code: str, facts: Mapping[str, Any]) -> str:
    """Return why a field cannot be set here, "" without a code."""
    return REASONS.write(code, {name: describe_value(value) for name, value in facts.items()}) if code else ""


def describe_step(
    turned: Sequence[str],
    every: Sequence[str],
    values: Mapping[str, tuple[str, str]],
    nth: tuple[int, int] = (1, 1),
) -> str:
    """Name a step by the shorter of what it turns and undoes: "− dtype, back to float32".

    values: field → its value on either side, for people. nth: which decoding of the step this is, of how many.
    """
    decoding = f" ({nth[0]} of {nth[1]})" if nth[1] > 1 else ""
    return f"{_name_step(turned, every, values)}{decoding}"


def _name_step(turned: Sequence[str], every: Sequence[str], values: Mapping[str, tuple[str, str]]) -> str:
    undone = [name for name in every if name not in turned]
    if not turned:
        return "baseline as it was"
    if not undone:
        return "candidate as it was"
    if len(turned) <= len(undone):
        return f"+ {listed([f'{describe_field(name)} {values[name][1]}' for name in turned])}"
    return f"{MINUS} {listed([f'{describe_field(name)}, back to {values[name][0]}' for name in undone])}"


def describe_state(state: str, *, others: Sequence[str] = (), n_of: tuple[int, int] = (0, 0), reason: str = "") -> str:
    """Return the note under a finding. others: the fields blamed with it; n_of: cases explained, of all."""
    match state:
        case FieldState.CAUSE:
            return "tried both ways"
        case FieldState.PART:
            return f"explains {n_of[0]} of {n_of[1]}"
        case FieldState.TOGETHER:
            return f"with {listed([describe_field(name) for name in others])}"
        case FieldState.EITHER:
            return f"as is {listed([describe_field(name) for name in others])}"
        case FieldState.SCORER_ONLY:
            return "changes no token"
        case _:
            return reason


def describe_bisect(bisect: "Bisect", *, status: str, n_missing: int, problem: str = "") -> str:
    """Return a bisect's conclusion in a few sentences, the cause first. n_missing: steps left out."""
    if status == "planned":
        return SAID.write("planned")
    begin = describe_end(status, n_missing, problem)
    parts = [begin] if begin else []
    if bisect.n_reproduced is None and bisect.steps:
        return begin or SAID.write("sides_first")
    if bisect.n_reproduced == 0:
        parts += [_describe_lost(bisect), *_describe_chance(bisect)]
    elif bisect.n_reproduced:
        parts += _describe_blamed(bisect, is_running=status == "running")
    scorer = next((each for each in bisect.fields if each.state == FieldState.SCORER_ONLY), None)
    if scorer is not None and scorer.points is not None and not bisect.steps:
        parts.append(SAID.write("scorer_alone", points=_signed(scorer.points)))
    out_of_reach = [each.label for each in bisect.fields if each.reach == FieldReach.NOT_REACHABLE]
    if out_of_reach:
        parts.append(SAID.write("not_tried", names=out_of_reach))
    return " ".join(parts)


def _describe_lost(bisect: "Bisect") -> str:
    """Say that no difference was reproduced, and on which side."""
    n_turned = max(len(step.turned) for step in bisect.steps)
    ours, theirs = (
        {shown for step in bisect.steps if len(step.turned) == n for shown in step.shown} for n in (0, n_turned)
    )
    is_repeated = StepAnswer.CANDIDATE in theirs, StepAnswer.BASELINE in ours
    code = "candidate_lost" if not is_repeated[0] else "baseline_lost" if not is_repeated[1] else "both_lost"
    return SAID.write(code, n=len(bisect.cases))


def _describe_blamed(bisect: "Bisect", *, is_running: bool) -> list[str]:
    n = bisect.n_reproduced or 0
    fields = {each.name: each for each in bisect.fields}
    parts = [_describe_one(each, fields, n) for each in bisect.blamed]
    parts += _describe_points(bisect, fields)
    parts += _describe_chance(bisect)
    if n_open := bisect.n_unexplained:
        parts.append(SAID.write("open" if is_running else "unexplained", n_open=n_open, n=n))
        parts += [SAID.write("too_few")] if bisect.n_decodings > 1 and not is_running else []
    cleared = [each.label for each in bisect.fields if each.state == FieldState.CLEARED and not each.n_made]
    if cleared and bisect.blamed:
        parts.append(SAID.write("cleared", n=len(cleared), names=listed(cleared)))
    if lost := len(bisect.cases) - n - sum(case.is_chance for case in bisect.cases):
        parts.append(SAID.write("lost", n=lost))
    return parts


def _describe_one(blamed: "BisectBlamed", fields: Mapping[str, "BisectField"], n: int) -> str:
    names = listed([fields[name].label for name in blamed.fields])
    if len(blamed.fields) == 1:
        field = fields[blamed.fields[0]]
        return SAID.write("one", names=names, n=n, n_made=field.n_made, n_undone=field.n_undone)
    all_of_them = "both" if len(blamed.fields) == 2 else "all of them"
    code = "either" if blamed.is_either else "together"
    return SAID.write(code, names=names, n=n, n_cases=blamed.n_cases, all_of_them=all_of_them)


def _describe_chance(bisect: "Bisect") -> list[str]:
    """Name the cases that are chance."""
    names = [case.case for case in bisect.cases if case.is_chance]
    if not names:
        return []
    named = [*names[:CASES_NAMED], *([f"{len(names) - CASES_NAMED} more"] if len(names) > CASES_NAMED else [])]
    return [SAID.write("chance", n=len(names), names=named, n_decodings=bisect.n_decodings)]


def _describe_points(bisect: "Bisect", fields: Mapping[str, "BisectField"]) -> list[str]:
    """Say how much of the score's change the single cause explains, and what the scorer explains."""
    moved = [case for case in bisect.cases if case.score_baseline != case.score_candidate]
    if bisect.points and moved and not any(case.is_reproduced for case in moved):
        return [SAID.write("not_reproduced")]
    if bisect.points is None or len(bisect.blamed) != 1 or len(bisect.blamed[0].fields) != 1:
        return []
    own = fields[bisect.blamed[0].fields[0]].points
    if own is None or not (own or bisect.points):
        return []
    scorer = next((each for each in bisect.fields if each.state == FieldState.SCORER_ONLY and each.points), None)
    facts = {"own": _signed(own), "points": _signed(bisect.points)}
    if scorer is None:
        return [SAID.write("explains", facts)]
    return [SAID.write("explains_beside", facts, scorer=_signed(scorer.points or 0.0))]


def _signed(value: float) -> str:
    text = small_points(value)
    return text if text.startswith(MINUS) or not value else f"+{text}"
