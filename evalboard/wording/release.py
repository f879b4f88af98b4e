"""Write a release's verdict as it is stored and signed: the core's document with a sentence per line."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalboard.wording import release_verdict
from evalboard.wording.messages import Messages, split_bold
from evalboard.wording.next_steps import next_step
from evalboard.wording.numbers import ShownScores, counted, interval_digits, points, scores_beside
from evalboard.wording.release_names import verdict_name
from evalboard.wording.release_warnings import warning

Json = dict[str, Any]
Sentence = Callable[[str, Mapping[str, Any]], str]

NO_RUNS: Mapping[str, int] = {}
KEPT = {"next": ("sides", "block")}  # facts that stay beside a text
KINDS: dict[str, Sentence] = {"reasons": release_verdict.reason, "warnings": warning, "next": next_step}


def write_verdict(document: Mapping[str, Any], runs: Sequence[Mapping[str, int]] = ()) -> Json:
    """Return the document of `core.release.judge_release` with a summary and a text for each line.

    runs: of each gate, the ids of both runs by side, which the commands of steps name.

    A line of the release names its suite where there are several. One that is about a single run, `run` in its facts,
    has its facts beside its text, so that pages know of which other runs the same holds.
    """
    gates = document["gates"]
    names = [f"{gate['suite']}: " if len(gates) > 1 else "" for gate in gates]
    lines = {
        kind: [
            _line(line, sentence, names[line["gate"]], runs[line["gate"]] if runs else {})
            | {name: line["facts"][name] for name in KEPT.get(kind, ()) if name in line["facts"]}
            for line in document[kind]
        ]
        for kind, sentence in KINDS.items()
    }
    summary, bold = split_bold(_summary(document))
    return {
        **document,
        **lines,
        "summary": summary,
        "summary_bold": bold and list(bold),
        "gates": [
            gate
            | {
                kind: [_line(line, sentence, runs=runs[place] if runs else {}) for line in gate[kind]]
                for kind, sentence in KINDS.items()
            }
            for place, gate in enumerate(gates)
        ],
    }


def _line(line: Mapping[str, Any], sentence: Sentence, name: str = "", runs: Mapping[str, int] = NO_RUNS) -> Json:
    code, facts = line["code"], line["facts"]
    written = {"code": code, "text": f"{name}{sentence(code, {**facts, 'runs': runs})}"}
    if "gate" not in line:
        return written
    return {**written, "gate": line["gate"], **({"facts": facts} if "run" in facts else {})}


def _summary(document: Mapping[str, Any]) -> str:
    """Summarise the deciding gate in two or three sentences, for a release manager.

    Of a change that was measured these are its facts: from what to what, how far with its interval, and how that
    compares with what was accepted.
    """
    gate = document["gates"][document["headline_gate"]]
    first = gate["reasons"][0]
    code, facts = first["code"], first["facts"]
    if gate["verdict"] == "not_comparable":
        text = SUMMARY.write("not_comparable", suite=gate["suite"], why=release_verdict.reason(code, facts))
    elif "change" in facts and (claim := release_verdict.claim(code, facts)):
        text = SUMMARY.write(
            "change",
            moved=_moved(gate),
            measured=release_verdict.measured(facts),
            claim=claim,
        )
    else:
        scored = _scored(gate, "" if code == "no_metric" else _by(gate), has_n=code != "copies")
        n = facts["n_judged"] if code == "incomplete" else 0
        on = f" on the {counted(n, 'case')} with a score on both sides" if n else ""
        text = SUMMARY.write("other", scored=f"{scored}{on}", why=release_verdict.reason(code, facts))
    return f"{text}{_others(document)}"


SUMMARY = Messages(
    "summary",
    {
        ("change", "unknown"): {
            "not_comparable": "The two runs of {suite} cannot be compared. {why}",
            "other": "{scored}. {why}",
        },
        ("change", "asserts"): {"change": "{moved} The change is {measured}. {claim!b}"},
        ("suites", "asserts"): {"others_ship": "The other {rest}.", "others": "The {n} suites that decide: {parts}."},
    },
)


def _moved(gate: Mapping[str, Any]) -> str:
    """Say from which score to which a suite moved; the number of repeats once if both sides have as many."""
    before, after, beside = gate["score_baseline"], gate["score_candidate"], _beside(gate)
    if before is None or after is None or beside.baseline == beside.candidate:
        return f"{_scored(gate, _by(gate))}."
    is_alike = len(gate["points_baseline"]) == len(gate["points_candidate"])
    ends = f"{_ranged(gate, 'baseline')} to {_ranged(gate, 'candidate', has_n=not is_alike)} {beside.note}".rstrip()
    return f"{gate['suite']}{_by(gate)} {'rose' if after > before else 'fell'} from {ends}."


def _scored(gate: Mapping[str, Any], by: str, *, has_n: bool = True) -> str:
    ours, theirs = (_ranged(gate, side, has_n=has_n) for side in ("candidate", "baseline"))
    return f"{gate['suite']} scored {f'{ours}{by} against {theirs} {_beside(gate).note}'.rstrip()}"


def _beside(gate: Mapping[str, Any]) -> ShownScores:
    """Write both scores as they appear next to the change that `verdict.measured` writes."""
    change, low, high = gate["difference"], gate["low"], gate["high"]
    digits = 1 if low is None or high is None else interval_digits(low, high, -gate["tolerance_points"])
    return scores_beside(gate["score_baseline"], gate["score_candidate"], change, digits)


def _by(gate: Mapping[str, Any]) -> str:
    return "" if gate["metric"] == "mean" else f" by {gate['metric']}"


def _others(document: Mapping[str, Any]) -> str:
    """Say what the other suites that decide came to: in a word where they all ship."""
    headline = document["gates"][document["headline_gate"]]
    critical = [each for each in document["gates"] if each["tier"] == "critical"]
    others = [each for each in critical if each is not headline]
    if not others:
        return ""
    if all(each["verdict"] == "ship" for each in others):
        rest = f"suite, {others[0]['suite']}, ships" if len(others) == 1 else f"{len(others)} suites ship"
        return f" {SUMMARY.write('others_ship', rest=rest)}"
    parts = [f"{each['suite']}: {verdict_name(each['verdict'])}" for each in critical]
    return f" {SUMMARY.write('others', n=len(parts), parts='; '.join(parts))}"


def _ranged(gate: Mapping[str, Any], side: str, *, has_n: bool = True) -> str:
    """Write a side's score with its range, "80.2 (79.8–80.6 over 5 repeats)"; shorter without has_n."""
    score, span, n = gate[f"score_{side}"], gate[f"range_{side}"], len(gate[f"points_{side}"])
    if score is None:
        return "no score"
    beside = _beside(gate)
    text = beside.baseline if side == "baseline" else beside.candidate
    if span is None:  # no case has a score in every repeat
        return text
    if n == 1:
        return f"{text} (1 repeat)" if has_n else text
    low, high = span
    if low == high:
        return f"{text} (each of {n} repeats)" if has_n else f"{text} (each)"
    over = f" over {n} repeats" if has_n else ""
    return f"{text} ({points(low, beside.digits)}–{points(high, beside.digits)}{over})"
