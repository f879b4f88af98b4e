"""What people fill in about releases: which gates to judge, and a sign-off. The services check meaning."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any

from django import forms
from django.forms.boundfield import BoundField
from django.utils import timezone

from evalboard.core import policy
from evalboard.core.errors import EvalboardError
from frontend import release_words
from frontend.forms import PlainForm, blame, labels_of
from frontend.templatetags.drawing import drawn_plain, shortened
from frontend.templatetags.numbers import span
from frontend.verdicts import DECISIONS, decisions_on
from runs.selectors.release import ReleaseReport
from runs.selectors.run import RunRow

CURRENT = "current"
MEANS = ": "  # between a choice's name and its sentence
MOST_GATES = 20
MOST_WAIVER_DAYS = 366
GATE_FIELD = re.compile(r"gates[.\[](\d+)\]?\.(\w+)")


class GateForm(PlainForm):
    """One suite of a release. The suite is the candidate's own."""

    candidate = forms.ChoiceField(help_text="The run that is to be judged.")
    baseline = forms.ChoiceField(
        initial=CURRENT,
        help_text="What it is held against: the suite’s current baseline for its model line and profile, or a run.",
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
        """What the service takes; None where no candidate was chosen. `suites`: by run."""
        asked = self.cleaned_data
        if not asked["candidate"]:
            return None
        baseline = asked["baseline"]
        return {
            "suite": suites[int(asked["candidate"])],
            "candidate": int(asked["candidate"]),
            "baseline": baseline if baseline == CURRENT else int(baseline),
            "tier": asked["tier"],
        }


def by_suite(runs: Iterable[RunRow]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Runs as choices, those of a suite under its name."""
    found: dict[str, list[tuple[str, str]]] = {}
    for row in runs:
        found.setdefault(row.suite, []).append((str(row.id), run_words(row)))
    return sorted(found.items())


def run_words(row: RunRow) -> str:
    """A run as one line of a list: `run 62 · acme-7b-ft on local, pinned · 5 repeats, 79.8–80.6 · 2026-04-14`."""
    whole = f"{row.n_buckets} buckets, no score as a whole" if row.n_buckets > 1 else "not scored"
    score = span(row.range) if row.range else whole
    repeats = f"{row.n_repeats} repeat{'' if row.n_repeats == 1 else 's'}"
    name = drawn_plain(shortened(f"{row.model_name} on {row.endpoint}, {row.profile}", 60))
    state = "" if row.status == "finished" else f" · {row.status}"
    return f"run {row.id} · {name} · {repeats}, {score} · {row.ran_at.astimezone(UTC):%Y-%m-%d}{state}"


class ReleaseForm(PlainForm):
    """What all gates of a release share."""

    policy = forms.ChoiceField(
        required=False,
        widget=forms.RadioSelect,
        help_text="How large a drop is tolerated, and what counts as settled.",
    )
    treatment = forms.ChoiceField(
        choices=[
            (
                "model",
                "The model: both sides must have been served alike; a change of engine or dtype between them makes "
                "the release not comparable.",
            ),
            (
                "stack",
                "The serving stack: an engine upgrade or a quantisation. One model on both sides, each decoded alone "
                "or batch-invariant; what differs between the stacks is what is judged.",
            ),
        ],
        initial="model",
        widget=forms.RadioSelect,
        label="What is judged",
    )
    labels = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": "commit=8f21c0e\nbranch=main", "spellcheck": "false"}),
        help_text="One name=value a line.",
    )

    def __init__(self, *args: Any, policies: Iterable[Any] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        default = f"{policy.DEFAULT_POLICY}, for sampled runs {policy.SAMPLED_POLICY}"
        own = ("", f"As its suite asks: the first critical one’s own policy, or else {default}.")
        said = [(row.slug, policy_words(row)) for row in policies]
        self.fields["policy"].choices = [own, *said]  # type: ignore[attr-defined]

    def explained(self) -> Iterator[tuple[BoundField, list[tuple[Any, str, str]]]]:
        """Each field of choices, and each choice with its name and what it means."""
        for name in ("policy", "treatment"):
            field = self[name]
            parts = ((choice, *str(choice.choice_label).partition(MEANS)) for choice in field)
            yield field, [(choice, label, means) for choice, label, _, means in parts]

    def clean_labels(self) -> dict[str, str]:
        return labels_of(self.cleaned_data["labels"])


def policy_words(row: Any) -> str:
    """A policy as a choice: its name and what it asks for."""
    version = f" v{row.version}" if row.version > 1 else ""
    return f"{row.slug}{version}{MEANS}{release_words.of_policy(policy.parse(row.settings))}"


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
    """A person's decision. `input_digest` and `read_at` are of the verdict that was on the page that was read."""

    decision = forms.ChoiceField(widget=forms.RadioSelect)
    note = forms.CharField(
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        label="Note",
        help_text="The reason, for whoever reads this next year. A rejection and a waiver need one.",
    )
    expires_at = forms.DateField(
        required=False,
        label="Waived until",
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text="The waiver ends with this day, UTC; at most 366 days from now.",
    )
    input_digest = forms.CharField(max_length=64, widget=forms.HiddenInput)
    read_at = forms.CharField(required=False, max_length=40, widget=forms.HiddenInput)

    def __init__(self, *args: Any, verdict: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = decisions_on(verdict)
        self.fields["decision"].choices = [(code, DECISIONS[code].label) for code in known]  # type: ignore[attr-defined]
        if "waive" not in known:
            del self.fields["expires_at"]
            return
        today = timezone.now().astimezone(UTC).date()
        limits = {"min": today.isoformat(), "max": (today + timedelta(days=MOST_WAIVER_DAYS)).isoformat()}
        self.fields["expires_at"].widget.attrs |= limits

    def until(self) -> datetime | None:
        """The last moment of the day that was chosen, for a waiver; else None."""
        asked = self.cleaned_data.get("expires_at")
        if asked is None or self.cleaned_data["decision"] != "waive":
            return None
        return datetime.combine(asked, time(23, 59, 59), tzinfo=UTC)


def sign_form(report: ReleaseReport, **initial: Any) -> SignForm:
    """An empty form on the verdict that is shown, with what was already written where there is something."""
    read = {"input_digest": report.input_digest, "read_at": report.row.decided_at and report.row.decided_at.isoformat()}
    return SignForm(verdict=report.row.verdict, initial=initial | read)


def read_at(text: str) -> datetime | None:
    """When the verdict was decided that somebody read; nonsense reads as not known."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else None


class SettleForm(PlainForm):
    """The budget that a person confirms: the very numbers of the plan that was on the page."""

    look = forms.IntegerField(widget=forms.HiddenInput)
    n_responses = forms.IntegerField(widget=forms.HiddenInput)


class RerunForm(PlainForm):
    """Running one side again: the whole suite, or the reference set first."""

    what = forms.ChoiceField(widget=forms.RadioSelect, label="What to run")
    endpoint = forms.ChoiceField(label="Where")

    def __init__(self, *args: Any, whats: Iterable[tuple[str, str]], endpoints: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["what"].choices = list(whats)  # type: ignore[attr-defined]
        self.fields["endpoint"].choices = [(slug, slug) for slug in endpoints]  # type: ignore[attr-defined]
