"""Build the questions about other causes with their evidence, and the warnings about the decision.

No warning is left out. Its severity is that of its row (`evalboard.wording.release_warnings`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.urls import reverse

from evalboard.contract.bucket import Bucket
from evalboard.contract.compare import Comparison
from evalboard.contract.release import Gate, GateSide, OtherCause, Release, ReleaseWarning
from evalboard.core.release import CAUSE_OF
from evalboard.wording.messages import Messages, speak
from evalboard.wording.noise_share import list_noise_codes
from evalboard.wording.numbers import capital, listed, percent
from evalboard.wording.release_warnings import WARNINGS
from frontend.release.words import describe_outcome
from frontend.templatetags.numbers import points, signed_points

Buckets = Mapping[int, Sequence[Bucket]]  # by run

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
MARKS = {"ok": ("pass", "OK"), "doubt": ("warning", "Doubt"), "no": ("fail", "Problem"), "unknown": ("info", "Unknown")}
SUBJECTS = {"server": "Server", "prompts": "Prompts", "noise": "Noise", "missing": "Answers", "identity": "Identity"}


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark. label: what it is about. is_heavy: its cause could change the verdict.

    size: its effect or cost in points, "" without one.
    """

    text: str
    label: str = ""
    size: str = ""
    url: str = ""
    link: str = ""
    is_heavy: bool = False


@dataclass(frozen=True, slots=True)
class CauseTick:
    """A tick of the strip. subject: what it is about. word: its state, for those who see no glyph."""

    cause: OtherCause
    subject: str
    glyph: str
    word: str
    remarks: tuple[Remark, ...]


NOTES = Messages(
    "note",
    {
        ("candidates", "asserts"): {"first_candidate": "The first candidate against this baseline."},
        ("warning", "asserts"): {
            "same_run": "The same holds for run {names:list}.",
            "same_runs": "The same holds for runs {names:list}.",
            "same_suites": "The same holds for {names:list}.",
        },
        ("warning", "allows"): {
            "takes": "It would have to explain {spare:points} points to change the verdict.",
            "moves": "Noise moves {suite} by up to {noise:points}.",
        },
        ("candidates", "allows"): {
            "candidates": "{n:,} candidates were judged against this baseline. The more you try, the likelier a "
            "lucky one."
        },
        ("noise", "asserts"): {
            "unstable": "{n:unstable case} of {suite} scored differently between repeats of one side.",
            "noise_floor": "Noise floor {floor} points, measured from {repeats}.",
        },
        ("new_cases", "asserts"): {
            "reach_wide": "For new cases the interval is {span}{level}. This suite cannot rule out a drop of "
            "{drop:points} there.",
            "reach": "For new cases the interval is {span}{level}. The verdict covers only these cases.",
        },
        ("noise", "unknown"): {
            "noise_unmeasured": "The noise of {sides} is not measured. It takes two repeats.",
            "noise_equal": "The noise of {sides} is not measured: all repeats scored the same.",
        },
        ("resolution", "asserts"): {
            "resolution": "On new cases, {look} repeats detect changes of {elsewhere:points} points or more.",
            "case": "One case is {worth:points} points here.",
        },
        ("server", "asserts"): {"served": "The {side}: {served}."},
        ("prompts", "asserts"): {"prompts": "{suite} v{version} with {n_cases:case} on both sides."},
        ("missing", "asserts"): {"judged": "{n:,} of {n_cases:case} judged, from {repeats}."},
        ("identity", "asserts"): {"attested": "Both engines ran under our workers, which read their files and flags."},
    },
)


def cause_ticks(report: Release, buckets: Buckets, comparison: Comparison | None) -> tuple[CauseTick, ...]:
    """Return the strip "Could anything else explain it?", each tick with all that is known of it."""
    remarks = _remarks_by_cause(report, buckets, comparison)
    ticks = []
    for each in report.other_causes:
        glyph, word = MARKS[each.state]
        ticks.append(CauseTick(each, SUBJECTS[each.code], glyph, word, remarks=tuple(remarks[each.code])))
    return tuple(ticks)


def decision_notes(report: Release) -> tuple[Remark, ...]:
    """Return the warnings that are about the decision itself."""
    lines = [line for line in report.warnings if line.code not in CAUSE_OF]
    return tuple(_remark(alike, report) for alike in group_alike(lines))


def reservations(report: Release) -> tuple[Remark, ...]:
    """Return what speaks against a ship by a question of the strip, which shows it folded."""
    lines = [line for line in report.warnings if line.severity == "warning" and line.code in CAUSE_OF]
    return tuple(_remark(alike, report) for alike in group_alike(lines)) if report.verdict == "ship" else ()


