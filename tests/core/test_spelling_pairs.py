"""Pairs whose answers are equal and whose tokens are not: no flip, and no word about logprobs."""

from bench.simulated_spelling import count_flips
from evalboard.core.compare import KnownResponse, Pair, TracedText, WordsById, distance_tables, find_cause, find_parting
from evalboard.core.stats import LogitNoise
from evalboard.core.trace import Vocabulary, make_trace, pack_vocabulary
from evalboard.wording.cause import explain_cause

TOKENS = [b"The", b" cat", b" sat", b"The c", b"at", b" ran", b"<end>", b" The", b"<|im_end|>"]
WORDS = WordsById(lambda _: Vocabulary.unpack(pack_vocabulary(TOKENS, {6})))


def spelled(*ids: int, is_logged: bool = True, text: str = "", other: int = 5) -> TracedText:
    trace = make_trace(ids, [-0.1] * len(ids), [[(each, -0.1), (other, -0.2)] for each in ids])
    own = text or b"".join(TOKENS[each] for each in ids if each != 6).decode().strip()
    return TracedText(own, trace, 1, is_logged)


def test_equal_texts_never_flip_however_they_are_cut():
    assert count_flips(120, seed=7) == 0
    assert count_flips(120, seed=8, tail=(" yes", " no!")) == 120


def test_it_is_said_that_the_tokens_alone_differ():
    for is_logged in (True, False):
        parted = find_parting(spelled(0, 1, 2, 6, is_logged=is_logged), spelled(3, 4, 2, is_logged=is_logged), WORDS)
        assert parted is not None
        assert (parted.kind, parted.is_retokenised, parted.parts_at) == ("identical", True, None)
        answer = KnownResponse(text="The cat sat")
        cause = find_cause(Pair(answer, answer), parted, LogitNoise(0.01))
        assert cause.code == "identical"
        assert explain_cause(cause).startswith("Same text, tokenized differently")


def test_an_end_token_that_one_log_keeps_as_text_is_no_flip():
    for cut in (True, False):
        kept = spelled(0, 1, 2, 8, text="The cat sat")
        parted = find_parting(kept, spelled(*((3, 4, 2) if cut else (0, 1, 2)), text="The cat sat"), WORDS)
        assert parted is not None
        answer = KnownResponse(text="The cat sat")
        cause = find_cause(Pair(answer, answer), parted, LogitNoise(0.01))
        assert (cause.code == "identical") == cut
        assert parted.flip_position is None


def test_a_space_before_the_first_word_is_no_flip():
    parted = find_parting(spelled(7, 1, 2), spelled(0, 1, 2), WORDS)
    assert parted is not None
    assert parted.is_retokenised


def test_a_log_parts_where_its_text_does_and_not_where_it_is_cut_otherwise():
    parted = find_parting(spelled(0, 1, 2), spelled(3, 4, 5), WORDS)
    assert parted is not None
    assert (parted.flip_position, parted.parts_at_candidate, parted.is_approximate) == (2, 2, True)
    own = find_parting(spelled(0, 1, 2, is_logged=False), spelled(3, 4, 5, is_logged=False), WORDS)
    assert own is not None
    assert (own.flip_position, own.is_approximate) == (0, False)  # a tokenizer's own ids decide


def test_an_answer_that_ends_where_the_other_goes_on_parts_there():
    goes_on, ends = spelled(0, 1, 2, 5), spelled(0, 1, 2, 6)
    for pair in ((goes_on, ends), (ends, goes_on)):
        parted = find_parting(*pair, WORDS)
        assert parted is not None
        assert (parted.flip_position, parted.parts_at, parted.parts_at_candidate) == (3, 3, 3)


def test_one_number_of_two_vocabularies_is_not_one_token():
    other = WordsById(lambda number: Vocabulary.unpack(pack_vocabulary(TOKENS if number == 1 else TOKENS[::-1])))
    ours, theirs = spelled(0, 1, is_logged=False), spelled(0, 1, is_logged=False)
    theirs = TracedText(" The<end>", theirs.trace, 2, is_logged=False)
    [table] = distance_tables([[ours, theirs]], other)
    assert table.nats[0, 1] != 0
    assert not table.are_alike[0, 1]


def test_a_token_far_below_forbidden_ones_is_no_fault_of_a_sampler():
    ours, theirs = (
        TracedText(
            text,
            make_trace([0, chosen, 2], [-0.1, -19.0, -0.1], [[(0, -0.1)], [(7, -0.1), (6, -3.0)], [(2, -0.1)]]),
            1,
            is_logged=True,
        )
        for text, chosen in (("The cat sat", 1), ("The ran sat", 5))
    )
    answers = (KnownResponse(text=side.text, temperature=0.0) for side in (ours, theirs))
    cause = find_cause(Pair(*answers), find_parting(ours, theirs, WORDS), LogitNoise(0.01))
    assert cause.code == "constrained"
