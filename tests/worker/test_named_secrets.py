"""A key that a server echoes is found in every spelling of JSON, and what is left is JSON."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.calling.calls import Answered
from evalboard.calling.mask import Mask
from evalboard.importers.records import LoggedPosition, LoggedPositions, LoggedResponse
from tests.nightly import few
from tests.scripted import Reply, ScriptedServer, ok
from tests.worker.openai_cases import decode

KEY = 'sk-live+0123/4567=89"abc\\def'

keys = st.text(st.sampled_from("+/=\"'\\é🙂~%abu05"), min_size=12, max_size=40).filter(
    lambda key: len(key.strip("\\")) >= 12
)
WRITERS = {
    "ascii": json.dumps,
    "utf-8": lambda value: json.dumps(value, ensure_ascii=False),
    "slashes": lambda value: json.dumps(value).replace("/", "\\/"),
    "numbers": lambda value: _by_numbers(value, str.lower),
    "numbers in capitals": lambda value: _by_numbers(value, str.upper),
}
writers = st.sampled_from(sorted(WRITERS))


def _by_numbers(value: Any, case: Any) -> str:
    """Write JSON with every character of its texts as \\uXXXX."""
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{_by_numbers(name, case)}: {_by_numbers(one, case)}" for name, one in value.items()) + "}"
        )
    assert isinstance(value, str)
    units = value.encode("utf-16-be").hex()
    return '"' + "".join("\\u" + case(units[at : at + 4]) for at in range(0, len(units), 4)) + '"'


def texts_of(value: Any) -> list[str]:
    """Return every text in a JSON value, and in those of its texts that are JSON themselves."""
    if isinstance(value, dict):
        return [text for pair in value.items() for each in pair for text in texts_of(each)]
    assert isinstance(value, str)
    try:
        return [value, *texts_of(json.loads(value))]
    except (ValueError, AssertionError):
        return [value]


def test_of_a_key_that_begins_with_another_nothing_is_left() -> None:
    short, long = KEY, f"{KEY}-of-production"
    assert Mask([short, long]).text(f"Not {long}.") == Mask([long, short]).text(f"Not {long}.") == "Not ***."


@given(key=keys, levels=st.lists(writers, min_size=1, max_size=4), around=st.sampled_from(["", " ", "\\", "x"]))
def test_no_spelling_of_a_key_is_left_at_any_depth(key: str, levels: list[str], around: str) -> None:
    value: Any = f"{around}{key}{around}"
    for level in levels:
        value = WRITERS[level]({"before": "kept", "key": value})
    mask = Mask([key])
    answer, words = mask.answer(value.encode()), mask.text(value)
    assert answer["before"] == "kept"
    for texts in (texts_of(answer), texts_of(json.loads(words)) if words != "***" else ["***"]):
        assert "***" in texts[-1]
        assert not [text for text in texts if key.strip("\\") in text]


def readings(text: str, n: int = 4) -> list[str]:
    """Return a text, and what it is after each decoding as the inside of a JSON string."""
    try:
        return [text, *readings(json.loads(f'"{text}"'), n - 1)] if n else [text]
    except ValueError:
        return [text]


def test_an_escaped_backslash_before_a_u_by_number_is_no_part_of_its_escape() -> None:
    assert Mask(["sk-live+01234"]).text(r"It is sk-live+01\\\u00750032\u00334.") == "***"


@given(key=keys, shares=st.lists(st.sampled_from([0.02, 0.1, 0.3, 1.0]), min_size=1, max_size=3), draw=st.randoms())
def test_whichever_characters_are_escaped_no_decoding_gives_the_key(key: str, shares: list[float], draw: Any) -> None:
    """Each level writes some characters by number: a backslash of the level before, or the u or a digit of a number."""
    text = key
    for share in shares:
        chars = (_by_numbers(one, str.lower) if draw.random() < share else json.dumps(one) for one in text)
        text = "".join(char[1:-1] for char in chars)
    assert key in readings(text)
    mask = Mask([key])
    for masked in (mask.text(text), mask.answer(f'"{text}"'.encode())):
        assert not [reading for reading in readings(masked) if key in reading]


@given(key=keys, levels=st.lists(st.sampled_from(["ascii", "utf-8", "slashes"]), min_size=1, max_size=4))
def test_what_is_around_a_key_stays_at_every_depth(key: str, levels: list[str]) -> None:
    value: Any = f"The key is {key}."
    for level in levels:
        value = WRITERS[level]({"before": "kept", "key": value})
    texts = texts_of(Mask([key]).answer(value.encode()))
    assert texts.count("kept") == len(levels)
    assert texts[-1].rstrip("\\").startswith("The key is ***")


def test_a_number_in_place_of_a_backslash_is_read_too() -> None:
    for written in (
        r"sk\u005cu002blive0123",
        r"\u0073\u005c\u005cu006b\u002blive0123",
        r"\u005cu0073k\u005c/+live0123",
    ):
        mask = Mask(["sk+live0123" if "/" not in written else "sk/+live0123"])
        assert mask.text(f"It is {written}.") == "It is ***."


def test_a_key_of_which_a_number_is_written_by_number_is_no_name_either() -> None:
    written = r"sk-live+0123\\u003\u0034"
    answer = Mask(["sk-live+01234"]).answer(f'{{"{written}": 1, "b": ["{written}"]}}'.encode())
    assert answer == {"***": 1, "b": ["***"]}
    assert Mask(["another-key-0123", "sk-live+01234"]).text(f"Not {written}.") == "***"


def test_numbers_of_letters_that_spell_no_key_stay() -> None:
    words = r"Say \u0061\u0062 with 5."
    assert Mask([KEY]).text(words) == words
    assert Mask([KEY]).answer(b'{"\\\\u0061": [1, null, "b"]}') == {"\\u0061": [1, None, "b"]}
    so_deep = "\\" + "u005cu005c" * 9 + "u0061"
    assert Mask([]).text(so_deep) == so_deep


def test_backslashes_alone_are_no_key_and_those_of_a_key_belong_to_it() -> None:
    assert repr(Mask(["\\" * 12])) == "<Mask of 0 secrets>"
    assert Mask([r"sk-live\0123"]).text(r"sk-live0123, not sk-live\0123") == "sk-live0123, not ***"


@pytest.mark.parametrize(("n_chars", "in_words", "in_answers"), [(3, "abc", "abc"), (4, "***", "abcd")])
def test_a_key_of_under_four_letters_is_none(n_chars: int, in_words: str, in_answers: str) -> None:
    key = "abcd"[:n_chars]
    assert (Mask([key]).text(key), Mask([key]).answer(f'"{key}"'.encode())) == (in_words, in_answers)


def test_answers_hold_no_key_of_twelve_letters_and_may_hold_one_of_eleven() -> None:
    eleven, twelve = "abcdefghijk", "0123456789ab"
    assert Mask([eleven, twelve]).answer(f'["{eleven}", "{twelve}"]'.encode()) == [eleven, "***"]


@pytest.mark.parametrize(
    "content", few([b"\\" * 2**22, b"s\\" * 2**21, b"sk-live+0123" + b"\\" * 2**22, b"\\u005c" * 2**20], 1)
)
def test_a_long_text_of_backslashes_takes_no_longer_than_another(content: bytes) -> None:
    began = time.process_time()
    Mask([KEY]).text(content.decode())
    assert time.process_time() - began < 30  # a quadratic search takes hours


def by_numbers(text: str) -> bytes:
    return _by_numbers(text, str.lower).encode()


def choice(**message: Any) -> dict[str, Any]:
    return {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}


def entry(token: str, *, raw: bytes | None = None, others: tuple[str, ...] = ()) -> dict[str, Any]:
    given = {"token": token, "logprob": -0.5, "bytes": list(token.encode() if raw is None else raw)}
    return given | {"top_logprobs": [{"token": one, "logprob": -0.5, "bytes": list(one.encode())} for one in others]}


def called(arguments: str) -> dict[str, Any]:
    function = {"name": "look", "arguments": arguments}
    return choice(content=None, tool_calls=[{"id": "1", "type": "function", "function": function}])


PARTS = [{"type": "text", "text": KEY[:14]}, {"type": "text", "text": KEY[14:]}]
PIECES = ["The ", "key ", KEY[:5], KEY[5:20], KEY[20:] + ".", " Done"]
ANSWERS: dict[str, Any] = {
    "an answer": choice(content=f"The key is {KEY}."),
    "thinking": choice(content="a", reasoning_content=f"The key is {KEY}."),
    "the arguments of a tool": called(json.dumps({"key": KEY})),
    "JSON in the arguments of a tool": called(json.dumps({"body": json.dumps({"key": KEY})})),
    "an answer in parts": choice(content=PARTS),
    "thinking in parts": choice(content=[{"type": "thinking", "thinking": PARTS}, {"type": "text", "text": "a"}]),
    "tokens": choice(content="a")
    | {"logprobs": {"content": [entry("a", others=(KEY, "a")), entry(KEY, others=(KEY,))]}},
    "a token that was not chosen": choice(content="a") | {"logprobs": {"content": [entry("a", others=(KEY, "a"))]}},
    "bytes of tokens": choice(content="a") | {"logprobs": {"content": [entry("", raw=KEY.encode(), others=("a",))]}},
    "a key in pieces": choice(content="a")
    | {"logprobs": {"content": [entry(one, others=(one, "b")) for one in PIECES]}},
}


@pytest.mark.parametrize("is_numbered", [False, True], ids=["as JSON writes it", "by numbers"])
@pytest.mark.parametrize("name", ANSWERS)
def test_what_is_kept_of_an_answer_holds_no_key(name: str, is_numbered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_API_KEY", KEY)
    body = {"id": "chatcmpl-1", "model": "m", "choices": [ANSWERS[name]]}
    written = json.dumps(body).encode()
    if is_numbered:
        written = written.replace(json.dumps(KEY)[1:-1].encode(), by_numbers(KEY)[1:-1])
    with ScriptedServer(Reply(written, headers={"x-request-id": KEY})) as server:
        (outcome,) = decode(server, auth="THEIR_API_KEY")
    assert isinstance(outcome, Answered), outcome
    response = outcome.response
    positions = response.positions or ()
    tokens = b"".join(position.token for position in positions).decode()
    alternatives = [token.decode() for position in positions for token, _ in position.alternatives]
    texts = [response.text, response.reasoning or "", tokens, *alternatives, outcome.call.model_dump_json()]
    texts += texts_of(json.loads(response.text)[0]) if "tool" in name else []
    assert "***" in "".join(texts[:-1])
    assert not [text for text in texts if any(part in text for part in (KEY, KEY[5:20], KEY[20:]))]
    if name == "a key in pieces":
        assert tokens == "The key ********* Done"


def test_tokens_without_the_key_stay_as_they_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_API_KEY", KEY)
    with ScriptedServer(ok()) as server:
        (plain,), (masked,) = decode(server), decode(server, auth="THEIR_API_KEY")
    assert isinstance(plain, Answered)
    assert isinstance(masked, Answered)
    assert masked.response.positions == plain.response.positions
    assert masked.response.text == plain.response.text


def test_a_token_that_is_hidden_is_not_given_away_by_its_id() -> None:
    rows = [LoggedPosition(b"Your key is ", -0.1, token_id=7), LoggedPosition(KEY.encode(), -0.2, token_id=8)]
    response = LoggedResponse(case_id="sky", repeat=1, positions=LoggedPositions.from_positions(rows))
    masked = Mask([KEY]).response(response).positions or ()
    assert [(row.token, row.token_id) for row in masked] == [(b"Your key is ", 7), (b"***", None)]


def test_where_a_key_stands_twice_each_of_its_tokens_is_hidden_and_no_other() -> None:
    halves = [KEY[:5].encode(), KEY[5:].encode()]
    tokens = [*halves, b" or ", *halves, b"!"]
    rows = [LoggedPosition(token, -0.1, ((token, -0.1), (b"b", -2.0))) for token in tokens]
    response = LoggedResponse(case_id="sky", repeat=1, positions=LoggedPositions.from_positions(rows))
    masked = Mask([KEY]).response(response).positions or ()
    hidden = [b"***", b"***", b" or ", b"***", b"***", b"!"]
    assert [row.token for row in masked] == hidden
    assert [[token for token, _ in row.alternatives] for row in masked] == [[token, b"b"] for token in hidden]
