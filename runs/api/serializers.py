"""The shape of what is sent; what it means is for the services to check."""

import re
from datetime import datetime
from typing import Any

from rest_framework import serializers

from evalboard.core.draws import MAX_SEED
from runs.access import SCOPES
from runs.services.webhooks import EVENTS

ID = re.compile(r"[0-9]{1,18}", re.ASCII)  # below 2**63
MAX_GATES = 50


class Strict(serializers.Serializer[Any]):
    """Refuses fields that it does not know, by name."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and (unknown := sorted(data.keys() - self.fields.keys())):
            known = ", ".join(self.fields)
            raise serializers.ValidationError(dict.fromkeys(unknown, f"Unknown field; known are: {known}."))
        return super().to_internal_value(data)


class Text(serializers.CharField):
    """Text as it was sent: not trimmed, and no number made into text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Whole(serializers.IntegerField):
    """A whole number; text that looks like one is refused."""

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return super().to_internal_value(data)


class Object(serializers.Field[Any, Any, Any, Any]):
    """A JSON object, whatever it holds."""

    default_error_messages = {"invalid": "Must be an object."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("invalid")
        return data


class Id(serializers.Field[Any, Any, Any, Any]):
    """An id as the API gives it, a string of digits; a number is taken too."""

    default_error_messages = {"invalid": "Must be an id."}

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, int) and not isinstance(data, bool):
            data = str(data)
        if not isinstance(data, str) or not ID.fullmatch(data):
            self.fail("invalid")
        return int(data)


class IdOrCurrent(Id):
    """A run, or the suite's current baseline."""

    default_error_messages = {"invalid": 'Must be a run\'s id, or "current".'}

    def to_internal_value(self, data: Any) -> Any:
        return data if data == "current" else super().to_internal_value(data)


class Instant(serializers.DateTimeField):
    """RFC 3339; a time without its offset is refused, because nobody can say which zone was meant."""

    default_error_messages = {"naive": "Must say its offset from UTC, as in 2026-12-24T18:00:00Z."}

    def enforce_timezone(self, value: datetime) -> datetime:
        if value.tzinfo is None:
            self.fail("naive")
        return super().enforce_timezone(value)


class ModelIn(Strict):
    path = Text(required=False)
    repo = Text(required=False)
    revision = Text(required=False)


class RunIn(Strict):
    suite = Text()
    suite_version = Whole(required=False, min_value=1)
    endpoint = Text()
    profile = Text()
    repeats = Whole(default=5)
    seed = Whole(required=False, min_value=0, max_value=MAX_SEED)
    model = ModelIn(required=False)
    labels = Object(required=False)


class Nothing(Strict):
    """The body of a call that takes none: empty, or an object without fields."""


class RepeatsIn(Strict):
    n = Whole()


class RescoreIn(Strict):
    scorer = Object(required=False)
    cases = Object(required=False)


class ReplayIn(Strict):
    case = Text()
    repeat = Whole(required=False, min_value=1)
    batch_sizes = serializers.ListField(child=Whole(), required=False)
    dtypes = serializers.ListField(child=Text(), required=False)
    neighbours = Whole(required=False)


class ProbeIn(Strict):
    endpoint = Text()
    kind = Text()
    profile = Text(default=None, allow_null=False)
    parameters = Object(default=dict)


class EndpointIn(Strict):
    slug = Text()
    engine = Text(required=False)
    model = ModelIn()
    dtype = Text()
    quantization = Text(required=False, allow_blank=True)
    line = Text()
    max_model_len = Whole(required=False)
    pool = Text(required=False)


class ProfileIn(Strict):
    slug = Text()
    title = Text(required=False, allow_blank=True, default="", max_length=200)
    settings = Object()


class PolicyIn(Strict):
    slug = Text()
    title = Text(required=False, allow_blank=True, default="", max_length=200)
    settings = Object()


class SameModelIn(Strict):
    name = Text()
    other_name = Text()
    reason = Text()


class BaselineIn(Strict):
    run = Id()
    reason = Text()


class GateIn(Strict):
    suite = Text()
    candidate = Id()
    baseline = IdOrCurrent(default="current")
    tier = serializers.ChoiceField(["critical", "advisory"], default="critical")


class ReleaseIn(Strict):
    """One suite's fields, or `gates` with those of several."""

    suite = Text(required=False)
    candidate = Id(required=False)
    baseline = IdOrCurrent(required=False)
    gates = serializers.ListField(child=GateIn(), required=False, allow_empty=False, max_length=MAX_GATES)
    policy = Text(required=False)
    treatment = serializers.ChoiceField(["model", "stack"], default="model")
    labels = Object(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """What services.create_release takes: the gates as one list."""
        single = {name: attrs.pop(name) for name in ("suite", "candidate", "baseline") if name in attrs}
        if "gates" in attrs:
            if single:
                raise serializers.ValidationError(dict.fromkeys(single, "Give it within each of the gates."))
            return attrs
        missing = [name for name in ("suite", "candidate") if name not in single]
        if missing:
            raise serializers.ValidationError(dict.fromkeys(missing, "Must be given, unless `gates` are."))
        return {**attrs, "gates": [{"baseline": "current", "tier": "critical", **single}]}


class SignOffIn(Strict):
    decision = serializers.ChoiceField(["approve", "reject", "waive"])
    note = Text(required=False, allow_blank=True, default="")
    expires_at = Instant(required=False)
    input_digest = Text()


class SettleIn(Strict):
    """The numbers of the plan that were agreed to."""

    look = Whole(min_value=1)
    n_responses = Whole(min_value=1)


class TokenIn(Strict):
    name = Text()
    scopes = serializers.ListField(child=serializers.ChoiceField(SCOPES))
    expires_at = Instant()


class WebhookIn(Strict):
    url = Text()
    events = serializers.ListField(child=serializers.ChoiceField(list(EVENTS)))
