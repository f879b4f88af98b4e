"""The shape of what is sent; what it means is for the services to check."""

from typing import Any

from rest_framework import serializers


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
    model = ModelIn(required=False)
    labels = Object(required=False)


class RepeatsIn(Strict):
    n = Whole()


class RescoreIn(Strict):
    scorer = Object(required=False)
    cases = Object(required=False)


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
