"""What people fill in to describe what may be run, how, and by which rule it is judged."""

from collections.abc import Sequence
from typing import Any

from django import forms

from evalboard.contract.catalogue import Endpoint
from evalboard.core.cost import parse_price
from evalboard.wording.probe_states import DAILY_CHECK_COST
from frontend.shell.forms import CodeText, JSONText, NameText, PlainForm, endpoint_choices
from frontend.templatetags.drawing import as_json
from runs.models import EndpointRecord

ENDPOINT_FIELDS = {"model": "model_path", "model.path": "model_path", "model.repo": "model_repo"}
ENDPOINT_FIELDS |= {"model.revision": "model_revision", "model.adapter": "model_adapter"}
REMOTE_FIELDS = {"model.name": "model_name"}
COPIED = ("base_url", "auth", "api", "line", "concurrency", "calls_per_minute", "pool", "reference", "bypass")


class HeaderLines(CodeText):
    """Headers typed one a line: a constant, or $VARIABLE."""

    def clean(self, value: Any) -> dict[str, str | dict[str, str]]:
        headers: dict[str, str | dict[str, str]] = {}
        for line in super().clean(value).splitlines():
            name, colon, text = (part.strip() for part in line.partition(":"))
            if not line.strip():
                continue
            if not colon or not name or not text:
                raise forms.ValidationError("Write each as Name: value, one a line.")  # not repeated: it may be a key
            headers[name] = {"env": text[1:]} if text.startswith("$") else text
        return headers


class PriceText(CodeText):
    """A price as `evalboard endpoint set --price` takes it; None if blank."""

    def clean(self, value: Any) -> dict[str, str] | None:
        text = super().clean(value).strip()
        return parse_price(text) if text else None


def remote_fields(base: Endpoint) -> dict[str, Any]:
    """Return the form's fields filled in from an external endpoint, without its name."""
    headers = (base.headers or {}).items()
    lines = [f"{name}: {text if isinstance(text, str) else f'${text.env}'}" for name, text in headers]
    price = base.price.to_json() if base.price else {}
    return {
        **{name: getattr(base, name) for name in COPIED},
        "price": ",".join(f"{name}={value}" for name, value in price.items() if value is not None),
        "model_name": base.model.address,
        "headers": "\n".join(lines),
        "extra_body": as_json(base.extra_body) if base.extra_body else "",
    }


class SecretSource(CodeText):
    """Where a worker finds a secret: a variable's name or a path, never the secret."""

    def __init__(self, *, placeholder: str, **options: Any) -> None:
        box = forms.TextInput(attrs={"placeholder": placeholder, "autocomplete": "off"})
        super().__init__(required=False, max_length=200, widget=box, **options)


class EndpointForm(PlainForm):
    slug = NameText()
    model_path = forms.CharField(
        required=False, max_length=500, help_text="A folder on the worker, or s3://bucket/prefix, or:"
    )
    model_repo = forms.CharField(required=False, max_length=200, label="Model repository", help_text="owner/name")
    model_revision = forms.CharField(required=False, max_length=100, help_text="A full commit of the repository.")
    auth = SecretSource(
        placeholder="HUB_API_KEY",
        label="Source of the hub's token",
        help_text="For a private repository of model or adapter: the name of an environment variable of the worker "
        "that EVALBOARD_ENDPOINT_KEYS allows. Never the token itself.",
    )
    model_adapter = forms.CharField(
        required=False,
        max_length=500,
        label="LoRA adapter",
        help_text="A folder on the worker as PEFT saves an adapter, s3://bucket/prefix, or owner/name@commit. "
        "Blank: the model alone.",
    )
    dtype = forms.ChoiceField(choices=[(name, name) for name in ("float32", "bfloat16", "float16")])
    quantization = forms.CharField(required=False, max_length=40)
    line = forms.CharField(
        max_length=80,
        label="Model line",
        help_text="The series of the model, such as a fine-tune's name without its date.",
    )
    max_model_len = forms.IntegerField(
        min_value=16, initial=2048, label="Maximum length of prompt and answer, in tokens"
    )
    tensor_parallel_size = forms.IntegerField(
        required=False,
        min_value=1,
        initial=1,
        label="Tensor parallel size",
        help_text="GPUs that share each layer.",
    )
    pipeline_parallel_size = forms.IntegerField(
        required=False,
        min_value=1,
        initial=1,
        label="Pipeline parallel size",
        help_text="Groups of GPUs with a part of the layers each. A worker needs the product of both sizes.",
    )
    pool = forms.CharField(max_length=40, initial="default", help_text="The pool of workers that serve it.")


