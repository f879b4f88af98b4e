"""Forms of releases: the gates to judge, and a sign-off. Services validate the content."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any

from django import forms
from django.forms.boundfield import BoundField
from django.utils import timezone

from evalboard.contract.parts import name_version
from evalboard.contract.release import ALL_CASES, CASES, Release
from evalboard.contract.run import RunRow
from evalboard.contract.treatments import PROMPT_TREATMENT
from evalboard.core.errors import EvalboardError
from evalboard.core.suite import DEFAULT_POLICY, SAMPLED_POLICY, parse_policy
from frontend.release import words as release_words
from frontend.release.verdicts import DECISIONS, decisions_on
from frontend.shell.forms import LabelLines, PlainForm, blame
from frontend.shell.run_choices import by_suite

CURRENT = "current"
MAX_GATES = 20
MAX_WAIVER_DAYS = 366
GATE_FIELD = re.compile(r"gates[.\[](\d+)\]?\.(\w+)")


class GateForm(PlainForm):
    """One suite of a release. The suite is the candidate's own."""

    candidate = forms.ChoiceField(help_text="The run to judge.")
    baseline = forms.ChoiceField(
        initial=CURRENT,
        help_text="What it is compared with: the suite’s current baseline for its model line and profile, or a run.",
    )
    tier = forms.ChoiceField(
        choices=[("critical", "critical: ship needs it"), ("advisory", "advisory: shown, and decides nothing")],
        initial="critical",
        help_text="Every critical gate must ship. An advisory one never changes the verdict.",
    )

    def __init__(self, *args: Any, runs: Iterable[RunRow] = (), is_optional: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        groups = by_suite(runs)
        candidates = self.fields["candidate"]
        candidates.required = not is_optional
        none = "none" if is_optional else "choose a run"
        candidates.choices = [("", none), *groups]  # type: ignore[attr-defined]
        baselines = self.fields["baseline"]
        baselines.choices = [(CURRENT, "the current baseline of its suite"), *groups]  # type: ignore[attr-defined]

    def gate(self, suites: Mapping[int, str]) -> dict[str, Any] | None:
        """Return what the service takes; None where no candidate was chosen. `suites`: by run."""
        fields = self.cleaned_data
        if not fields["candidate"]:
            return None
        baseline = fields["baseline"]
        return {
            "suite": suites[int(fields["candidate"])],
            "candidate": int(fields["candidate"]),
            "baseline": baseline if baseline == CURRENT else int(baseline),
            "tier": fields["tier"],
        }


TREATMENTS = {
    "model": "The model",
    "stack": "The serving stack",
    "service": "The service",
    "prompt": "The prompt",
}


class ReleaseForm(PlainForm):
    """The fields shared by all gates of a release."""

    policy = forms.ChoiceField(
        required=False,
        widget=forms.RadioSelect,
        help_text="The tolerated drop, and the rules of the decision.",
    )
    treatment = forms.ChoiceField(
        choices=[*TREATMENTS.items()],
        initial="model",
        widget=forms.RadioSelect,
        label="What is judged",
    )
    pair_by_id = forms.BooleanField(
        required=False,
        label="Pair cases by id",
        help_text="Where a prompt is judged and inputs cannot be shown to be equal. The release says so.",
    )
    nothing_caches = forms.BooleanField(
        required=False,
        label="Nothing caches there",
        help_text="You know that each repeat was computed, even where all repeats are equal. The release says so.",
    )
    labels = LabelLines()

    def __init__(self, *args: Any, policies: Iterable[Any] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        default = f"{DEFAULT_POLICY}, for sampled runs {SAMPLED_POLICY}"
        rows = tuple(policies)
        names = [(row.slug, name_version(row.slug, row.version)) for row in rows]
        self.fields["policy"].choices = [("", "Default"), *names]  # type: ignore[attr-defined]
        policy_means = {row.slug: release_words.describe_policy(parse_policy(row.settings)) for row in rows}
        policy_means[""] = release_words.SAID.write("default_policy", default=default)
        self._means = {
            "policy": policy_means,
            "treatment": {each: release_words.SAID.write(f"judges_{each}") for each in TREATMENTS},
        }

    def explained(self) -> Iterator[tuple[BoundField, list[tuple[Any, str, str]]]]:
        """Yield each field of choices with its choices, their names and meanings."""
        for name, means in self._means.items():
            field = self[name]
            yield field, [(choice, str(choice.choice_label), means[str(choice.data["value"])]) for choice in field]

    def clean(self) -> dict[str, Any] | None:
        fields = super().clean()
        if self.cleaned_data.get("pair_by_id") and self.cleaned_data.get("treatment") != PROMPT_TREATMENT:
            self.add_error("pair_by_id", "Cases are paired by id where the prompt is judged: choose the prompt above.")
        return fields


def blame_gates(shared: ReleaseForm, rows: list[GateForm], problem: EvalboardError) -> None:
    """Show the service's words at the gate's own field where they name one."""
    rest = {}
    for path, words in problem.fields.items():
        hit = GATE_FIELD.match(path)
        place, field = (int(hit[1]), hit[2]) if hit else (-1, "")
        if 0 <= place < len(rows):
            rows[place].add_error(field if field in rows[place].fields else "candidate", words)
        else:
            rest[path] = words
    if rest or not problem.fields:
        blame(shared, type(problem)(problem.detail, fields=rest) if rest else problem)


class SignForm(PlainForm):
    """A person's decision.

    `input_digest`, `read_at` and `after` say which verdict and last sign-off their page shows.
    """

    decision = forms.ChoiceField(widget=forms.RadioSelect)
    note = forms.CharField(
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        label="Note",
        help_text="The reason, for later readers. Required for a rejection or a waiver.",
    )
    expires_at = forms.DateField(
        required=False,
        label="Waived until",
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text="The last day of the waiver, UTC; at most 366 days from now.",
    )
    input_digest = forms.CharField(max_length=64, widget=forms.HiddenInput)
    read_at = forms.CharField(required=False, max_length=40, widget=forms.HiddenInput)
    after = forms.CharField(required=False, max_length=20, widget=forms.HiddenInput)

    def __init__(self, *args: Any, verdict: str | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = decisions_on(verdict)
        self.fields["decision"].choices = [(code, DECISIONS[code].label) for code in known]  # type: ignore[attr-defined]
        if "waive" not in known:
            del self.fields["expires_at"]
            return
        today = timezone.now().astimezone(UTC).date()
        limits = {"min": today.isoformat(), "max": (today + timedelta(days=MAX_WAIVER_DAYS)).isoformat()}
        self.fields["expires_at"].widget.attrs |= limits

    def until(self) -> datetime | None:
        """Return the end of the chosen day for a waiver; else None."""
        day = self.cleaned_data.get("expires_at")
        if day is None or self.cleaned_data["decision"] != "waive":
            return None
        return datetime.combine(day, time(23, 59, 59), tzinfo=UTC)


def sign_form(report: Release, **initial: Any) -> SignForm:
    """Return the form for the shown verdict. initial: earlier input."""
    read = {"input_digest": report.input_digest, "read_at": report.decided_at and report.decided_at.isoformat()}
    read["after"] = newest_sign_off(report)
    return SignForm(verdict=report.verdict, initial=initial | read)


def newest_sign_off(report: Release) -> str:
    """Return the id of a release's newest sign-off, "" without one."""
    return max((line.id for line in report.signoffs), key=int, default="")


def read_at(text: str) -> datetime | None:
    """Return when the verdict on the person's page was decided; None if the text is invalid."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


class SettleForm(PlainForm):
    """The budget that a person confirms: the very numbers of the plan that was on the page."""

    cases = forms.ChoiceField(choices=[(cases, cases) for cases in CASES], required=False, widget=forms.HiddenInput)
    look = forms.IntegerField(widget=forms.HiddenInput)
    n_responses = forms.IntegerField(widget=forms.HiddenInput)

    def clean_cases(self) -> str:
        return self.cleaned_data["cases"] or ALL_CASES


class RerunForm(PlainForm):
    """Running one side again, or both in turn: the whole suite, or the reference set first."""

    sides = forms.ChoiceField(required=False, widget=forms.RadioSelect, label="Which side")
    what = forms.ChoiceField(widget=forms.RadioSelect, label="What to run")
    endpoint = forms.ChoiceField(required=False, label="Where")

    def __init__(
        self,
        *args: Any,
        sides: Iterable[tuple[str, str]],
        whats: Iterable[tuple[str, str]],
        endpoints: Iterable[str],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.fields["sides"].choices = list(sides)  # type: ignore[attr-defined]
        self.fields["what"].choices = list(whats)  # type: ignore[attr-defined]
        self.fields["endpoint"].choices = [(slug, slug) for slug in endpoints]  # type: ignore[attr-defined]
