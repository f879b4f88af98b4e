"""The files of a scorer to begin with: a package with its test, or a program."""

import re
from pathlib import Path

PROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "0.1"

[project.entry-points."evalboard.scorers"]
"{name}" = "{module}:score"

[tool.setuptools]
py-modules = ["{module}"]
"""
MODULE = '''\
"""An answer is right if it is a target, whatever its case and spaces."""

from evalboard.scorers import Case, Response, Score


def score(case: Case, response: Response) -> Score:
    targets = case.target if isinstance(case.target, list) else [case.target]
    answer = fold(response.text)
    if answer in [fold(target) for target in targets]:
        return Score(1.0, "It is the target.", answer)
    return Score(0.0, f"Expected {targets[0]!r}, got {response.text!r}.", answer)


def fold(text: object) -> str:
    return " ".join(str(text).split()).casefold()
'''
TEST = """\
from evalboard.scorers import Case, Response
from {module} import score


def test_case_and_spaces_do_not_count():
    assert score(Case("town", target="New York"), Response(" new  york\\n")).value == 1


def test_another_answer_is_wrong_and_says_why():
    given = score(Case("town", target="Oslo"), Response("Bergen"))
    assert (given.value, given.reason) == (0, "Expected 'Oslo', got 'Bergen'.")
"""
PROGRAM = '''\
#!/usr/bin/env python3
"""An answer is right if it is a target, whatever its case and spaces. A line in, a line out."""

import json
import sys


def fold(text):
    return " ".join(str(text).split()).casefold()


for line in sys.stdin:
    sent = json.loads(line)
    target, text = sent["case"]["target"], sent["response"]["text"]
    targets = target if isinstance(target, list) else [target]
    is_right = fold(text) in [fold(each) for each in targets]
    reason = "It is the target." if is_right else f"Expected {targets[0]!r}, got {text!r}."
    reply = {"id": sent["id"], "value": float(is_right), "reason": reason, "answer": fold(text)}
    print(json.dumps(reply), flush=True)
'''


def write_package(folder: Path) -> list[Path]:
    """Write a package into a new folder, whose name is the scorer's; return its files."""
    module = f"{re.sub('[^a-z0-9]+', '_', folder.name.lower())}_scorer"
    module = module if not module[0].isdigit() else f"scorer_{module}"
    texts = {"pyproject.toml": PROJECT, f"{module}.py": MODULE, f"test_{module}.py": TEST}
    folder.mkdir()
    for name, text in texts.items():
        own = text.replace("{name}", folder.name).replace("{module}", module)
        (folder / name).write_text(own, encoding="utf-8")
    return [folder / name for name in texts]


def write_program(path: Path) -> Path:
    """Write a program that may be run."""
    path.write_text(PROGRAM, encoding="utf-8")
    path.chmod(0o755)
    return path
