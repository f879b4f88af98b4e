"""Pair cases whose prompts may differ, and find what changed in the prompts.

Two cases are one where input and target are equal: the prompt around the input is what is judged. Where a person says
so, equal ids stand for equal inputs.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.treatments import BY_ID, BY_INPUT
from evalboard.core.digest import canonical_json

MAX_READ = 200  # pairs whose prompts are laid beside each other, evenly out of all that changed
MAX_WORDS = 4_000  # of both texts of a message, between what they begin and end with alike; of more all is replaced
CHANGES_KEPT = 3
MIN_INPUT_CHARS = 3  # a shorter input stands in too many words by chance
AROUND = 60  # characters that are kept of a text that did not change, at each end
INPUT, CUT = "{input}", " … "
SAME, REMOVED, ADDED = "same", "removed", "added"
TOOLS = "tools"  # stands for the role of what is no message

_WORD = re.compile(r"\s+|\w+|[^\w\s]")

Json = dict[str, Any]
Bools = NDArray[np.bool_]
Indexes = NDArray[np.int64]
Pieces = list[list[str]]  # [SAME, REMOVED or ADDED, the text]


@dataclass(frozen=True, slots=True)
class PromptedCase:
    """A case for pairing, with its index in its version. input, target, prompt: comparable keys."""

    index: int
    id: str
    input: Hashable
    target: Hashable
    prompt: Hashable


@dataclass(frozen=True, eq=False)
class PromptPairs:
    """The cases that are one on both sides: int64[n] of their indexes, in the baseline's order.

    has_changed: bool[n], those whose prompt did. counts: "pair_by", "n_pairs", "n_changed"; "n_alone_baseline" and
    "n_alone_candidate", cases of one side alone, of which "n_other_target" have another target on the other side, and
    "n_repeated" an input that other cases of their side have too; "n_other_input", pairs whose inputs are not equal.
    """

    baseline: Indexes
    candidate: Indexes
    has_changed: Bools
    counts: Mapping[str, Any]

    @property
    def are_other(self) -> bool:
        """Whether some case is on both sides with another prompt."""
        return bool(self.has_changed.any())

    @property
    def read(self) -> list[int]:
        """The places of the changed pairs whose prompts are to be read."""
        changed = np.flatnonzero(self.has_changed)
        places: list[int] = changed[:: -(-len(changed) // MAX_READ) or 1].tolist()
        return places


class PromptOfCase(NamedTuple):
    """The prompt of a case: chat messages, tools or None; and its input if that is text."""

    messages: Sequence[Mapping[str, Any]]
    tools: Any
    own_input: Any


@dataclass(frozen=True, slots=True)
class PromptsJudged:
    """The result of comparing prompts. has_changed: as in `PromptPairs`, by the cases' rows.

    summary: its counts, with "n_read" and "changes" of `describe_changes`.
    """

    has_changed: Bools
    summary: Json = field(default_factory=dict)

    @property
    def counts(self) -> Json:
        """The summary without what changed."""
        return {name: value for name, value in self.summary.items() if name != "changes"}


def pair_cases(ours: Sequence[PromptedCase], theirs: Sequence[PromptedCase], pair_by: str = BY_INPUT) -> PromptPairs:
    """Pair the cases of two suite versions by input, or by id on request; targets must be equal.

    Cases of one side with one input and target are paired only by id.
    """
    is_by_id = pair_by == BY_ID
    pairs = _pair_by_id(ours, theirs) if is_by_id else _pair_by_input(ours, theirs)
    pairs.sort(key=lambda pair: pair[0].index)
    paired = {one.index for one, _ in pairs}
    alone = [case for case in ours if case.index not in paired]
    targets = defaultdict(set)
    for case in theirs:
        targets[case.id if is_by_id else case.input].add(case.target)
    beside = [targets.get(case.id if is_by_id else case.input, set()) for case in alone]
    has_changed = np.array([one.prompt != other.prompt for one, other in pairs], np.bool_)
    return PromptPairs(
        baseline=np.array([one.index for one, _ in pairs], np.int64),
        candidate=np.array([other.index for _, other in pairs], np.int64),
        has_changed=has_changed,
        counts={
            "pair_by": pair_by,
            "n_pairs": len(pairs),
            "n_changed": int(np.count_nonzero(has_changed)),
            "n_alone_baseline": len(alone),
            "n_alone_candidate": len(theirs) - len(pairs),
            "n_other_target": sum(
                bool(known) and case.target not in known for case, known in zip(alone, beside, strict=True)
            ),
            "n_repeated": sum(case.target in known for case, known in zip(alone, beside, strict=True)),
            "n_other_input": sum(one.input != other.input for one, other in pairs),
        },
    )


def _pair_by_id(
    ours: Sequence[PromptedCase], theirs: Sequence[PromptedCase]
) -> list[tuple[PromptedCase, PromptedCase]]:
    known = {case.id: case for case in theirs}
    both = ((case, known[case.id]) for case in ours if case.id in known)
    return [(one, other) for one, other in both if one.target == other.target]


def _pair_by_input(
    ours: Sequence[PromptedCase], theirs: Sequence[PromptedCase]
) -> list[tuple[PromptedCase, PromptedCase]]:
    alike: dict[Hashable, tuple[list[PromptedCase], list[PromptedCase]]] = defaultdict(lambda: ([], []))
    for side, cases in enumerate((ours, theirs)):
        for case in cases:
            alike[case.input, case.target][side].append(case)
    pairs = []
    for one, other in alike.values():
        pairs += [(one[0], other[0])] if len(one) == len(other) == 1 else _pair_by_id(one, other)
    return pairs


def describe_changes(pairs: Iterable[tuple[str, PromptOfCase, PromptOfCase]]) -> Json:
    """Return {"n_read", "n_changes", "changes"}: changes in the prompts, most frequent first.

    pairs: the baseline's id and both prompts of each. A change: {"n_cases", "case", the first that has it, "messages":
    [{"role", "pieces"}]}, only of the messages that differ. Pieces are stored for CHANGES_KEPT of them.
    """
    counts: dict[Hashable, int] = defaultdict(int)
    first: dict[Hashable, Json] = {}
    known: dict[tuple[str, str], Pieces] = {}
    n_read = 0
    for case, one, other in pairs:
        n_read += 1
        messages = compare_prompts(one, other, known)
        key = tuple(
            (each["role"], tuple((kind, text) for kind, text in each["pieces"] if kind != SAME)) for each in messages
        )
        counts[key] += 1
        first.setdefault(key, {"case": case, "messages": messages})
    most_first = sorted(counts, key=lambda key: -counts[key])
    changes = [
        {
            "n_cases": counts[key],
            "case": first[key]["case"],
            "messages": [{**each, "pieces": shorten_alike(each["pieces"])} for each in first[key]["messages"]],
        }
        for key in most_first[:CHANGES_KEPT]
    ]
    return {"n_read": n_read, "n_changes": len(counts), "changes": changes}


def judge_prompts(
    pairs: PromptPairs, read: Callable[[list[int]], Iterable[tuple[str, PromptOfCase, PromptOfCase]]]
) -> PromptsJudged:
    """Return the result of comparing prompts. read: returns the prompts at these places of the pairs."""
    return PromptsJudged(pairs.has_changed, {**pairs.counts, **describe_changes(read(pairs.read))})


def compare_prompts(
    one: PromptOfCase, other: PromptOfCase, known: dict[tuple[str, str], Pieces] | None = None
) -> list[Json]:
    """Return {"role", "pieces"} of the messages that differ, aligned by role.

    known: the pieces of texts that were compared before, extended here.
    """
    known = {} if known is None else known
    own = one.own_input if one.own_input == other.own_input else None
    sides = [[(str(message.get("role")), _text_of(message, own)) for message in side.messages] for side in (one, other)]
    if one.tools or other.tools:
        for side, given in zip(sides, (one, other), strict=True):
            side += [(TOOLS, _write(given.tools))] if given.tools else []
    roles = [[role for role, _ in side] for side in sides]
    messages: list[Json] = []
    by_role = SequenceMatcher(None, roles[0], roles[1], autojunk=False)
    for kind, start, end, start_too, end_too in by_role.get_opcodes():
        mine, yours = sides[0][start:end], sides[1][start_too:end_too]
        if kind == "equal":
            for (role, text), (_, other_text) in zip(mine, yours, strict=True):
                if (text, other_text) not in known:
                    known[text, other_text] = compare_words(text, other_text)
                messages.append({"role": role, "pieces": known[text, other_text]})
            continue
        messages += [{"role": role, "pieces": [[REMOVED, text]]} for role, text in mine]
        messages += [{"role": role, "pieces": [[ADDED, text]]} for role, text in yours]
    return [message for message in messages if _has_changed(message["pieces"])]


def compare_words(one: str, other: str) -> Pieces:
    """Return two texts as pieces, word by word: equal, removed and added."""
    if one == other:
        return [[SAME, one]]
    ours, theirs = _WORD.findall(one), _WORD.findall(other)
    begin = _count_alike(ours, theirs)
    end = _count_alike(ours[begin:][::-1], theirs[begin:][::-1])
    middle, middle_too = ours[begin : len(ours) - end], theirs[begin : len(theirs) - end]
    spans: list[list[str]] = [[SAME, "".join(ours[:begin])]]
    if len(middle) + len(middle_too) > MAX_WORDS:
        spans += [[REMOVED, "".join(middle)], [ADDED, "".join(middle_too)]]
    else:
        for kind, *at in SequenceMatcher(None, middle, middle_too, autojunk=False).get_opcodes():
            removed, added = "".join(middle[at[0] : at[1]]), "".join(middle_too[at[2] : at[3]])
            # Blanks between two words that were replaced belong to what was replaced.
            if kind == "equal" and not (removed.isspace() and len(spans) > 1):
                spans.append([SAME, removed])
            else:
                spans += [[REMOVED, removed], [ADDED, added]]
    return _join([*spans, [SAME, "".join(ours[len(ours) - end :])]])


def _join(spans: Pieces) -> Pieces:
    """Join neighbours of one kind; removed text precedes added text."""
    pieces: Pieces = []
    removed, added = "", ""
    for kind, text in [*spans, [SAME, ""]]:
        if kind == REMOVED:
            removed += text
        elif kind == ADDED:
            added += text
        else:
            pieces += [[REMOVED, removed]] if removed else []
            pieces += [[ADDED, added]] if added else []
            pieces += [[SAME, text]] if text else []
            removed, added = "", ""
    return pieces


def _count_alike(ours: Sequence[str], theirs: Sequence[str]) -> int:
    return next(
        (at for at, (one, other) in enumerate(zip(ours, theirs, strict=False)) if one != other),
        min(len(ours), len(theirs)),
    )


def _has_changed(pieces: Pieces) -> bool:
    return any(kind != SAME for kind, _ in pieces)


def shorten_alike(pieces: Pieces) -> Pieces:
    """Shorten long unchanged texts to the parts next to a change."""
    shortened = []
    for at, (kind, text) in enumerate(pieces):
        is_first, is_last = at == 0, at == len(pieces) - 1
        if kind == SAME and len(text) > 2 * AROUND:
            text = f"{'' if is_first else text[:AROUND]}{CUT}{'' if is_last else text[-AROUND:]}"
        shortened.append([kind, text])
    return shortened


def _text_of(message: Mapping[str, Any], own_input: Any) -> str:
    content = message.get("content")
    text = content if isinstance(content, str) else "" if content is None else _write(content)
    if (
        message.get("role") in ("user", "completion")
        and isinstance(own_input, str)
        and len(own_input) >= MIN_INPUT_CHARS
    ):
        text = text.replace(own_input, INPUT)
    return text + (_write(message["tool_calls"]) if message.get("tool_calls") else "")


def _write(value: Any) -> str:
    return canonical_json(value).decode("utf-8", "surrogatepass")