def _remarks_by_cause(report: Release, buckets: Buckets, comparison: Comparison | None) -> dict[str, list[Remark]]:
    gate = report.headline
    warnings = [line for line in report.warnings if line.code != "reach_wide"]  # said below, with both its ends
    codes = {line.code for line in warnings}
    is_wide = any(line.code == "reach_wide" and line.gate == report.headline_gate for line in report.warnings)
    by_cause: dict[str, list[Remark]] = {cause.code: [] for cause in report.other_causes}
    for cause in report.other_causes:
        mine = [line for line in gate.reasons if line.code in cause.because]
        by_cause[cause.code] += [Remark(line.text, is_heavy=True) for line in mine]
    heavy, light = ([line for line in warnings if line.severity == severity] for severity in ("warning", "info"))
    for alike in (*group_alike(heavy), *group_alike(light)):
        if alike[0].code in CAUSE_OF:
            by_cause[CAUSE_OF[alike[0].code]].append(_remark(alike, report))
    newest = comparison.computation if comparison else None  # the report may be older than the comparison
    known = report.computations or ([newest.text] if newest and newest.answer != "unknown" else [])
    by_cause["server"] += [Remark(text) for text in known]
    own = (
        _note_reach(gate, is_wide=is_wide),
        None
        if "noise_unmeasured" in codes
        else _note_noise(gate, () if comparison is None else list_noise_codes(comparison.noise_share)),
        _note_resolution(gate),
        None if "few_cases" in codes else _note_cases(gate),
        _note_unstable(gate),
        None if "candidates_tried" in codes else _note_candidates(report.candidates_tried),
    )
    by_cause["noise"] += [note for note in own if note is not None]
    by_cause["server"] += _who_served(gate, buckets)
    n_cases, repeats = gate.n_cases, _repeats(gate.baseline, gate.candidate)
    own_words = {
        "prompts": NOTES.write("prompts", suite=gate.suite, version=gate.suite_version, n_cases=n_cases),
        "missing": NOTES.write("judged", n=gate.n_cases_judged, n_cases=n_cases, repeats=repeats),
        "identity": "" if by_cause["identity"] else NOTES.write("attested"),
    }
    for code, text in own_words.items():
        by_cause[code] += [Remark(text)] if text else []
    return by_cause


def _who_served(gate: Gate, buckets: Buckets) -> Iterator[Remark]:
    for name, side, _ in gate.sides:
        rows = buckets.get(side.run_id, ())
        if rows:
            served = listed([" · ".join(dict.fromkeys((row.backend, row.fingerprint.label))) for row in rows])
            yield Remark(NOTES.write("served", side=name, served=served))


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
        return f" {NOTES.write('same_run' if len(runs) == 1 else 'same_runs', names=runs)}"
    return f" {NOTES.write('same_suites', names=[report.gates[warning.gate or 0].suite for warning in rest])}"


def _remark(lines: Sequence[ReleaseWarning], report: Release) -> Remark:
    first, *rest = lines
    row = WARNINGS.get(first.code)
    label = "" if row is None else capital(row.message.subject.replace("_", " "))
    gate = report.headline if first.gate is None else report.gates[first.gate]
    url, link = _link(first, gate)
    text = f"{first.text}{same_holds(rest, report)}"
    is_heavy = first.severity == "warning"
    return Remark(text, label, _size(first, gate) if is_heavy else "", url, link, is_heavy)


def _size(line: ReleaseWarning, gate: Gate) -> str:
    """Say how much would change the verdict, and how much noise there is."""
    spare, noise = gate.points_to_spare, gate.points_of_noise
    if spare is None or gate.verdict == "inconclusive":
        return ""
    row = WARNINGS.get(line.code)
    codes = ["takes", *(["moves"] if row is not None and row.about == "noise" and noise else [])]
    return speak(NOTES.claim(code, spare=spare, suite=gate.suite, noise=noise) for code in codes)


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
    return Remark(NOTES.write("candidates" if n > 1 else "first_candidate", n=n))


def _note_unstable(gate: Gate) -> Remark | None:
    n = gate.changed.n_unstable
    if not n or gate.candidate.draws.is_sampled:
        return None  # samples differ; that is the model's own doing and no alarm
    text = NOTES.write("unstable", n=n, suite=gate.suite)
    return Remark(text, "Noise", "", describe_outcome(gate, "unstable"), "List")


def _note_reach(gate: Gate, *, is_wide: bool) -> Remark | None:
    reach = gate.new_cases
    if reach is None:
        return None
    low, high = reach.interval
    level = "" if reach.level is None else f" ({percent(reach.level)} interval)"
    span = f"[{signed_points(low)}, {signed_points(high)}]"
    return Remark(NOTES.write("reach_wide" if is_wide else "reach", span=span, level=level, drop=-low), "New cases")


def _note_noise(gate: Gate, with_codes: Iterable[str]) -> Remark | None:
    sides = {"baseline": gate.baseline, "candidate": gate.candidate}
    for code, value in (("noise_unmeasured", None), ("noise_equal", 0.0)):
        names = [name for name, side in sides.items() if side.noise.sd_points == value]
        if names:
            return Remark(NOTES.write(code, sides="both sides" if len(names) == 2 else f"the {names[0]}"))
    floors = [points(side.noise.sd_points) for side in sides.values()]
    known = floors[0] if floors[0] == floors[1] else f"{floors[0]} and {floors[1]}"
    claim = NOTES.claim("noise_floor", floor=known, repeats=_repeats(gate.baseline, gate.candidate))
    text = speak([claim], with_codes=with_codes)
    return Remark(text) if text else None


def _repeats(baseline: GateSide, candidate: GateSide) -> str:
    if baseline.n_repeats == candidate.n_repeats:
        return f"{baseline.n_repeats} repeats in each bucket"
    return f"{baseline.n_repeats} and {candidate.n_repeats} repeats"


def _note_resolution(gate: Gate) -> Remark | None:
    elsewhere = None if gate.new_cases is None else gate.resolution_elsewhere_points
    if gate.resolution_points is None or gate.look is None or not elsewhere:
        return None
    return Remark(NOTES.write("resolution", look=gate.look, elsewhere=elsewhere))


def _note_cases(gate: Gate) -> Remark | None:
    worth = gate.points_per_case
    return Remark(NOTES.write("case", worth=worth)) if worth > COARSE_POINTS else None
