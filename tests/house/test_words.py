"""The documents know every record, no word stands twice for one thing, and names are words of the field."""

import re
import tomllib
from pathlib import Path

import pytest
from django.apps import apps

from evalboard.wording.terms import TERMS
from tools.words import (
    MAX_FIRST_LINE,
    MAX_GOLDEN_WORDS,
    MAX_WORDS,
    banned_names,
    is_dialect,
    unplain_docstrings,
    unplain_golden,
    unplain_sentences,
    unplain_texts,
)

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
TABLES = list(apps.get_app_config("runs").get_models())
LINKS = {field.remote_field.through for model in TABLES for field in model._meta.local_many_to_many}
MODELS = [model for model in TABLES if model not in LINKS]


@pytest.mark.parametrize("model", [model.__name__ for model in MODELS])
def test_every_record_is_a_word_of_the_glossary(model: str) -> None:
    word = re.sub(r"(?<!^)(?=[A-Z])", "[ -]", model.removesuffix("Record")).lower()
    assert re.search(rf"\*\*{word}\*\*", GLOSSARY)


def test_no_word_is_defined_twice() -> None:
    """In a row of its own, or within that of another word."""
    words = re.findall(r"\*\*(.+?)\*\*", " ".join(re.findall(r"^\|.*\|$", GLOSSARY, re.MULTILINE)))
    assert sorted(word for word in set(words) if words.count(word) > 1) == []


@pytest.mark.parametrize("term", TERMS)
def test_a_page_explains_a_term_as_the_glossary_begins(term: str) -> None:
    rows = re.findall(rf"^\|(?=[^|]*\*\*{term}\*\*)[^|]*\| (.*) \|$", GLOSSARY, re.MULTILINE | re.IGNORECASE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"[*`]", "", row)) for row in rows]
    assert any(row.startswith(TERMS[term]) for row in plain)
    assert len(TERMS[term].split()) <= 20


def test_the_page_of_the_architecture_has_every_record_with_its_module() -> None:
    _, records = ARCHITECTURE.split("\n## Records\n")
    listed = re.findall(r"`(\w+)`: ((?:`\w+`(?:, )?)+)", records.partition("\n## ")[0])
    found = {(module, name) for module, names in listed for name in re.findall(r"\w+", names)}
    assert found == {(model.__module__.rpartition(".")[2], model.__name__) for model in MODELS}


def test_the_page_of_the_architecture_has_the_order_of_the_slices() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    [contract] = [
        each for each in project["tool"]["importlinter"]["contracts"] if each["name"] == "Slices stand on lower ones"
    ]
    layers = contract["layers"]
    slices = layers[layers.index("release") : layers.index("store") + 1]
    [drawn] = re.findall(r"^runs\.<slice> +((?:.+\n)(?: .+\n)*)", ARCHITECTURE, re.M)
    assert " ".join(drawn.split()) == " > ".join(slices)


def test_every_decision_is_numbered_once() -> None:
    numbers = [path.name[:4] for path in sorted((ROOT / "docs" / "decisions").glob("*.md"))]
    assert numbers == [f"{number:04d}" for number in range(1, len(numbers) + 1)]


PLANTED = """
class Answer:
    found: int

def of_run(run):
    told, rows = run
    return [asked for asked in rows]
"""


def test_a_name_of_no_field_is_found_wherever_it_is_defined() -> None:
    assert set(banned_names(PLANTED)) == {(3, "found"), (5, "of_run"), (6, "told"), (7, "asked")}


def test_fields_of_contracts_are_called_what_clients_know() -> None:
    assert set(banned_names(PLANTED, has_fixed_fields=True)) == {(5, "of_run"), (6, "told"), (7, "asked")}


LONG = " ".join(["word"] * (MAX_WORDS + 1))
PAGE = f"""# Heading

A short sentence. **Bold one.** {LONG}.

* {LONG} in an item.

| cell | {LONG} |
| {LONG.replace(" ", "; ", 9)} | |

It was held
against another. `held against` is code, and so is this:

```
{LONG} anew
```

<!-- fields of run.Run -->
{LONG} anew
<!-- end -->
"""


def test_long_sentences_and_banned_phrases_of_a_page_are_noticed() -> None:
    faults = list(unplain_sentences(PAGE))
    assert [line for line, fault in faults if "words in one sentence" in fault] == [3, 5, 7]
    assert [line for line, fault in faults if "compared with" in fault] == [10]
    assert len(faults) == 4


TEMPLATE = f"""{{# It lies beside. #}}
<p title="{{{{ name }}}} by itself">A <b>short</b> text, {{{{ value|points }}}} points.</p>
{{% if it_stands %}}<th>Guard</th>{{% else %}}{LONG}{{% endif %}}
<!-- It rests. --><pre>It stands</pre>
"""


def test_visible_texts_of_a_template_are_plain_and_short() -> None:
    assert [fault.partition(":")[0] for _, fault in unplain_texts(TEMPLATE)] == [
        "'by itself'",
        "'Guard'",
        f"{MAX_WORDS + 1} words in one sentence",
    ]
    assert [line for line, _ in unplain_texts(TEMPLATE)] == [2, 3, 3]


def test_golden_sentences_are_short_and_plain_but_for_numbers_and_commands() -> None:
    fair = " ".join(["word"] * MAX_GOLDEN_WORDS)
    page = f"""## Runs

**A title that stands beside anything**

- run info `a`: {fair} ({fair}): evalboard run {fair}
- run info `b`: {fair} more.
- run info `c`: It came anew.

## Probes

- seed probe `c`: {fair} more.
"""
    assert [line for line, _ in unplain_golden(page)] == [6, 7, 11]


@pytest.mark.parametrize(
    ("line", "has_turn"),
    [
        ("Return the tokens beside each other.", True),
        ("Say what a server of others does not say.", True),
        ("Return the rows of a table.", False),
        ("Return the household's threshold.", False),
        ("Answer REST with `strays` (docs/divergence.md#strays).", False),
    ],
)
def test_the_dialect_is_known_by_whole_words_outside_code(line: str, has_turn: bool) -> None:
    assert is_dialect(line) is has_turn


FIRST_LINES = f'''"""Keep what stands."""

class Run:
    """{"x" * (MAX_FIRST_LINE + 1)}"""

    def score(self):
        """Return the score.

        It holds beside another.
        """
'''


def test_first_lines_of_docstrings_are_short_and_plain() -> None:
    assert [line for line, _ in unplain_docstrings(FIRST_LINES)] == [1, 4]
