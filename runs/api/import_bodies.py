"""The form that sends a log, for the call that reads it and for the schema."""

from typing import Any

from django.http import QueryDict
from rest_framework import serializers

from runs.api.serializers import Strict, Text
from runs.importers.formats import AUTO, FORMATS
from runs.uploads import MAX_FILES


class ImportIn(Strict):
    """A log's files as multipart/form-data; `suite` is the slug of one whose cases it answers."""

    files = serializers.ListField(
        child=serializers.FileField(max_length=255, allow_empty_file=True), allow_empty=False, max_length=MAX_FILES
    )
    format = serializers.ChoiceField([AUTO, *FORMATS], default=AUTO)
    suite = Text(default=None)

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, QueryDict):  # a request without a body, of whatever type
            raise serializers.ValidationError({"files": "Send the log's files as multipart/form-data."})
        twice = [name for name in ("format", "suite") if len(data.getlist(name)) > 1]
        if twice:
            raise serializers.ValidationError(dict.fromkeys(twice, "Given more than once."))
        return super().to_internal_value(data)
