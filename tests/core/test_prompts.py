"""Cases whose prompts may differ: which of them are one, and what changed in their prompts."""

import pytest

from evalboard.contract.treatments import BY_ID, BY_INPUT
from evalboard.core.compare import PromptedCase, PromptOfCase, pair_cases
from evalboard.core.compare.prompts import MAX_READ, compare_prompts, compare_words, describe_changes, shorten_alike
from evalboard.core.suite import parse_suite


def cases(*rows: tuple[str, str, str, str]) -> list[PromptedCase]:
    """id, input, target and prompt of each."""
    return [PromptedCase(index, *row) for index, row in enumerate(rows)]


OURS = cases(
    ("a", "sky", "blue", "1 sky"),
    ("b", "sea", "blue", "1 sea"),
    ("c", "sun", "red", "1 sun"),
    ("d", "yes", "no", "1 yes"),
    ("e", "yes", "no", "1 yes, again"),
    ("f", "ice", "white", "ice"),
)
THEIRS = cases(
    ("other", "sea", "blue", "2 sea"),
    ("a", "sky", "blue", "2 sky"),
    ("c", "sun", "yellow", "2 sun"),
    ("e", "yes", "no", "2 yes"),
    ("g", "yes", "no", "2 yes"),
    ("f", "ice", "white", "ice"),
    ("h", "new", "", "2 new"),
)


@pytest.mark.parametrize(
    ("pair_by", "pairs", "counts"),
    [
        (
            BY_INPUT,
            [(0, 1), (1, 0), (4, 3), (5, 5)],
            {"n_changed": 3, "n_alone_baseline": 2, "n_alone_candidate": 3, "n_other_target": 1, "n_repeated": 1},
        ),
        (
            BY_ID,
            [(0, 1), (4, 3), (5, 5)],
            {"n_changed": 2, "n_alone_baseline": 3, "n_alone_candidate": 4, "n_other_target": 1, "n_repeated": 0},
        ),
    ],
)
def test_a_case_is_one_by_input_and_target_and_by_its_id_where_others_share_both(
    pair_by: str, pairs: list[tuple[int, int]], counts: dict[str, int]
) -> None:
    paired = pair_cases(OURS, THEIRS, pair_by)
    assert list(zip(paired.baseline.tolist(), paired.candidate.tolist(), strict=True)) == pairs
    assert counts.items() <= paired.counts.items()
    assert paired.has_changed.tolist() == [OURS[one].prompt != THEIRS[other].prompt for one, other in pairs]


def test_equal_ids_are_paired_though_their_inputs_differ_and_it_is_counted() -> None:
    paired = pair_cases(cases(("a", "sky", "blue", "1")), cases(("a", "the sky", "blue", "2")), BY_ID)
    assert (paired.counts["n_pairs"], paired.counts["n_other_input"]) == (1, 1)


def test_of_many_changed_prompts_some_are_read_evenly() -> None:
    many = cases(*((f"{at}", f"{at}", "", "1") for at in range(1001)))
    read = pair_cases(many, cases(*((f"{at}", f"{at}", "", "2") for at in range(1001)))).read
    assert len(read) <= MAX_READ
    assert (read[0], read[-1] > 900) == (0, True)


@pytest.mark.parametrize(
    ("case", "own_input"),
    [
        ({"prompt": "Which?"}, "Which?"),
        ({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]}, "u"),
        (
            {"messages": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}], "input": "sky"},
            "sky",
        ),
        ({"messages": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}]}, "u"),
        ({"messages": [{"role": "system", "content": "s"}]}, "s"),
    ],
)
def test_the_input_is_what_a_case_names_else_the_last_user_message(case: dict, own_input: str) -> None:
    suite = parse_suite({"slug": "s", "scorer": {"kind": "exact"}, "cases": [{"id": "a", "target": "t", **case}]})
    assert suite.cases[0].own_input == own_input


def prompt(system: str, user: str, tools: object = None, own_input: str | None = "the sky") -> PromptOfCase:
    messages = [{"role": "system", "content": system}] if system else []
    return PromptOfCase([*messages, {"role": "user", "content": user}], tools, own_input)


def written(one: PromptOfCase, other: PromptOfCase) -> list[str]:
    marks = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}
    return [
        f"{message['role']}: {''.join(marks[kind].format(text) for kind, text in message['pieces'])}"
        for message in compare_prompts(one, other)
    ]


@pytest.mark.parametrize(
    ("one", "other", "changes"),
    [
        (prompt("Be short.", "x"), prompt("Be very short.", "x"), ["system: Be {+very +}short."]),
        (prompt("", "x"), prompt("Be short.", "x"), ["system: {+Be short.+}"]),
        (prompt("", "the sky"), prompt("", "Say: the sky"), ["user: {+Say: +}{input}"]),
        (prompt("", "a sky", own_input="a sky"), prompt("", "a sea", own_input="a sea"), ["user: a [-sky-]{+sea+}"]),
        (prompt("One good word.", "x"), prompt("Two bad words.", "x"), ["system: [-One good word-]{+Two bad words+}."]),
        (prompt("", "x", [{"a": 1}]), prompt("", "x", [{"a": 2}]), ['tools: [{"a":[-1-]{+2+}}]']),
        (prompt("same", "x"), prompt("same", "x"), []),
    ],
)
def test_a_change_is_shown_word_by_word(one: PromptOfCase, other: PromptOfCase, changes: list[str]) -> None:
    assert written(one, other) == changes


def test_what_cases_have_in_common_is_one_change_and_the_most_frequent_comes_first() -> None:
    pairs = [(f"case-{at}", prompt("Be short.", f"{at}"), prompt("Be brief.", f"{at}")) for at in range(1, 4)]
    described = describe_changes([("case-0", prompt("", "x"), prompt("Be brief.", "x")), *pairs])
    assert (described["n_read"], described["n_changes"]) == (4, 2)
    assert [(change["n_cases"], change["case"]) for change in described["changes"]] == [(3, "case-1"), (1, "case-0")]


def test_long_texts_are_compared_in_bounded_time_and_what_is_alike_is_shortened() -> None:
    common = "word " * 5_000
    pieces = compare_words(f"{common}one {'a b ' * 4_000}end", f"{common}two {'c d ' * 4_000}end")
    assert [kind for kind, _ in pieces] == ["same", "removed", "added", "same"]
    assert "".join(text for kind, text in pieces if kind != "added") == f"{common}one {'a b ' * 4_000}end"
    assert len(shorten_alike(pieces)[0][1]) < 100
