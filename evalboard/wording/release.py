"""The verdict of a release as it is kept and signed: the document of the core, with a sentence for every line of it."""

from collections.abc import Callable, Mapping
from typing import Any

from evalboard.wording import verdict
from evalboard.wording.next_steps import next_step
from evalboard.wording.numbers import listed, points
from evalboard.wording.verdict_names import verdict_name
from evalboard.wording.warnings import warning

Json = dict[str, Any]
Sentence = Callable[[str, Mapping[str, Any]], str]

KINDS: dict[str, Sentence] = {"reasons": verdict.reason, "warnings": warning, "next": next_step}


def write_verdict(document: Mapping[str, Any]) -> Json:
    """Return the document of `core.verdict.decide_from_gates` with its summary, and a text in place of a line's facts.

    A line of the release names its suite where there are several. One that is about a single run, `run` in its facts,
    has its facts beside its text, so that pages know of which other runs the same holds.
    """
    gates = document["gates"]
    names = [f"{gate['suite']}: " if len(gates) > 1 else "" for gate in gates]
    lines = {
        kind: [_line(line, sentence, names[line["gate"]]) for line in document[kind]]
        for kind, sentence in KINDS.items()
    }
    return {
        **document,
        **lines,
        "summary": _summary(document),
        "gates": [
            gate | {kind: [_line(line, sentence) for line in gate[kind]] for kind, sentence in KINDS.items()}
            for gate in gates
        ],
    }


def _line(line: Mapping[str, Any], sentence: Sentence, name: str = "") -> Json:
    code, facts = line["code"], line["facts"]
    written = {"code": code, "text": f"{name}{sentence(code, facts)}"}
    if "gate" not in line:
        return written
    return {**written, "gate": line["gate"], **({"facts": facts} if "run" in facts else {})}


def _summary(document: Mapping[str, Any]) -> str:
    """Say in one sentence, or two, what the gate that decides came to; what a release manager reads first."""
    gate = document["gates"][document["headline_gate"]]
    first = gate["reasons"][0]
    reason = verdict.reason(first["code"], first["facts"])
    if gate["verdict"] == "not_comparable":
        text = f"The two runs of {gate['suite']} cannot be compared. {reason}"
    else:
        is_mean = gate["metric"] == "mean" or first["code"] == "no_metric"
        by = "" if is_mean else f" by {gate['metric']}"
        text = f"{gate['suite']} scored {_ranged(gate, 'candidate')}{by} against {_ranged(gate, 'baseline')}. {reason}"
    critical = [each for each in document["gates"] if each["tier"] == "critical"]
    if len(critical) == 1:
        return text
    parts = [f"{each['suite']} {verdict_name(each['verdict'])}" for each in critical]
    return f"{text} The {len(parts)} suites that decide: {listed(parts)}."


def _ranged(gate: Mapping[str, Any], side: str) -> str:
    """Write a side's score with its range, "80.2 (79.8–80.6 over 5 repeats)"."""
    score, span, n = gate[f"score_{side}"], gate[f"range_{side}"], len(gate[f"points_{side}"])
    if score is None:
        return "no score"
    if span is None:  # no case has a score in every repeat
        return points(score)
    if n == 1:
        return f"{points(score)} (1 repeat)"
    low, high = span
    if low == high:
        return f"{points(score)} (each of {n} repeats)"
    return f"{points(score)} ({points(low)}–{points(high)} over {n} repeats)"
