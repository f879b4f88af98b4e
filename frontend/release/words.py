"""What a release says in words: its plate, its gates, what nobody may overlook. For a reader with two minutes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from evalboard.contract import release as contract
from evalboard.contract.release import Gate, GateSide, PolicyOfRelease, Release, SignOff, StoryLine
from evalboard.contract.run import EventOfRun
from evalboard.core.suite import PolicySettings
from evalboard.wording.numbers import listed, percent
from frontend.compare.pair_address import comparison_url
from frontend.shell.findings import Finding
from frontend.templatetags.numbers import points, signed_points

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
LEAD = re.compile(r"^(.{16,}?(?:[.!?:;]|,(?= so )))\s+(.+)$", re.S)  # up to the first stop, for bold type alone
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
Changes = Sequence[tuple[int, EventOfRun]]  # with its run
TREATMENTS = {
    "model": "the model; both sides must be served alike",
    "stack": "the serving stack, on one model",
    "service": "the service: model and stack together",
}


@dataclass(frozen=True, slots=True)
class Remark:
    """Something to read before deciding; `level` is warning or info."""

    level: str
    claim: str
    rest: str = ""
    url: str = ""
    link: str = ""


def describe_plate(gate: Gate) -> str:
    """Return the finding of the large ruler."""
    if gate.verdict == "ship":
        return f"{gate.suite}: no worse than what you accept"
    if gate.verdict == "no_ship":
        return f"{gate.suite}: worse than what you accept"
    known = (PLATE_CLAIMS[line.code] for line in gate.reasons if line.code in PLATE_CLAIMS)
    return f"{gate.suite}: {next(known, PLATE_CLAIMS['not_settled'])}"


def describe_gates(report: Release) -> str:
    """Say what the rows mean for the verdict."""
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


def outcome_links(gate: Gate) -> tuple[OutcomeLink, ...]:
    """Return the cases that the verdict counts, each list with as many rows as its label says."""
    counts = {"broken": gate.changed.n_broken, "fixed": gate.changed.n_fixed, "unstable": gate.changed.n_unstable}
    return tuple(OutcomeLink(f"{n:,} {outcome}", describe_outcome(gate, outcome)) for outcome, n in counts.items() if n)


def describe_outcome(gate: Gate, outcome: str) -> str:
    """Return the address of the gate's cases with an outcome, by the repeats that were judged."""
    query = {"outcome": outcome} | ({} if gate.look is None else {"look": str(gate.look)})
    return f"{comparison_url(gate.baseline.run_id, gate.candidate.run_id, filters=query)}#cases"


def set_lead(text: str) -> Finding:
    """Return a sentence in two parts, its opening for bold type. Typography alone: nothing is known from it."""
    match = LEAD.match(text)
    return Finding(*match.groups()) if match else Finding(text)


def group_alike(warnings: Sequence[contract.Finding], report: Release) -> tuple[str, ...]:
    """Return each warning once, with the other runs or suites of which the very same holds."""
    alike: dict[str, list[contract.Finding]] = {}
    for warning in warnings:
        alike.setdefault(warning.alike, []).append(warning)
    return tuple(f"{first.text}{_same_holds(rest, report)}" for first, *rest in alike.values())


def _same_holds(rest: Sequence[contract.Finding], report: Release) -> str:
    if not rest:
        return ""
    runs = [warning.run for warning in rest if warning.run is not None]
    if len(runs) == len(rest):
        return f" The same holds for run{'' if len(runs) == 1 else 's'} {listed(runs)}."
    return f" The same holds for {listed([report.gates[warning.gate or 0].suite for warning in rest])}."


def notes(report: Release) -> tuple[Remark, ...]:
    """Return every warning, then what is known of spread and reach; nothing of it is ever folded away."""
    gate = report.headline
    warnings = [line for line in report.warnings if line.code != "reach_wide"]  # said below, with both its ends
    codes = {line.code for line in warnings}
    lines = [Remark("warning", lead.claim, lead.rest) for lead in map(set_lead, group_alike(warnings, report))]
    own = (
        None if "candidates_tried" in codes else _note_candidates(report.candidates_tried),
        _note_unstable(gate),
        _note_reach(gate),
        None if "noise_unmeasured" in codes else _note_noise(gate),
        _note_resolution(gate),
        None if "few_cases" in codes else _note_cases(gate),
    )
    lines += [note for note in own if note is not None]
    return tuple(sorted(lines, key=lambda note: note.level != "warning"))


def _note_candidates(n: int) -> Remark:
    if n <= 1:
        return Remark("info", "The first candidate against this baseline.")
    return Remark(
        "warning",
        f"{n:,} candidates were judged against this baseline.",
        "Each further one makes a lucky pass likelier.",
    )


def _note_unstable(gate: Gate) -> Remark | None:
    if not gate.changed.n_unstable:
        return None
    if gate.candidate.draws.is_sampled:
        return None  # draws differ; that is the model's own doing and no alarm
    cases = "1 unstable case" if gate.changed.n_unstable == 1 else f"{gate.changed.n_unstable:,} unstable cases"
    url = describe_outcome(gate, "unstable")
    return Remark("warning", f"{cases} of {gate.suite}", "scored differently between repeats of one side.", url, "List")


