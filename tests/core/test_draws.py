"""Which seed a call is sent, and how many draws the repeats of a run are."""

import hashlib
from itertools import product

import pytest

from evalboard.contract.run import Draws
from evalboard.core.profile import draws

GREEDY = {"temperature": 0.0, "seed": 42}
SAMPLED = {"temperature": 0.7, "seed": 42}


def seed(
    repeat: int,
    case_id: str,
    *,
    run_seed: int | None = 7,
    sampling: dict[str, float] = SAMPLED,
    is_external: bool = False,
) -> int:
    return draws.call_seed(sampling, run_seed=run_seed, repeat=repeat, case_id=case_id, is_external=is_external)


@pytest.mark.parametrize("case_id", ["capital-1", 'quoted "1"', "größe", "a,b"])
def test_a_seed_is_the_first_63_bits_of_a_digest_that_anybody_can_take(case_id: str) -> None:
    text = case_id.replace('"', '\\"')
    whole = hashlib.sha256(f'[7,3,"{text}"]'.encode()).hexdigest()
    assert seed(3, case_id) == int(whole, 16) >> (256 - 63)


def test_no_two_cases_no_two_repeats_and_no_two_run_seeds_share_one() -> None:
    cases = [f"case-{n}" for n in range(200)]
    sent = [seed(repeat, case, run_seed=own) for own, repeat, case in product((7, 8), range(1, 21), cases)]
    assert len(set(sent)) == len(sent) == 8000
    assert all(0 <= each <= draws.MAX_SEED for each in sent)


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED])
def test_external_servers_are_sent_the_first_31_bits_at_any_temperature(sampling: dict[str, float]) -> None:
    whole = hashlib.sha256(b'[7,3,"capital-1"]').hexdigest()
    assert seed(3, "capital-1", sampling=sampling, is_external=True) == int(whole, 16) >> (256 - 31) < 2**31
    sent = {
        case: [seed(repeat, case, sampling=sampling, is_external=True) for repeat in range(1, 21)]
        for case in map(str, range(1000))
    }
    assert all(len(set(of_case)) == 20 for of_case in sent.values())


def test_where_nothing_is_drawn_the_seed_is_the_profiles() -> None:
    assert seed(3, "a", sampling=GREEDY) == 42


def test_a_run_of_before_runs_had_seeds_keeps_to_the_profiles() -> None:
    assert {seed(repeat, "a", run_seed=None) for repeat in (1, 2, 3)} == {42}


@pytest.mark.parametrize(
    ("sampling", "sent", "is_one"),
    [
        (SAMPLED, [("a", 42, ""), ("a", 42, ""), ("b", 42, ""), ("b", 42, "")], True),
        (SAMPLED, [("a", 42, "call-1"), ("a", 42, "call-2")], True),
        (SAMPLED, [("a", 42, "call-1"), ("a", 42, "call-1")], False),  # two answers to one call
        (SAMPLED, [("a", 1, ""), ("a", 2, ""), ("b", 1, ""), ("b", 2, "")], False),  # cases may share one
        (SAMPLED, [("a", None, ""), ("a", None, "")], False),
        (SAMPLED, [("a", 1, ""), ("a", None, ""), ("b", 5, ""), ("b", 5, "")], True),
        (SAMPLED, [("a", 42, ""), ("b", 42, "")], False),
        (GREEDY, [("a", 42, ""), ("a", 42, "")], False),
        ({}, [("a", 42, ""), ("a", 42, "")], False),  # a log that does not say its temperature
    ],
)
def test_repeats_that_were_sent_one_seed_are_one_draw(
    sampling: dict[str, float], sent: list[tuple[str, int | None, str]], is_one: bool
) -> None:
    assert draws.is_one_draw(sampling, sent) is is_one


def test_seeds_are_shared_where_run_seed_and_repeats_are_the_same() -> None:
    ours = Draws(0.7, 42, repeats=(1, 2, 3))
    assert draws.have_same_seeds(ours, Draws(0.7, 42, repeats=(1, 2, 3)))
    assert not draws.have_same_seeds(ours, Draws(0.7, 43, repeats=(1, 2, 3)))
    assert not draws.have_same_seeds(ours, Draws(0.7, 42, repeats=(1, 2, 4)))
    assert not draws.have_same_seeds(Draws(0.7, None, repeats=(1,)), Draws(0.7, None, repeats=(1,)))
    external = Draws(0.7, 42, repeats=(1, 2, 3), is_external=True)
    assert draws.have_same_seeds(external, external)
    assert not draws.have_same_seeds(ours, external)  # 63 bits and 31
    assert not draws.have_same_seeds(
        Draws(0.7, 42, is_one=True, repeats=(1,)), Draws(0.7, 42, is_one=True, repeats=(1,))
    )
    assert not draws.have_same_seeds(Draws(0.0, 42, repeats=(1,)), Draws(0.0, 42, repeats=(1,)))


def test_a_run_says_how_it_was_drawn() -> None:
    assert Draws(0.7, 42).words == "sampled, T = 0.7, seed 42"
    assert Draws(1.0, None).words == "sampled, T = 1"
    assert Draws(0.7, 42, is_one=True).words == "sampled, T = 0.7, one draw"
    assert Draws(0.0, 42).words == ""
