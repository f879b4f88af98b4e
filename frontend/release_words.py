"""What a release says in words: its plate, its gates, what nobody may overlook. For a reader with two minutes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from evalboard.core import policy
from evalboard.core.policy import PolicySettings
from evalboard.core.verdict_words import percent
from frontend.findings import Finding
from frontend.pair_address import of_comparison
from frontend.templatetags.numbers import points, signed_points
from runs.selectors.release import GateReport, GateSide, Line, ReleaseReport, SignOffLine, StoryLine
from runs.selectors.run import RunReport

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
CLAIM = re.compile(r"^(.{16,}?(?:[.!?:;]|,(?= so )))\s+(.+)$", re.S)  # and what follows from it
RUN = re.compile(r"\b[Rr]un (\d+)(, the (?:baseline|candidate),)?")
COARSE_POINTS = 0.5  # a case that is worth more than this is said
WIDE_REACH = 2  # tolerances; a reach that goes lower is a warning
PLATE_CLAIMS = {
    "noisy": "repeats spread by more than the guard",
    "suite_too_small": "too few cases to settle it",
    "too_few_repeats": "a lean, and not a verdict",
    "cached": "what a cache answers is no draw",
    "fallback": "what a fallback answers is no draw",
    "incomplete": "missing responses could turn it",
    "not_settled": "it may be worse than what you accept, or not",
}
CHANGES = ("repeats_added", "rescored")  # what a run's history says of a change to what a verdict rests on
TREATMENTS = {
    "model": "the model; both sides must be served alike",
    "stack": "the serving stack, on one model",
}


@dataclass(frozen=True, slots=True)
class Note:
    """Something to read before deciding; `level` is warning or info."""

    level: str
    claim: str
    rest: str = ""
    url: str = ""
    link: str = ""


def of_plate(gate: GateReport) -> str:
    """The finding of the large ruler."""
    if gate.verdict == "ship":
        return f"{gate.suite}: no worse than what you accept"
    if gate.verdict == "no_ship":
        return f"{gate.suite}: worse than what you accept"
    known = (PLATE_CLAIMS[line.code] for line in gate.reasons if line.code in PLATE_CLAIMS)
    return f"{gate.suite}: {next(known, PLATE_CLAIMS['not_settled'])}"


def of_gates(report: ReleaseReport) -> str:
    """What the rows mean for the verdict."""
    n = sum(gate.tier == "critical" for gate in report.gates)
    needs = {1: "The critical one decides.", 2: "Ship needs both."}.get(n, f"Ship needs all {_number(n)}.")
    words = ["The verdict rests on this one." if n == len(report.gates) == 1 else needs]
    if n < len(report.gates):
        words.append("Advisory rows never change the verdict.")
    if any(gate.verdict == "not_comparable" for gate in report.gates):
        words.append("Hatching means: may not be compared.")
    return " ".join(words)


def _number(n: int) -> str:
    return NUMBERS[n] if n < len(NUMBERS) else str(n)


@dataclass(frozen=True, slots=True)
class OutcomeLink:
    """A list of cases: "34 broken"."""

    label: str
    url: str


def outcome_links(gate: GateReport) -> tuple[OutcomeLink, ...]:
    """The cases that the verdict counts, each list with as many rows as its label says."""
    counts = {"broken": gate.n_broken, "fixed": gate.n_fixed, "unstable": gate.n_unstable}
    return tuple(OutcomeLink(f"{n:,} {outcome}", of_outcome(gate, outcome)) for outcome, n in counts.items() if n)


def of_outcome(gate: GateReport, outcome: str) -> str:
    """The address of the gate's cases with an outcome, by the repeats that were judged."""
    kept = {"outcome": outcome} | ({} if gate.look is None else {"look": str(gate.look)})
    return f"{of_comparison(gate.baseline.run_id, gate.candidate.run_id, kept=kept)}#cases"