def _note_reach(gate: Gate) -> Remark | None:
    if gate.reach is None:
        return None
    low, high = gate.reach.interval
    level = "" if gate.reach.level is None else f" ({percent(gate.reach.level)} interval)"
    claim = f"For other cases like these: [{signed_points(low)}, {signed_points(high)}]{level}."
    if low < -WIDE_REACH * gate.tolerance_points:
        return Remark("warning", claim, f"This suite cannot rule out a drop of {points(-low)} there.")
    return Remark("info", claim, "The verdict holds for the cases of the suite alone.")


def _note_noise(gate: Gate) -> Remark:
    sides = {"baseline": gate.baseline, "candidate": gate.candidate}
    unmeasured = [name for name, side in sides.items() if side.noise.sd_points is None]
    if unmeasured:
        both = "either side" if len(unmeasured) == 2 else f"the {unmeasured[0]}"
        return Remark(
            "warning", f"The noise floor of {both} is not measured.", "One bucket's repeats would measure it."
        )
    floors = [points(side.noise.sd_points) for side in sides.values()]
    known = floors[0] if floors[0] == floors[1] else f"{floors[0]} and {floors[1]}"
    return Remark("info", f"Noise floor {known} points,", f"measured from {_repeats(gate.baseline, gate.candidate)}.")


def _repeats(baseline: GateSide, candidate: GateSide) -> str:
    if baseline.n_repeats == candidate.n_repeats:
        return f"{baseline.n_repeats} repeats in each bucket"
    return f"{baseline.n_repeats} and {candidate.n_repeats} repeats"


def _note_resolution(gate: Gate) -> Remark | None:
    if gate.resolution_points is None or gate.look is None:
        return None
    claim = f"{gate.look} repeats resolve a change of {points(gate.resolution_points)} points on these cases"
    elsewhere = gate.resolution_elsewhere_points
    return Remark("info", f"{claim},", f"of {points(elsewhere)} on others like these.") if elsewhere else None


def _note_cases(gate: Gate) -> Remark | None:
    if gate.points_per_case <= COARSE_POINTS:
        return None
    return Remark("info", f"One case is worth {points(gate.points_per_case)} points here.")


def describe_policy(settings: PolicySettings) -> str:
    """Say what a policy asks for, in a sentence."""
    tolerance, guard = points(settings.tolerance_points), points(settings.guard_points)
    looks = f"{', '.join(map(str, settings.looks[:-1]))} or {settings.looks[-1]}"
    of = "" if settings.metric.is_mean else f" of {settings.metric.name}"
    text = f"Ships while a drop of {tolerance} points{of} is ruled out, looking after {looks} repeats"
    if settings.is_guarded:
        return f"{text}; no verdict where five repeats of a side spread over more than {guard}."
    return f"{text}; case by case, however far repeats spread (over {guard} is said beside it)."


def describe_settings(policy: PolicyOfRelease) -> str:
    """Return a policy's settings as facts: `strict, tolerance 1.0, guard 1.0`."""
    guard = "no guard" if policy.guard is None else f"guard {points(policy.guard)}"
    return f"{policy.rule}, tolerance {points(policy.tolerance_points)}, {guard}"


def story(report: Release, changes: Changes) -> tuple[StoryLine, ...]:
    """Return every look and decision, with what was done to the runs themselves in between; newest last."""
    since = [(run_id, event) for run_id, event in changes if event.at > report.created_at]
    settled = _settling_events(report, since)
    lines = _run_lines([change for change in since if change not in settled])
    return tuple(sorted([*(_whole(line, report) for line in report.story), *lines], key=lambda line: line.at))


def _settling_events(report: Release, changes: Changes) -> list[tuple[int, EventOfRun]]:
    """Return the repeats that settling this release added, which the settling itself tells: each run's next ones."""
    added = [(run_id, event) for run_id, event in changes if event.code == "repeats_added"]
    firsts = (
        next((change for change in added if change[0] == run_id and change[1].at >= line.at), None)
        for line in report.story
        for run_id in line.runs
    )
    return [change for change in firsts if change is not None]


def _whole(line: StoryLine, report: Release) -> StoryLine:
    """Return the line with its verdict's summary; the one that the page opens with is not told in full again."""
    is_present = line.at == report.decided_at and bool(report.summary)
    summary = "The sentence above." if is_present and line.code == "decided" else line.summary
    return line.model_copy(update={"text": f"{line.text} {summary}".strip()})


def inputs_changed(report: Release, changes: Changes, since: datetime | None) -> tuple[str, ...]:
    """Return what was done after a moment to the runs that the verdict rests on."""
    lines = [line.text for line in _run_lines(changes) if since is not None and line.at > since]
    expired = [gate.suite for gate in report.gates if gate.baseline.is_baseline_expired]
    return (*lines, *(f"The baseline of {suite} has expired." for suite in expired))


def describe_void(line: SignOff, report: Release, changes: Changes) -> str:
    """Say why a sign-off no longer holds; what changed since is named where it is known."""
    changed = inputs_changed(report, changes, line.created_at)
    if line.input_digest == report.input_digest or not changed:
        return line.void or ""
    return f"Inputs changed since: {' '.join(changed)}"


def _run_lines(changes: Changes) -> list[StoryLine]:
    return [StoryLine(at=event.at, code=event.code, text=f"run {run_id}: {event.text}") for run_id, event in changes]


def describe_treatment(treatment: str) -> str:
    return TREATMENTS[treatment]
