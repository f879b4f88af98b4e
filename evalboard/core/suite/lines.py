"""Write a stored suite version as JSONL that `read_suite_jsonl` parses to the same digest."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evalboard.contract.suite_limits import MAX_CASES
from evalboard.core.digest import digest_json
from evalboard.core.document import Problems
from evalboard.core.scoring import KINDS
from evalboard.core.suite.suite import (
    CaseDocument,
    SuiteHead,
    digest_suite,
    read_case,
    read_head,
    read_header,
    read_lines,
    write_prompt,
)

Spec = Mapping[str, Any]


def dump_header(*, title: str, max_tokens: int, stop: list[str], scorer: Spec | None) -> dict[str, Any]:
    """Return the first line."""
    own = {} if scorer is None else {"scorer": scorer}
    return {"suite": {"title": title, "max_tokens": max_tokens, "stop": stop, **own}}


def dump_case(
    *,
    case_id: str,
    content: Mapping[str, Any],
    tags: list[str],
    group: str,
    is_reference: bool,
    scorer: Spec | None,
    default: Spec | None,
    digest: str,
) -> dict[str, Any]:
    """Return one case as JSON. `scorer`: its own in the scoring plan; `default`: the suite's.

    A plan keeps no scorer that is the suite's default too, but the digest covers it where the case named it.
    """
    named = {"id": case_id, "messages": content["messages"], "tools": content.get("tools"), "target": content["target"]}
    covered = {**named, "tags": tags, "group": group, "is_reference": is_reference}
    own_input = {"input": content["input"]} if "input" in content else {}
    if scorer is None and digest_json({**covered, **own_input, "scorer": None}) != digest:
        scorer = default
    used = scorer or default
    is_target_left_out = content["target"] is None and not (used and KINDS[used["kind"]].needs_target(used))
    optional = {"tools": content.get("tools"), "scorer": scorer, "tags": tags, "group": group}
    return {
        "id": case_id,
        **write_prompt(content["messages"]),
        **own_input,
        **({} if is_target_left_out else {"target": content["target"]}),
        **{name: value for name, value in optional.items() if value},
        **({"reference": True} if is_reference else {}),
    }


INVALID = "The suite is not valid"


@dataclass(frozen=True, slots=True)
class PartOfSuite:
    """The content of some lines of a suite's JSONL. header: of the suite, if they start with it."""

    n_lines: int
    header: dict[str, Any]
    cases: tuple[CaseDocument, ...]


def parse_head(header: Mapping[str, Any], *, slug: str, title: str = "") -> SuiteHead:
    """Return the suite without its cases. Raises InvalidInput. header: that of its JSONL."""
    problems = Problems()
    named = {"slug": slug, "title": title or header.get("title", slug)}
    head = read_head({**header, **named}, problems)
    problems.raise_if_any(INVALID)
    return head


def parse_part(
    text: str, *, header: Mapping[str, Any], slug: str, title: str = "", n_lines: int = 0, n_cases: int = 0
) -> PartOfSuite:
    """Parse whole lines that follow `n_lines` lines with `n_cases` cases.

    header: the first line's, for later parts. Raises InvalidInput whose `fields` name up to 20 wrong places by line:
    `line 17.target`. The caller checks for ids that an earlier part has.
    """
    problems = Problems()
    rows = read_lines(text, problems, first=n_lines + 1)
    own: Mapping[str, Any] = header
    if n_lines == 0 and rows and rows[0][1].keys() == {"suite"}:
        own = read_header(rows.pop(0)[1]["suite"], problems)
    problems.raise_if_any(INVALID)
    head = parse_head(own, slug=slug, title=title)
    if n_cases + len(rows) > MAX_CASES:
        problems.add(f"line {rows[MAX_CASES - n_cases][0]}", f"is case {MAX_CASES + 1:,}; the most is {MAX_CASES:,}")
        problems.raise_if_any(INVALID)
    cases: list[CaseDocument] = []
    first_at: dict[str, int] = {}
    for index, (number, row) in enumerate(rows, start=n_cases):
        if problems.is_full:
            break
        case = read_case(row, index, head.scorer, problems, path=f"line {number}")
        if case is None:
            continue
        if case.id in first_at:
            problems.add(f"line {number}.id", f"is the id of line {first_at[case.id]} too")
        first_at.setdefault(case.id, number)
        cases.append(case)
    problems.raise_if_any(INVALID)
    return PartOfSuite(text.count("\n"), dict(own), tuple(cases))


def digest_parts(head: SuiteHead, case_digests: Iterable[str]) -> str:
    """Return the digest that the suite has as a whole, from the digests of its cases in order."""
    return digest_suite(head, list(case_digests))
