"""A release's texts: its plate, its gates, and critical warnings. For a reader with two minutes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from evalboard.contract.compare import Comparison
from evalboard.contract.release import Gate, PolicyOfRelease, Release, SignOff, StoryLine
from evalboard.contract.run import EventOfRun
from evalboard.contract.treatments import BY_ID, Terms
from evalboard.core.suite import PolicySettings
from evalboard.wording.messages import Messages, speak
from evalboard.wording.numbers import counted
from frontend.compare.pair_address import comparison_url
from frontend.templatetags.numbers import points, signed_points

PLATES = Messages(
    "plate",
    {
        ("verdict", "asserts"): {
            "ship": "{suite}: a drop larger than you accept is ruled out",
            "no_ship": "{suite}: the drop is larger than you accept",
        },
        ("verdict", "unknown"): {
            "noisy": "{suite}: repeats vary more than the range limit",
            "suite_too_small": "{suite}: too few cases to decide",
            "too_few_repeats": "{suite}: a tendency, not a verdict",
            "cached": "{suite}: answers from a cache are not counted",
            "fallback": "{suite}: answers from a fallback are not counted",
            "not_in_turn": "{suite}: whole repeats vary, and the sides ran at different times",
            "incomplete": "{suite}: missing responses could change it",
            "uncertified": "{suite}: no determinism certificate covers it",
            "not_settled": "{suite}: open whether there is a drop larger than you accept",
        },
    },
)
SAID = Messages(
    "release_page",
    {
        ("treatment", "asserts"): {
            "model": "the model; both sides must be served alike",
            "stack": "the serving stack; both sides must have the same model",
            "service": "the service: model and stack together",
            "prompt": "the prompt; cases are paired by their input",
            "prompt_by_id": "the prompt; cases are paired by id, as chosen",
        },
        ("gates", "asserts"): {
            "one_suite": "This suite decides.",
            "one_critical": "The critical one decides.",
            "both": "Ship needs both.",
            "all": "Ship needs all {n:words}.",
            "advisory": "Advisory rows never change the verdict.",
            "hatched": "Hatched rows cannot be compared.",
        },
        ("policy", "asserts"): {
            "policy": "Ships if a drop over {tolerance:points} points{of} is ruled out, checked at {looks} repeats.",
            "guarded": "No verdict if five repeats of a side vary by more than {guard:points}.",
            "noted": "Repeats that vary by more than {guard:points} get a note.",
        },
        ("form", "asserts"): {
            "judges_model": "both sides are served alike. If engine or dtype differ, the release is not comparable.",
            "judges_stack": "an engine upgrade or a quantisation. One model on both sides, decoded at batch size 1 "
            "or batch-invariant. The differences between the stacks are judged.",
            "judges_service": "hosted models, or model and engine changed together: what answers under each name. It "
            "stays unknown whether the model or the stack made a difference.",
            "judges_prompt": "a system prompt or a template. One model on both sides, served alike, and cases with "
            "equal inputs and targets.",
            "default_policy": "the policy of the first critical suite, else {default}.",
            "rerun_suite": "The whole suite: {n:case}, {n_repeats:repeat}.",
            "rerun_reference": "Its reference set first: {n:case}, for a quick look; no gate.",
            "rerun_both": "Both sides, alternating repeat by repeat, so that both meet the same load.",
            "rerun_alone": "The {name} alone.",
        },
        ("step", "denies"): {
            "sample_ends": "The sample comes with Evalboard, and none of it can be decoded again here; runs of your "
            "own can be.",
        },
        ("story", "asserts"): {
            "above": "The sentence above.",
            "expired": "The baseline of {suite} has expired.",
            "changed": "Inputs changed since: {changes}",
        },
    },
)
CHANGES = ("repeats_added", "rescored")  # what a run's history says of a change to what a verdict rests on
Changes = Sequence[tuple[int, EventOfRun]]  # with its run


def describe_plate(gate: Gate) -> str:
    """Return the finding of the large ruler."""
    codes = (gate.verdict or "", *(line.code for line in gate.reasons), "not_settled")
    return PLATES.write(next(code for code in codes if code in PLATES), suite=gate.suite)


def describe_gates(report: Release) -> str:
    """Say what the rows mean for the verdict."""
    n = sum(gate.tier == "critical" for gate in report.gates)
    codes = ["one_suite" if n == len(report.gates) == 1 else {1: "one_critical", 2: "both"}.get(n, "all")]
    codes += ["advisory"] if n < len(report.gates) else []
    codes += ["hatched"] if any(gate.verdict == "not_comparable" for gate in report.gates) else []
    return speak(SAID.claim(code, n=n) for code in codes)


def name_ledger(gate: Gate) -> str:
    if gate.verdict == "not_comparable":
        return "What changed"
    is_moved = gate.difference is not None and signed_points(gate.difference) != "0.0"
    return f"Why {gate.suite} moved" if is_moved else f"What changed in {gate.suite}"


def describe_ledger(gate: Gate, comparison: Comparison | None) -> str:
    """Return in a few words what the ledger adds up."""
    if gate.verdict == "not_comparable":
        return "an account, not a verdict"
    n = comparison.counts.n_cases_score_changed if comparison and comparison.counts else 0
    return f"{counted(n, 'case')} changed {'its' if n == 1 else 'their'} score" if n else "no score changed"


@dataclass(frozen=True, slots=True)
class OutcomeLink:
    """A list of cases: "34 broken"."""

    label: str
    url: str


def outcome_links(gate: Gate) -> tuple[OutcomeLink, ...]:
    """Return links to the cases that the verdict counts, each list as long as its label says."""
    counts = {"broken": gate.changed.n_broken, "fixed": gate.changed.n_fixed, "unstable": gate.changed.n_unstable}
    return tuple(OutcomeLink(f"{n:,} {outcome}", describe_outcome(gate, outcome)) for outcome, n in counts.items() if n)


def describe_outcome(gate: Gate, outcome: str) -> str:
    """Return the address of the gate's cases with an outcome, by the repeats that were judged."""
    query = {"outcome": outcome} | ({} if gate.look is None else {"look": str(gate.look)})
    return f"{comparison_url(*gate.run_ids, filters=query, terms=gate.terms)}#cases"


