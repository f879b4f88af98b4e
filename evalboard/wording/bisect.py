"""Sentences of a bisect: its fields and values, its steps, the finding of each, and the conclusion."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalboard.contract.lab_kinds import FieldReach, FieldState, StepAnswer
from evalboard.wording.lab import describe_end, small_points
from evalboard.wording.numbers import MINUS, counted, listed

if TYPE_CHECKING:
    from evalboard.contract.lab import Bisect, BisectBlamed, BisectField

LABELS: Mapping[str, str] = {
    "model": "model",
    "chat_template": "chat template",
    "quantization": "quantisation",
    "max_model_len": "context length",
    "worker": "worker's pool",
    "limits": "answer limits",
    "engine.enable_prefix_caching": "prefix cache",
    "engine.attention_backend": "attention backend",
    "engine.kv_cache_dtype": "KV-cache dtype",
    "engine.tensor_parallel_size": "tensor parallel size",
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
REASONS: Mapping[str, str] = {
    "same_path": "the same name led to other files; give each its own endpoint",
    "same_pool": "workers of one pool have both; give them pools of their own",
    "no_worker": "no live worker of the pool {pool} matches it",
    "no_worker_has": "no live worker has {value}",
    "recorded": "scores come from logs, so no text can be scored again",
    "too_large": "the suite has too many cases to score again at once",
}
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
    return REASONS[code].format(**{name: describe_value(value) for name, value in facts.items()}) if code else ""


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
        return "Nothing has been decoded yet: this is the plan."
    begin = describe_end(status, n_missing, problem)
    parts = [begin] if begin else []
    if bisect.n_reproduced is None and bisect.steps:
        return begin or "Both sides are decoded first, unchanged; every step is compared with them."
    if bisect.n_reproduced == 0:
        parts += [_describe_lost(bisect), *_describe_chance(bisect)]
    elif bisect.n_reproduced:
        parts += _describe_blamed(bisect, is_running=status == "running")
    scorer = next((each for each in bisect.fields if each.state == FieldState.SCORER_ONLY), None)
    if scorer is not None and scorer.points is not None and not bisect.steps:
        parts.append(f"The scorer alone moves the score, by {_signed(scorer.points)} points.")
    out_of_reach = [each.label for each in bisect.fields if each.reach == FieldReach.NOT_REACHABLE]
    if out_of_reach:
        parts.append(f"Not tried: {listed(out_of_reach)}.")
    return " ".join(parts)


def _describe_lost(bisect: "Bisect") -> str:
    """Say that no difference was reproduced, and on which side."""
    n_turned = max(len(step.turned) for step in bisect.steps)
    ours, theirs = (
        {shown for step in bisect.steps if len(step.turned) == n for shown in step.shown} for n in (0, n_turned)
    )
    n = len(bisect.cases)
    if StepAnswer.CANDIDATE not in theirs:
        return f"With all settable fields as in the candidate, 0 of {n} flips came again: none of them is the cause."
    if StepAnswer.BASELINE not in ours:
        return f"The unchanged baseline repeated its answer in 0 of {n} cases, so no flip can be attributed."
    return f"In none of {n} cases did both unchanged sides repeat their answers, so no flip can be attributed."


def _describe_blamed(bisect: "Bisect", *, is_running: bool) -> list[str]:
    n = bisect.n_reproduced or 0
    fields = {each.name: each for each in bisect.fields}
    parts = [_describe_one(each, fields, n) for each in bisect.blamed]
    parts += _describe_points(bisect, fields)
    parts += _describe_chance(bisect)
    if bisect.n_unexplained and is_running:
        parts.append(f"{bisect.n_unexplained} of {n} flips {_are(bisect.n_unexplained)} not explained yet.")
    elif bisect.n_unexplained:
        none = f"{bisect.n_unexplained} of {n} flips {_are(bisect.n_unexplained)} explained by no field"
        few = " One case is not enough to blame a field, as answers change by chance." if bisect.n_decodings > 1 else ""
        parts.append(f"{none} and by none of the combinations that were tried.{few}")
    cleared = [each for each in bisect.fields if each.state == FieldState.CLEARED and not each.n_made]
    if cleared and bisect.blamed:
        parts.append(f"{listed([each.label for each in cleared])} {'causes' if len(cleared) == 1 else 'cause'} none.")
    if lost := len(bisect.cases) - n - sum(case.is_chance for case in bisect.cases):
        parts.append(f"{counted(lost, 'chosen case')} did not reproduce, and {_are(lost)} left out.")
    return parts


def _describe_one(blamed: "BisectBlamed", fields: Mapping[str, "BisectField"], n: int) -> str:
    names = listed([fields[name].label for name in blamed.fields])
    if len(blamed.fields) == 1:
        field = fields[blamed.fields[0]]
        return f"{names} alone causes {field.n_made} of {n} flips, and undoing it removes {field.n_undone} of {n}."
    all_of_them = "both" if len(blamed.fields) == 2 else "all of them"
    if blamed.is_either:
        return (
            f"{names} each cause {blamed.n_cases} of {n} flips alone, and only undoing {all_of_them} removes "
            f"{blamed.n_cases} of {n}."
        )
    return (
        f"{names} cause {blamed.n_cases} of {n} flips only together, and undoing {all_of_them} removes "
        f"{blamed.n_cases} of {n}."
    )


def _describe_chance(bisect: "Bisect") -> list[str]:
    """Name the cases that are chance."""
    names = [case.case for case in bisect.cases if case.is_chance]
    if not names:
        return []
    named = [*names[:CASES_NAMED], *([f"{len(names) - CASES_NAMED} more"] if len(names) > CASES_NAMED else [])]
    how = f"one side gave several answers in {bisect.n_decodings} equal decodings"
    return [f"{counted(len(names), 'chosen case')} {_are(len(names))} left out as chance ({listed(named)}): {how}."]


def _describe_points(bisect: "Bisect", fields: Mapping[str, "BisectField"]) -> list[str]:
    """Say how much of the score's change the single cause explains, and what the scorer explains."""
    moved = [case for case in bisect.cases if case.score_baseline != case.score_candidate]
    if bisect.points and moved and not any(case.is_reproduced for case in moved):
        return ["The cases that moved the score did not reproduce; their cause is unknown."]
    if bisect.points is None or len(bisect.blamed) != 1 or len(bisect.blamed[0].fields) != 1:
        return []
    own = fields[bisect.blamed[0].fields[0]].points
    if own is None or not (own or bisect.points):
        return []
    scorer = next((each for each in bisect.fields if each.state == FieldState.SCORER_ONLY and each.points), None)
    beside = "" if scorer is None else f"; the scorer alone moves it by {_signed(scorer.points or 0.0)}"
    return [f"It explains {_signed(own)} of {_signed(bisect.points)} points{beside}."]


def _signed(value: float) -> str:
    text = small_points(value)
    return text if text.startswith(MINUS) or not value else f"+{text}"


def _are(n: int) -> str:
    return "is" if n == 1 else "are"
