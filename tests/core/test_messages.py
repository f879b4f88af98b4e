"""A format counts its nouns and chooses its verbs, and of two claims that exclude each other one is made."""

import pytest

from evalboard.wording import messages
from evalboard.wording.messages import Messages, record_claims, speak, write

NOISE = Messages(
    "noise",
    {
        ("noise", "asserts"): {"zero": "Noise floor {points:points} points."},
        ("noise", "unknown"): {"unmeasured": "Noise was not measured."},
    },
)


@pytest.mark.parametrize(
    ("n", "text"), [(1, "1 case is broken."), (0, "0 cases are broken."), (3200, "3,200 cases are broken.")]
)
def test_a_format_counts_its_noun_and_chooses_its_verb(n: int, text: str) -> None:
    assert write("{n:case} {n:is|are} broken.", n=n) == text


def test_a_format_writes_numbers_by_the_rule_of_all_sentences() -> None:
    text = write(
        "{a:signed} of {b:points}, {c:share}, {d:list}, {e:.1e}", a=-0.25, b=80.15, c=0.94, d=["x", "y"], e=1.0
    )
    assert text == "−0.3 of 80.2, 94 %, x and y, 1.0e+00"


def test_of_two_claims_that_exclude_each_other_the_first_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = [NOISE.claim("zero", points=0.0), NOISE.claim("unmeasured")]
    both = "Noise floor 0.0 points. Noise was not measured."
    assert speak(claims) == both
    monkeypatch.setattr(messages, "EXCLUDED", (("noise.unmeasured", "noise.zero"),))
    with record_claims() as spoken:
        assert speak(claims) == "Noise was not measured."
        assert speak(claims[:1], with_codes=["noise.unmeasured"]) == ""
    assert [(claim.code, claim.subject, claim.strength) for claim in spoken] == [
        ("noise.unmeasured", "noise", "unknown")
    ]
