"""The documents know every record, and no word stands twice for one thing."""

import re
from pathlib import Path

import pytest
from django.apps import apps

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()


@pytest.mark.parametrize("model", [model.__name__ for model in apps.get_app_config("runs").get_models()])
def test_every_record_is_a_word_of_the_glossary(model: str) -> None:
    word = re.sub(r"(?<!^)(?=[A-Z])", "[ -]", model).lower()
    assert re.search(rf"\*\*{word}\*\*", GLOSSARY)


def test_every_decision_is_numbered_once() -> None:
    numbers = [path.name[:4] for path in sorted((ROOT / "docs" / "decisions").glob("*.md"))]
    assert numbers == [f"{number:04d}" for number in range(1, len(numbers) + 1)]
