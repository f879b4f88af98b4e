"""What people fill in to make a suite, and to set a baseline."""

from collections.abc import Sequence
from typing import Any

from django import forms

from evalboard.contract.catalogue import Endpoint
from evalboard.contract.suite import OwnScorer
from evalboard.contract.suite_limits import MAX_TITLE_CHARS, MAX_TOKENS
from evalboard.core.errors import InvalidInput
from evalboard.core.scoring import EXAMPLES, JUDGE
from evalboard.core.suite import COLUMNS, SuiteText, decode_suite, read_suite_text
from evalboard.logged.suites import slug_of
from frontend.shell.forms import CodeText, JSONText, PlainForm, endpoint_choices
from frontend.shell.lists import parse_number
from frontend.templatetags.numbers import points
from runs.suites import mapping_names, shipped_mapping

MAX_BYTES = 16 * 2**20  # what the command line sends in one piece as well
UNNAMED = "my-suite"
PLACEHOLDER = "prompt,target\nWhat is the capital of Norway?,Oslo\nWhat is 12 + 30?,42"


class ScorerForm(PlainForm):
    """A scorer to try on a run: one of a team that a worker has, or a kind of ours."""

    scorer = forms.ChoiceField()
    options = JSONText(
        required=False,
        label="Its options",
        widget=forms.TextInput(attrs={"placeholder": '{"pass_at": 0.6}'}),
        help_text="JSON. Without them the scorer has its defaults.",
    )

    def __init__(self, *args: Any, there: Sequence[OwnScorer], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._specs: dict[str, dict[str, Any]] = {
            f"{each.kind} {each.name} {each.digest[:8]}": {
                "kind": each.kind,
                "name": each.name,
                "digest": each.digest,
            }
            for each in there
        }
        self._specs |= {kind: {"kind": kind} for kind in (*EXAMPLES, JUDGE.name)}
        choices: dict[str, Any] = self.fields
        choices["scorer"].choices = [(name, name) for name in self._specs]

    def spec(self) -> dict[str, Any]:
        """Return the scorer that was chosen. The form is valid."""
        return {**(self.cleaned_data["options"] or {}), **self._specs[self.cleaned_data["scorer"]]}


class SuiteForm(PlainForm):
    """The form of a suite, which is read again each time it is sent; only saving stores anything."""

    file = forms.FileField(required=False, label="Or choose a file", help_text="At most 16 MiB.")
    text = CodeText(
        required=False,
        strip=False,
        label="Paste the cases",
        help_text="CSV with a line that names the columns, JSONL with a case per line, or a JSON document.",
        widget=forms.Textarea(attrs={"rows": 10, "class": "mono", "placeholder": PLACEHOLDER}),
    )
    scorer = forms.ChoiceField(choices=[(kind, kind) for kind in EXAMPLES], initial="contains")
    options = JSONText(
        required=False,
        label="Its options",
        widget=forms.TextInput(attrs={"placeholder": '{"normalise": {"case": "fold"}}'}),
        help_text="JSON. Without them the scorer has its defaults.",
    )
    slug = forms.CharField(
        required=False,
        max_length=80,
        label="Name",
    )
    title = forms.CharField(required=False, max_length=MAX_TITLE_CHARS, help_text="For people. Empty: the name.")
    max_tokens = forms.IntegerField(
        required=False, min_value=1, max_value=MAX_TOKENS, label="Longest answer", help_text="In tokens. Empty: 256."
    )
    mapping = forms.ChoiceField(
        required=False, label="Format of another tool", help_text="The tool that wrote the JSONL."
    )
    endpoint = forms.ChoiceField(required=False)
    case = forms.CharField(required=False, max_length=200, widget=forms.Select)

    def __init__(self, *args: Any, endpoints: Sequence[Endpoint], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices: dict[str, Any] = self.fields
        choices["mapping"].choices = [("", "none"), *((name, name) for name in mapping_names())]
        choices["endpoint"].choices = endpoint_choices(endpoints)

    def clean_file(self) -> Any:
        """Put a file's text in place of what was pasted, so that it is there when the form is sent again."""
        file = self.cleaned_data["file"]
        if file is not None:
            if (file.size or 0) > MAX_BYTES:
                raise forms.ValidationError("It has more than 16 MiB. Send it with: evalboard suite push FILE")
            try:
                self._keep(text=decode_suite(file.read()))
            except InvalidInput as problem:
                raise forms.ValidationError(problem.detail) from None
            stem = (file.name or "").rpartition(".")[0]
            self._keep(slug=self.data.get("slug") or slug_of(stem))
        return file

    def clean_text(self) -> str:
        text = str(self.data.get("text", ""))
        if not text.strip() and not self.errors:
            raise forms.ValidationError("Choose a file, or paste the cases here.")
        return text

    @property
    def head(self) -> str:
        """Return the first line, which the choice of columns belongs to."""
        return str(self.data.get("text", "")).split("\n", 1)[0].strip()

    def newest(self, slug: str) -> int | None:
        """Return the number of the suite's newest version when it was previewed; None if another was, or none."""
        previewed, _, text = str(self.data.get("previewed", "")).rpartition(" ")
        number = parse_number(text)
        return None if number is None or previewed != slug else number - 1

    def read(self) -> SuiteText:
        """Read the suite as it was filled in. Raises InvalidInput."""
        given = self.cleaned_data
        chosen = {name: self.data[f"column_{name}"] for name in COLUMNS if f"column_{name}" in self.data}
        read = read_suite_text(
            given["text"],
            slug=UNNAMED,
            title=given["title"],
            scorer={"kind": given["scorer"], **given["options"]},
            columns=chosen if self.data.get("columns_of") == self.head else {},
            mapping=shipped_mapping(given["mapping"]) if given["mapping"] else None,
        )
        document = read.document
        document["slug"] = self.data.get("slug", "").strip() or document["slug"]
        if given["max_tokens"]:
            document["max_tokens"] = given["max_tokens"]
        if document["slug"] != UNNAMED:
            self._keep(slug=document["slug"])
        return read

    def _keep(self, **values: str) -> None:
        data: Any = self.data.copy()  # type: ignore[attr-defined]
        for name, value in values.items():
            data[name] = value
        self.data = data


class BaselineForm(PlainForm):
    """The form of a baseline. `runs` are offered; for others the service explains a refusal."""

    run = forms.IntegerField(min_value=1, widget=forms.Select)
    reason = forms.CharField(
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="The reason: what was released, or why the previous baseline is outdated.",
    )

    def __init__(self, *args: Any, runs: Any = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [
            (str(point.run_id), f"run {point.run_id}: {points(point.mean)} on {point.endpoint}, {point.profile_name}")
            for point in runs
        ]
        chosen = self.data.get("run", "")
        if chosen.isdigit() and chosen not in dict(choices):
            choices.append((chosen, f"run {chosen}"))
        self.fields["run"].widget.choices = choices