def of_line(text: str) -> Finding:
    """A sentence of the rules, its claim first."""
    found = CLAIM.match(text)
    return Finding(*found.groups()) if found else Finding(text)


def grouped(lines: Sequence[Line], report: ReleaseReport) -> tuple[str, ...]:
    """Each thing said once, with the other runs or suites of which the very same is said."""
    alike: dict[str, list[Line]] = {}
    for line in lines:
        alike.setdefault(RUN.sub("run", _bare(line, report)), []).append(line)
    return tuple(f"{first.text}{_same(rest, report)}" for first, *rest in alike.values())


def _bare(line: Line, report: ReleaseReport) -> str:
    """Without the suite's name before it."""
    return line.text if line.gate is None else line.text.removeprefix(f"{report.gates[line.gate].suite}: ")


def _same(rest: Sequence[Line], report: ReleaseReport) -> str:
    if not rest:
        return ""
    runs = [found[1] for line in rest if (found := RUN.search(line.text))]
    if len(runs) == len(rest):
        return f" The same holds for run{'' if len(runs) == 1 else 's'} {_listed(runs)}."
    return f" The same holds for {_listed([report.gates[line.gate or 0].suite for line in rest])}."


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def notes(report: ReleaseReport) -> tuple[Note, ...]:
    """Every warning, then what is known of spread and reach; nothing of it is ever folded away."""
    gate = report.gates[report.headline_gate]
    warnings = [line for line in report.warnings if line.code != "reach_wide"]  # said below, with both its ends
    codes = {line.code for line in warnings}
    found = [Note("warning", said.claim, said.rest) for said in map(of_line, grouped(warnings, report))]
    own = (
        None if "candidates_tried" in codes else _of_candidates(report.candidates_tried),
        _of_unstable(gate),
        _of_reach(gate),
        None if "noise_unmeasured" in codes else _of_noise(gate),
        _of_resolution(gate),
        None if "few_cases" in codes else _of_cases(gate),
    )
    found += [note for note in own if note is not None]
    return tuple(sorted(found, key=lambda note: note.level != "warning"))


def _of_candidates(n: int) -> Note:
    if n <= 1:
        return Note("info", "The first candidate against this baseline.")
    return Note(
        "warning",
        f"{n:,} candidates were judged against this baseline.",
        "Each further one makes a lucky pass likelier.",
    )


def _of_unstable(gate: GateReport) -> Note | None:
    if not gate.n_unstable:
        return None
    if gate.candidate.draws.is_sampled:
        return None  # draws differ; that is the model's own doing and no alarm
    cases = "1 unstable case" if gate.n_unstable == 1 else f"{gate.n_unstable:,} unstable cases"
    url = of_outcome(gate, "unstable")
    return Note("warning", f"{cases} of {gate.suite}", "scored differently between repeats of one side.", url, "List")


def _of_reach(gate: GateReport) -> Note | None:
    if gate.reach is None:
        return None
    low, high = gate.reach
    level = "" if gate.reach_level is None else f" ({percent(gate.reach_level)} interval)"
    claim = f"For other cases like these: [{signed_points(low)}, {signed_points(high)}]{level}."
    if low < -WIDE_REACH * gate.tolerance_points:
        return Note("warning", claim, f"This suite cannot rule out a drop of {points(-low)} there.")
    return Note("info", claim, "The verdict holds for the cases of the suite alone.")


def _of_noise(gate: GateReport) -> Note:
    sides = {"baseline": gate.baseline, "candidate": gate.candidate}
    unmeasured = [name for name, side in sides.items() if side.noise_points is None]
    if unmeasured:
        both = "either side" if len(unmeasured) == 2 else f"the {unmeasured[0]}"
        return Note("warning", f"The noise floor of {both} is not measured.", "One bucket's repeats would measure it.")
    floors = [points(side.noise_points) for side in sides.values()]
    known = floors[0] if floors[0] == floors[1] else f"{floors[0]} and {floors[1]}"
    return Note("info", f"Noise floor {known} points,", f"measured from {_repeats(gate.baseline, gate.candidate)}.")


