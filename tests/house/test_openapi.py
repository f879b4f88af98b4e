"""docs/openapi.yaml is what the code says; describing a call wrongly ends `make check`; every call can be tried."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from drf_spectacular import drainage
from drf_spectacular.management.commands.spectacular import SchemaGenerationError
from drf_spectacular.renderers import OpenApiYamlRenderer

from evalboard.contract.base import Page, says
from runs.api import schema
from runs.api.schema_types import schema_of
from runs.run import api as run_api

ROOT = Path(__file__).resolve().parents[2]


def test_the_kept_schema_is_the_codes():
    kept = (ROOT / "docs" / "openapi.yaml").read_text()
    made = OpenApiYamlRenderer().render(schema.document(), renderer_context={}).decode()
    assert made == kept, "`python tools/openapi.py --write` writes it anew"


def test_every_call_says_its_scope_and_its_failures():
    for path, methods in schema.document()["paths"].items():
        for call in methods.values():
            assert {"400", "default"} <= call["responses"].keys(), path
            scopes = {scope for kind in call["security"] for scopes in kind.values() for scope in scopes}
            assert len(scopes) == (1 if call["security"] else 0), path
            if scopes:
                assert {"401", "403", "429"} <= call["responses"].keys(), path


def test_the_names_of_calls_are_unique():
    names = [call["operationId"] for methods in schema.document()["paths"].values() for call in methods.values()]
    assert len(names) == len(set(names))


def test_a_call_that_is_not_described_ends_the_check(monkeypatch, capsys):
    monkeypatch.setattr(run_api.cancel.cls, "described", {})
    try:
        with pytest.raises(SchemaGenerationError):
            call_command("spectacular", "--fail-on-warn", stdout=StringIO())
    finally:
        drainage.reset_generator_stats()
    assert "POST /api/v1/runs/{run_id}/cancel/ is not described" in capsys.readouterr().err


def nobody(found: type) -> dict[str, object]:
    raise AssertionError(found)


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        (str, {"type": "string"}),
        (int | None, {"type": ["integer", "null"]}),
        (list[float], {"type": "array", "items": {"type": "number"}}),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (str | int, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
    ],
)
def test_types_are_said_as_schemas(hint: object, said: dict[str, object]):
    assert schema_of(hint, nobody) == said


def test_a_page_says_what_its_rows_are():
    found = schema_of(Page[int], nobody)
    assert found["properties"]["results"] == {"type": "array", "items": {"type": "integer"}}
    assert found["required"] == ["next", "previous", "results"]


def test_what_json_has_not_is_refused():
    with pytest.raises(TypeError, match="no word for"):
        schema_of(set[str], nobody)
    assert says(enum=["a"]) == (("enum", ("a",)),)
