"""Build the questions about other causes with their evidence, and the warnings about the decision.

No warning is left out. Its severity is that of its row (`evalboard.wording.release_warnings`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.urls import reverse

from evalboard.contract.bucket import Bucket
from evalboard.contract.compare import Comparison
from evalboard.contract.release import Gate, GateSide, OtherCause, Release, ReleaseWarning
from evalboard.core.release import CAUSE_OF
from evalboard.wording.numbers import counted, listed, percent
from evalboard.wording.release_warnings import WARNINGS
from frontend.release.words import describe_outcome
from frontend.shell.findings import Headline
from frontend.templatetags.numbers import points, signed_points

Buckets = Mapping[int, Sequence[Bucket]]  # by run

LEAD = re.compile(r"^(.{16,}?(?:[.!?:;]|,(?= so )))\s+(.+)$", re.S)  # up to the first stop, for bold type alone
COARSE_POINTS = 0.5  # a case that is worth more than this is said
RUN_LINKS = {
    "pins_broken",
    "several_buckets",
    "truncated",
    "two_computations",
    "uncertified",
    "unsteady",
    "unvouched",
}
MARKS = {"ok": ("pass", "Yes"), "doubt": ("warning", "Doubt"), "no": ("fail", "No"), "unknown": ("info", "Not known")}
QUESTIONS = {
    "server": "Same server",
    "prompts": "Same prompts",
    "noise": "Beyond noise",
    "missing": "Nothing missing",
    "identity": "Identity attested",
}


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark. is_heavy: its cause could change the verdict. size: its effect in points, "" without."""

    claim: str
    rest: str = ""
    size: str = ""
    url: str = ""
    link: str = ""
    is_heavy: bool = False


@dataclass(frozen=True, slots=True)
class CauseTick:
    """A question of the strip. question: in two words. word: its state, for those who see no glyph."""

    cause: OtherCause
    question: str
    glyph: str
    word: str
    remarks: tuple[Remark, ...]


def cause_ticks(report: Release, buckets: Buckets, comparison: Comparison | None) -> tuple[CauseTick, ...]:
    """Return the strip "Could anything else explain it?", each tick with all that is known of it."""
    remarks = _remarks_by_cause(report, buckets, comparison)
    return tuple(
        CauseTick(each, QUESTIONS[each.code], *MARKS[each.state], remarks=tuple(remarks[each.code]))
        for each in report.other_causes
    )


def decision_notes(report: Release) -> tuple[Remark, ...]:
    """Return the warnings that are about the decision itself."""
    lines = [line for line in report.warnings if line.code not in CAUSE_OF]
    return tuple(_remark(alike, report) for alike in group_alike(lines))


def _remarks_by_cause(report: Release, buckets: Buckets, comparison: Comparison | None) -> dict[str, list[Remark]]:
    gate = report.headline
    warnings = [line for line in report.warnings if line.code != "reach_wide"]  # said below, with both its ends
    codes = {line.code for line in warnings}
    is_wide = any(line.code == "reach_wide" and line.gate == report.headline_gate for line in report.warnings)
    by_cause: dict[str, list[Remark]] = {cause.code: [] for cause in report.other_causes}
    for cause in report.other_causes:
        mine = [line for line in gate.reasons if line.code in cause.because]
        by_cause[cause.code] += [_split(line.text, is_heavy=True) for line in mine]
    heavy, light = ([line for line in warnings if line.severity == severity] for severity in ("warning", "info"))
    for alike in (*group_alike(heavy), *group_alike(light)):
        if alike[0].code in CAUSE_OF:
            by_cause[CAUSE_OF[alike[0].code]].append(_remark(alike, report))
    newest = comparison.computation if comparison else None  # the report may be older than the comparison
    known = report.computations or ([newest.text] if newest and newest.answer != "unknown" else [])
    by_cause["server"] += [Remark(text) for text in known]
    own = (
        _note_reach(gate, is_wide=is_wide),
        None if "noise_unmeasured" in codes else _note_noise(gate),
        _note_resolution(gate),
        None if "few_cases" in codes else _note_cases(gate),
        _note_unstable(gate),
        None if "candidates_tried" in codes else _note_candidates(report.candidates_tried),
    )
    by_cause["noise"] += [note for note in own if note is not None]
    by_cause["server"] += _who_served(gate, buckets)
    by_cause["prompts"].append(
        Remark(f"{gate.suite} v{gate.suite_version}", f"with {counted(gate.n_cases, 'case')} on both sides.")
    )
    judged = f"{gate.n_cases_judged:,} of {counted(gate.n_cases, 'case')} judged"
    by_cause["missing"].append(Remark(judged, f"from {_repeats(gate.baseline, gate.candidate)}."))
    if not by_cause["identity"]:
        by_cause["identity"].append(Remark("Both engines ran under our workers,", "which read their files and flags."))
    return by_cause


def _who_served(gate: Gate, buckets: Buckets) -> Iterator[Remark]:
    for name, side, _ in gate.sides:
        rows = buckets.get(side.run_id, ())
        if rows:
            served = listed([f"{row.fingerprint.label}, fp {row.fingerprint.digest[:4]}" for row in rows])
            yield Remark(f"The {name}:", f"{served}.")


def set_lead(text: str) -> Headline:
    """Split a sentence into an opening for bold type and the remainder, for typography only."""
    match = LEAD.match(text)
    return Headline(*match.groups()) if match else Headline(text)


