"""Say when each kind of scorer passes, with an example. A test compares them with docs/suites.md."""

import json
from collections.abc import Mapping
from typing import Any

_LINES = r"""
{"scorer": {"kind": "contains", "words": true, "normalise": {"case": "fold"}}, "target": ["Fibre", "Fiber"], "right": "It is dietary fiber.", "wrong": "Fibreglass"}
{"scorer": {"kind": "exact", "part": "first_word", "normalise": {"case": "fold", "punctuation": "strip"}}, "target": "Yes", "right": "**yes**, it is heavier", "wrong": "Well, yes"}
{"scorer": {"kind": "number", "which": "last", "relative": 0.01}, "target": 1200, "right": "3 times 400 is 1,205", "wrong": "1,205, which is 3 times 400"}
{"scorer": {"kind": "choice", "letters": "ABC"}, "target": "B", "right": "The answer is (B).", "wrong": "A) plum"}
{"scorer": {"kind": "regex", "pattern": "answer: (\\w+)", "group": 1}, "target": "Oslo", "right": "I think the answer: Oslo.", "wrong": "Oslo"}
{"scorer": {"kind": "json", "mode": "subset", "extract": "fence"}, "target": {"age": 51}, "right": "```json\n{\"name\": \"Ravi\", \"age\": 51}\n```", "wrong": "{\"age\": \"51\"}"}
{"scorer": {"kind": "tool_calls", "normalise": {"case": "fold"}}, "target": {"name": "heat", "arguments": {"town": ["Oslo"], "degrees": [21, 21.5]}}, "right": "[{\"name\": \"heat\", \"arguments\": {\"town\": \"oslo\", \"degrees\": 21}}]", "wrong": "[{\"name\": \"heat\", \"arguments\": {\"town\": \"oslo\"}}]"}
"""  # noqa: E501  as JSON, one a line
PASSES: Mapping[str, str] = {
    "exact": "the answer is the target",
    "contains": "the target occurs in the answer",
    "regex": "a pattern matches, or the group it captures is the target",
    "number": "a number in the answer is the target, within a tolerance",
    "choice": "the letter chosen is the target",
    "json": "the answer is JSON, fits a schema, holds or equals the target",
    "tool_calls": "the calls in the answer are the accepted ones",
    "python": "a function of your own says so",
    "command": "a program of your own says so",
    "http": "a service of your own says so",
    "judge": "a model that judges says so",
    "recorded": "another tool said so in its log",
}
# By kind: a scorer, a target, an answer that is right and one that is wrong.
EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    example["scorer"]["kind"]: example for example in map(json.loads, _LINES.split("\n")[1:-1])
}
