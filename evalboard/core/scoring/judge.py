"""The `judge` scorer: a model scores the answers, in a run of its own (docs/suites.md)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from evalboard.core.digest import canonical_json
from evalboard.core.document import Problems, at
from evalboard.core.errors import InvalidInput
from evalboard.core.images import prompt_text
from evalboard.core.scoring.external import EXTERNAL
from evalboard.core.scoring.kind import (
    REQUIRED,
    Option,
    Options,
    Score,
    ScorerKind,
    Tools,
    capped,
    number_from,
    or_none,
    text_of,
    whole_from,
)
from evalboard.core.scoring.normalise import normalise, normalise_option
from evalboard.core.scoring.number import first_number
from evalboard.core.scoring.reasons import shown
from evalboard.core.scoring.recorded import RECORDED
from evalboard.core.scoring.response_json import UnreadableJson, fenced, parse_response_json

PLACES = ("prompt", "messages", "target", "answer", "tags")
DRAWS = (1, 3, 5)
MAX_TEMPLATE_CHARS = 100_000
MAX_WORDS = 20
MAX_FIELD_CHARS = 80
_PLACE = re.compile(r"\{\{([^{}]*)\}\}")  # spaces inside are stripped; as part of the pattern they take cubic time
_FOLDED = normalise_option(case="fold", punctuation="strip").default


def judge_spec(plan: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the judge of a plan; None where it has none. A plan has one at the most."""
    specs = (plan["default"], *plan["cases"].values())
    return next((spec for spec in specs if spec is not None and spec["kind"] == JUDGE.name), None)


def is_judged(plan: Mapping[str, Any]) -> bool:
    """Tell whether a judge scores cases of a plan."""
    return judge_spec(plan) is not None


def judging_number(plan: Mapping[str, Any]) -> int:
    """Return the number of a plan's judging of a run: 1 for the judge's first, then 2."""
    return int((judge_spec(plan) or {}).get("judging", 1))