def group_alike(warnings: Sequence[ReleaseWarning]) -> tuple[tuple[ReleaseWarning, ...], ...]:
    """Return warnings that say the very same of other runs or suites together."""
    alike: dict[str, list[ReleaseWarning]] = {}
    for warning in warnings:
        alike.setdefault(warning.alike, []).append(warning)
    return tuple(map(tuple, alike.values()))


def same_holds(rest: Sequence[ReleaseWarning], report: Release) -> str:
    """Say which other runs or suites a warning applies to; "" without any."""
    if not rest:
        return ""
    runs = [warning.run for warning in rest if warning.run is not None]
    if len(runs) == len(rest):
        return f" The same holds for run{'' if len(runs) == 1 else 's'} {listed(runs)}."
    return f" The same holds for {listed([report.gates[warning.gate or 0].suite for warning in rest])}."


def _remark(lines: Sequence[ReleaseWarning], report: Release) -> Remark:
    first, *rest = lines
    gate = report.headline if first.gate is None else report.gates[first.gate]
    url, link = _link(first, gate)
    is_heavy = first.severity == "warning"
    size = _size(first, gate) if is_heavy else ""
    return _split(f"{first.text}{same_holds(rest, report)}", size=size, url=url, link=link, is_heavy=is_heavy)


def _split(text: str, *, is_heavy: bool, size: str = "", url: str = "", link: str = "") -> Remark:
    lead = set_lead(text)
    return Remark(lead.claim, lead.rest, size, url, link, is_heavy)


def _size(line: ReleaseWarning, gate: Gate) -> str:
    """Say how much would change the verdict, and how much noise there is."""
    spare, noise = gate.points_to_spare, gate.points_of_noise
    if spare is None or gate.verdict == "inconclusive":
        return ""
    takes = f"It would take {points(spare)} to change the word"
    row = WARNINGS.get(line.code)
    moves = row is not None and row.about == "noise" and noise is not None
    return f"{takes}; noise moves {gate.suite} by up to {points(noise)}." if moves else f"{takes}."


def _link(line: ReleaseWarning, gate: Gate) -> tuple[str, str]:
    if line.run is not None and line.code in RUN_LINKS:
        return reverse("run", args=[line.run]), f"Run {line.run}"
    if line.code == "missing":
        return f"{reverse('run', args=[gate.candidate.run_id])}?only=missing#cases", "The cases"
    if line.code in ("coarse", "few_cases", "concentrated", "noisy_bucket"):
        return reverse("suite", args=[gate.suite]), gate.suite
    if line.code == "candidates_tried":
        return f"{reverse('releases')}?suite={gate.suite}", "Its releases"
    return "", ""


def _note_candidates(n: int) -> Remark:
    if n <= 1:
        return Remark("The first candidate against this baseline.")
    return Remark(f"{n:,} candidates were judged against this baseline.", "Each makes a lucky pass likelier.")


def _note_unstable(gate: Gate) -> Remark | None:
    if not gate.changed.n_unstable:
        return None
    if gate.candidate.draws.is_sampled:
        return None  # draws differ; that is the model's own doing and no alarm
    cases = "1 unstable case" if gate.changed.n_unstable == 1 else f"{gate.changed.n_unstable:,} unstable cases"
    rest = "scored differently between repeats of one side."
    return Remark(f"{cases} of {gate.suite}", rest, "", describe_outcome(gate, "unstable"), "List")


def _note_reach(gate: Gate, *, is_wide: bool) -> Remark | None:
    if gate.reach is None:
        return None
    low, high = gate.reach.interval
    level = "" if gate.reach.level is None else f" ({percent(gate.reach.level)} interval)"
    claim = f"For other cases like these: [{signed_points(low)}, {signed_points(high)}]{level}."
    if is_wide:
        return Remark(claim, f"This suite cannot rule out a drop of {points(-low)} there.")
    return Remark(claim, "The verdict holds for the cases of the suite alone.")


def _note_noise(gate: Gate) -> Remark:
    sides = {"baseline": gate.baseline, "candidate": gate.candidate}
    unmeasured = [name for name, side in sides.items() if side.noise.sd_points is None]
    if unmeasured:
        both = "either side" if len(unmeasured) == 2 else f"the {unmeasured[0]}"
        return Remark(f"The noise floor of {both} is not measured.", "One bucket's repeats would measure it.")
    floors = [points(side.noise.sd_points) for side in sides.values()]
    known = floors[0] if floors[0] == floors[1] else f"{floors[0]} and {floors[1]}"
    return Remark(f"Noise floor {known} points,", f"measured from {_repeats(gate.baseline, gate.candidate)}.")


def _repeats(baseline: GateSide, candidate: GateSide) -> str:
    if baseline.n_repeats == candidate.n_repeats:
        return f"{baseline.n_repeats} repeats in each bucket"
    return f"{baseline.n_repeats} and {candidate.n_repeats} repeats"


def _note_resolution(gate: Gate) -> Remark | None:
    elsewhere = gate.resolution_elsewhere_points
    if gate.resolution_points is None or gate.look is None or not elsewhere:
        return None
    return Remark(f"{gate.look} repeats resolve {points(elsewhere)} points on others like these.")


def _note_cases(gate: Gate) -> Remark | None:
    if gate.points_per_case <= COARSE_POINTS:
        return None
    return Remark(f"One case is worth {points(gate.points_per_case)} points here.")