class RemoteEndpointForm(PlainForm):
    """An external server."""

    slug = NameText()
    base_url = forms.CharField(
        max_length=500,
        label="Address",
        widget=forms.TextInput(attrs={"placeholder": "https://api.example.com/v1", "inputmode": "url"}),
        help_text="The base address of calls. The setting EVALBOARD_ENDPOINT_HOSTS must allow its host.",
    )
    model_name = forms.CharField(max_length=200, label="Model", help_text="As the server names it.")
    auth = SecretSource(
        placeholder="OPENAI_API_KEY",
        label="Source of the key",
        help_text="The name of an environment variable of the worker, or an absolute path. Never the key itself. "
        "The setting EVALBOARD_ENDPOINT_KEYS must allow the name; *_API_KEY is allowed by default.",
    )
    api = forms.ChoiceField(
        label="API", choices=EndpointRecord.Api.choices, help_text="The OpenAI API that the server offers."
    )
    line = forms.CharField(
        required=False,
        max_length=80,
        label="Model line",
        help_text="A name for all versions of this model. Blank: the model's name.",
    )
    concurrency = forms.IntegerField(min_value=1, max_value=64, initial=8, label="Calls in flight")
    calls_per_minute = forms.IntegerField(
        min_value=1, required=False, label="Calls per minute", help_text="Over all workers. Blank: no limit."
    )
    pool = forms.CharField(max_length=40, initial="default", help_text="The pool of workers that make the calls.")
    price = PriceText(
        required=False,
        max_length=200,
        label="Price of a million tokens",
        widget=forms.TextInput(attrs={"placeholder": "input=2.50,output=10,currency=USD"}),
        help_text="input and output, and where they differ cached and reasoning. Blank: not known.",
    )
    headers = HeaderLines(
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        label="Headers",
        help_text="One per line: Name: value. For a secret, name a worker's variable: Name: $VARIABLE.",
    )
    extra_body = JSONText(
        required=False,
        empty_value="{}",
        widget=forms.Textarea(attrs={"rows": 2}),
        label="Extra body fields (JSON)",
        help_text='Such as {"provider": {"allow_fallbacks": false}}.',
    )
    reference = forms.ChoiceField(
        required=False,
        label="Own endpoint with the same weights",
        help_text="Checks compare the server's answers with it.",
    )
    bypass = forms.ChoiceField(
        required=False,
        label="Without the gateway",
        help_text="For a gateway: the endpoint that reaches the model directly.",
    )
    rescores = forms.BooleanField(
        required=False,
        label="After a rotation, run its baselines' reference sets",
        help_text="The cases that a suite marks as reference, or its first 200. This makes calls automatically.",
    )
    daily_check = forms.BooleanField(
        required=False,
        label="Check daily which parameters it honours",
        help_text=f"{DAILY_CHECK_COST} It starts with the endpoint's first run or probe, under the name of the person "
        "who starts that.",
    )

    def __init__(self, *args: Any, endpoints: Sequence[Endpoint], **kwargs: Any) -> None:
        """Build the form. endpoints: all, from which reference and bypass are chosen."""
        super().__init__(*args, **kwargs)
        for field, engine in (("reference", EndpointRecord.Engine.VLLM), ("bypass", EndpointRecord.Engine.OPENAI)):
            self.fields[field].choices = [("", "none"), *endpoint_choices(endpoints, engine)]  # type: ignore[attr-defined]


class PolicyForm(PlainForm):
    slug = NameText(help_text="The same name with other settings makes a new version.")
    title = forms.CharField(max_length=200)
    settings = JSONText(
        widget=forms.Textarea(attrs={"rows": 9}),
        label="Settings as JSON",
        help_text="rule: strict or paired. tolerance, guard: in points. looks: 5, 10, 20 or 3, 10, 20.",
    )


class SameModelForm(PlainForm):
    name = forms.ChoiceField(label="This name")
    other_name = forms.ChoiceField(label="and this name")
    reason = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 2}),
        label="Reason",
        help_text="Stored with your name and the time, even if withdrawn later.",
    )

    def __init__(self, *args: Any, names: Sequence[str], **kwargs: Any) -> None:
        """`names` are those that logs gave."""
        super().__init__(*args, **kwargs)
        for field in ("name", "other_name"):
            self.fields[field].choices = [(name, name) for name in names]  # type: ignore[attr-defined]
        self.fields["other_name"].initial = names[-1] if names else None


class ProfileForm(PlainForm):
    slug = NameText(help_text="The same name with other settings makes a new version.")
    title = forms.CharField(max_length=200)
    settings = JSONText(widget=forms.Textarea(attrs={"rows": 12}), label="Settings as JSON")