def number_judging(plan: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return a plan as that judging of a run: the same judge, whose scores are kept apart."""

    def numbered(spec: Any) -> Any:
        if spec is None or spec["kind"] != JUDGE.name:
            return spec
        return {name: value for name, value in spec.items() if name != "judging"} | (
            {"judging": number} if number > 1 else {}
        )

    return {"default": numbered(plan["default"]), "cases": {case: numbered(own) for case, own in plan["cases"].items()}}


def find_plan_problems(plan: Mapping[str, Any]) -> dict[str, str]:
    """Return the scorers that exclude a plan's judge, and why."""
    judge = judge_spec(plan)
    named = {"scorer": plan["default"]} | {f"scorer of {case}": spec for case, spec in plan["cases"].items()}
    fields: dict[str, str] = {}
    for place, spec in named.items() if judge is not None else ():
        if spec is None or spec == judge:
            continue
        if spec["kind"] == JUDGE.name:
            fields[place] = "is another judge; all cases of a suite that are judged have the same one"
        elif spec["kind"] in BESIDE_NO_JUDGE:
            fields[place] = f"is of the kind {spec['kind']}, which cannot score cases beside a judge"
    return fields


def render_judgement(
    spec: Mapping[str, Any], *, messages: Sequence[Mapping[str, Any]], target: Any, tags: Sequence[str], answer: str
) -> list[dict[str, Any]]:
    """Return the messages by which a judge is asked about an answer.

    messages, target, tags: of the case. What is put into a place is not read for places again.
    """
    by_user = [prompt_text(message.get("content")) for message in messages if message["role"] in ("user", "completion")]
    lines = (f"{message['role']}: {prompt_text(message.get('content'))}" for message in messages)
    places = {
        "prompt": by_user[-1] if by_user else "",
        "messages": "\n\n".join(lines),
        "target": _written(target),
        "tags": ", ".join(tags),
        "answer": answer,
    }
    question = _PLACE.sub(lambda match: places[match[1].strip()], spec["template"])
    system = [] if spec["system"] is None else [{"role": "system", "content": spec["system"]}]
    return [*system, {"role": "user", "content": question}]


def read_judgement(spec: Mapping[str, Any], text: str) -> float | str:
    """Return the value from 0 to 1 that a judge's answer gives, or why it gives none."""
    reads = spec["reads"]
    if not text.strip():
        return "The judge answered nothing."
    if "choice" in reads:
        return _read_choice(reads["choice"], text)
    if "field" in reads:
        return _read_field(reads, text)
    value = first_number(text)
    return f"The judge gave no number: {shown(text)}." if value is None else _scaled(reads["number"], value)


def _read_choice(choice: Mapping[str, float], text: str) -> float | str:
    """Read the first or the last word, where it is one of the words."""
    words = text.split()
    values = {word: choice[word] for word in (normalise(words[at], _FOLDED) for at in (0, -1)) if word in choice}
    if not values:
        return f"The judge neither began nor ended with {_listed(choice)}: {shown(text)}."
    if len(values) > 1:
        return f"The judge began with {shown(words[0])} and ended with {shown(words[-1])}: {shown(text)}."
    return next(iter(values.values()))


def _read_field(reads: Mapping[str, Any], text: str) -> float | str:
    try:
        value = parse_response_json(fenced(text))
    except UnreadableJson as unreadable:
        return f"The judge gave no JSON. {unreadable}"
    if not isinstance(value, Mapping) or reads["field"] not in value:
        return f"The judge's JSON lacks the key {shown(reads['field'])}: {shown(value)}."
    number = value[reads["field"]]
    if isinstance(number, bool) or not isinstance(number, int | float):
        return f"The judge's {reads['field']} is no number: {shown(number)}."
    return _scaled(reads, number)


def _scaled(limits: Mapping[str, float], value: float) -> float | str:
    least, most = limits["least"], limits["most"]
    if not least <= value <= most:
        return f"The judge gave {shown(value)}, which is not from {least:g} to {most:g}."
    return (float(value) - least) / (most - least)


def _listed(choice: Mapping[str, float]) -> str:
    return " or ".join(shown(word) for word in sorted(choice))


def _written(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else canonical_json(value).decode("utf-8", "replace")


def _read_template(value: Any, path: str, problems: Problems) -> Any:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_TEMPLATE_CHARS:
        problems.add(path, f"must be text of 1 to {MAX_TEMPLATE_CHARS} characters")
        return value
    places = [place.strip() for place in _PLACE.findall(value)]
    if unknown := [place for place in places if place not in PLACES]:
        problems.add(path, f"has the unknown place {{{{{unknown[0]}}}}}; known are {_places(PLACES)}")
    elif "answer" not in places:
        problems.add(path, f"lacks the place {_places(('answer',))}, without which the judge does not see the answer")
    return value


def _places(names: Sequence[str]) -> str:
    return ", ".join(f"{{{{{name}}}}}" for name in names)


def _read_reads(value: Any, path: str, problems: Problems) -> Any:
    if isinstance(value, Mapping) and value.keys() == {"choice"}:
        return {"choice": _read_words(value["choice"], at(path, "choice"), problems)}
    if isinstance(value, Mapping) and value.keys() == {"number"}:
        return {"number": _read_limits(value["number"], at(path, "number"), problems)}
    if isinstance(value, Mapping) and "field" in value:
        field = text_of(at_least=1, at_most=MAX_FIELD_CHARS)(value["field"], at(path, "field"), problems)
        limits = {"least": 0, "most": 1} | {name: given for name, given in value.items() if name != "field"}
        return {"field": field, **_limits_or_nothing(limits, path, problems)}
    problems.add(path, 'must be {"choice": {"yes": 1, "no": 0}}, {"number": {"least": 1, "most": 10}} or {"field": …}')
    return value


def _limits_or_nothing(value: Any, path: str, problems: Problems) -> dict[str, float]:
    read = _read_limits(value, path, problems)
    return read if isinstance(read, dict) else {}


def _read_limits(value: Any, path: str, problems: Problems) -> Any:
    if not isinstance(value, Mapping) or value.keys() != {"least", "most"}:
        problems.add(path, "must have least and most, and nothing else")
        return None
    before = problems.n_found
    limits = {name: number_from(-1e9, 1e9)(value[name], at(path, name), problems) for name in ("least", "most")}
    if problems.n_found == before and not limits["least"] < limits["most"]:
        problems.add(path, "must have a least that is below most")
    return limits


def _read_words(value: Any, path: str, problems: Problems) -> Any:
    """Read the words that a judge chooses from, each with its value, without case and punctuation."""
    if not isinstance(value, Mapping) or not 2 <= len(value) <= MAX_WORDS:
        problems.add(path, f"must be 2 to {MAX_WORDS} words, each with its value from 0 to 1")
        return value
    words: dict[str, Any] = {}
    for word, worth in value.items():
        folded = normalise(str(word), _FOLDED)
        if len(folded.split()) != 1 or folded in words:
            problems.add(at(path, str(word)), "must be one word, and another than the others without case")
        words[folded] = number_from(0, 1)(worth, at(path, str(word)), problems)
    return words


def _read_draws(value: Any, path: str, problems: Problems) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or value not in DRAWS:
        problems.add(path, f"must be one of {', '.join(map(str, DRAWS))}")
    return value


def _refuse(_options: Options, _text: str, _targets: list[Any], _tools: Tools) -> Score:
    raise InvalidInput("A judge scores in a run of its own; it cannot score here.")


def unread_reason(reasons: Sequence[str]) -> str:
    """Say why an answer has no score, by why each of its judgements has no value."""
    return capped(f"Unscored: {reasons[0]}" if reasons else "Unscored: no judgement of it came back.")


BESIDE_NO_JUDGE: Final = (*EXTERNAL, RECORDED.name)
JUDGE = ScorerKind(
    name="judge",
    version=1,
    options={
        "endpoint": Option(REQUIRED, text_of(at_least=1, at_most=80)),
        "profile": Option(REQUIRED, text_of(at_least=1, at_most=80)),
        "template": Option(REQUIRED, _read_template),
        "system": Option(None, or_none(text_of(at_least=1, at_most=MAX_TEMPLATE_CHARS))),
        "reads": Option(REQUIRED, _read_reads),
        "draws": Option(1, _read_draws),
        "max_tokens": Option(16, whole_from(1, 32_768)),
        "twice": Option(50, whole_from(0, 1000)),
        "anchors": Option(50, whole_from(0, 200)),
        "anchor_draws": Option(None, or_none(whole_from(2, 40))),
        "pass_at": Option(None, or_none(number_from(0, 1))),
        "judging": Option(1, whole_from(1, 1_000_000)),
    },
    target_problem=lambda _options, _target: None,
    score=_refuse,
    needs_target=lambda _options: False,
    reads_answers=lambda _options: False,
    scores_here=False,
)