def describe_policy(settings: PolicySettings) -> str:
    """Describe a policy in a sentence."""
    looks = f"{', '.join(map(str, settings.looks[:-1]))} or {settings.looks[-1]}"
    of = "" if settings.metric.is_mean else f" of {settings.metric.name}"
    facts = {"tolerance": settings.tolerance_points, "of": of, "looks": looks, "guard": settings.guard_points}
    return speak(SAID.claim(code, facts) for code in ("policy", "guarded" if settings.is_guarded else "noted"))


def describe_settings(policy: PolicyOfRelease) -> str:
    """Return a policy's settings as text: rule, tolerance and range limit."""
    guard = "no range limit" if policy.guard is None else f"range limit {points(policy.guard)}"
    return f"{policy.rule}, tolerance {points(policy.tolerance_points)}, {guard}"


def story(report: Release, changes: Changes) -> tuple[StoryLine, ...]:
    """Return the release's events with its runs' changes in between; newest last."""
    since = [(run_id, event) for run_id, event in changes if event.at > report.created_at]
    settled = _settling_events(report, since)
    lines = _run_lines([change for change in since if change not in settled])
    return tuple(sorted([*(_whole(line, report) for line in report.story), *lines], key=lambda line: line.at))


def _settling_events(report: Release, changes: Changes) -> list[tuple[int, EventOfRun]]:
    """Return the added repeats that a line about further repeats covers already."""
    added = [(run_id, event) for run_id, event in changes if event.code == "repeats_added"]
    firsts = (
        next((change for change in added if change[0] == run_id and change[1].at >= line.at), None)
        for line in report.story
        for run_id in line.runs
    )
    return [change for change in firsts if change is not None]


def _whole(line: StoryLine, report: Release) -> StoryLine:
    """Return the line with its verdict's summary, abbreviated for the present verdict."""
    is_present = line.at == report.decided_at and bool(report.summary)
    summary = SAID.write("above") if is_present and line.code == "decided" else line.summary
    return line.model_copy(update={"text": f"{line.text} {summary}".strip()})


def inputs_changed(report: Release, changes: Changes, since: datetime | None) -> tuple[str, ...]:
    """Return what changed in the verdict's runs since a moment."""
    lines = [line.text for line in _run_lines(changes) if since is not None and line.at > since]
    expired = [gate.suite for gate in report.gates if gate.baseline.is_baseline_expired]
    return (*lines, *(SAID.write("expired", suite=suite) for suite in expired))


def describe_void(line: SignOff, report: Release, changes: Changes) -> str:
    """Say why a sign-off is void, naming what changed if known."""
    changed = inputs_changed(report, changes, line.created_at)
    if line.input_digest == report.input_digest or not changed:
        return line.void or ""
    return SAID.write("changed", changes=" ".join(changed))


def _run_lines(changes: Changes) -> list[StoryLine]:
    return [StoryLine(at=event.at, code=event.code, text=f"run {run_id}: {event.text}") for run_id, event in changes]


def describe_treatment(terms: Terms) -> str:
    return SAID.write("prompt_by_id" if terms.pair_by == BY_ID else terms.treatment)