def _repeats(baseline: GateSide, candidate: GateSide) -> str:
    if baseline.n_repeats == candidate.n_repeats:
        return f"{baseline.n_repeats} repeats in each bucket"
    return f"{baseline.n_repeats} and {candidate.n_repeats} repeats"


def _of_resolution(gate: GateReport) -> Note | None:
    if gate.resolution_points is None or gate.look is None:
        return None
    claim = f"{gate.look} repeats resolve a change of {points(gate.resolution_points)} points on these cases"
    elsewhere = gate.resolution_elsewhere_points
    return Note("info", f"{claim},", f"of {points(elsewhere)} on others like these.") if elsewhere else None


def _of_cases(gate: GateReport) -> Note | None:
    if gate.points_per_case <= COARSE_POINTS:
        return None
    return Note("info", f"One case is worth {points(gate.points_per_case)} points here.")


def of_policy(settings: PolicySettings) -> str:
    """What a policy asks for, in a sentence."""
    tolerance, guard = points(settings.tolerance_points), points(settings.guard_points)
    looks = f"{', '.join(map(str, settings.looks[:-1]))} or {settings.looks[-1]}"
    said = f"Ships while a drop of {tolerance} points is ruled out, looking after {looks} repeats"
    if settings.is_guarded:
        return f"{said}; no verdict where five repeats of a side spread over more than {guard}."
    return f"{said}; case by case, however far repeats spread (over {guard} is said beside it)."


def of_settings(settings: Mapping[str, Any]) -> str:
    """A policy's settings as facts: `strict, tolerance 1.0, guard 1.0`."""
    found = policy.parse(settings)
    guard = f"guard {points(found.guard_points)}" if found.is_guarded else "no guard"
    return f"{found.rule}, tolerance {points(found.tolerance_points)}, {guard}"


def story(report: ReleaseReport, runs: Mapping[int, RunReport]) -> tuple[StoryLine, ...]:
    """Every look and decision, with what was done to the runs themselves in between; newest last."""
    settled = f"to settle release {report.row.id}"  # told by the settling itself
    lines = [line for line in _of_runs(runs) if line.at > report.row.created_at and settled not in line.text]
    told = [replace(line, text=_briefly(line, report)) for line in report.story]
    return tuple(sorted([*told, *lines], key=lambda line: line.at))


def _briefly(line: StoryLine, report: ReleaseReport) -> str:
    """The verdict that the page opens with is not told in full again."""
    if line.code != "decided" or line.at != report.row.decided_at or not report.row.summary:
        return line.text
    return line.text.replace(report.row.summary, "The sentence above.")


def inputs_changed(report: ReleaseReport, runs: Mapping[int, RunReport], since: datetime | None) -> tuple[str, ...]:
    """What was done after a moment to the runs that the verdict rests on."""
    said = [line.text for line in _of_runs(runs) if since is not None and line.at > since]
    expired = [gate.suite for gate in report.gates if gate.baseline.is_baseline_expired]
    return (*said, *(f"The baseline of {suite} has expired." for suite in expired))


def of_void(line: SignOffLine, report: ReleaseReport, runs: Mapping[int, RunReport]) -> str:
    """Why a sign-off no longer holds; what changed since is named where it is known."""
    changed = inputs_changed(report, runs, line.created_at)
    if line.input_digest == report.input_digest or not changed:
        return line.void
    return f"Inputs changed since: {' '.join(changed)}"


def _of_runs(runs: Mapping[int, RunReport]) -> list[StoryLine]:
    return [
        StoryLine(at=event.at, code=event.code, text=f"run {run_id}: {event.text}", person="")
        for run_id, run in sorted(runs.items())
        for event in run.events
        if event.code in CHANGES
    ]


def of_treatment(treatment: str) -> str:
    return TREATMENTS[treatment]
