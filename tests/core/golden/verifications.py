"""Does an endpoint serve these weights?"""

from typing import Any

from evalboard.contract.verification import JudgedAnswers
from evalboard.core.forced import ForcedPositions, verify_endpoint
from evalboard.wording.verification import describe_numbers, describe_verification, warn_of_verification
from tests.core.golden.readers import Sentence, Situations
from tests.core.test_verification import CONTROL, NUMERICS, answer, verify


def read(verification: JudgedAnswers) -> list[Sentence]:
    sentence = Sentence("verification", verification.state, describe_verification(verification))
    return [sentence, *(Sentence(name, "", value) for name, value in describe_numbers(verification))]


def read_unplanted(endpoint: ForcedPositions, *, numerics: ForcedPositions = NUMERICS) -> list[Sentence]:
    return read(verify_endpoint(endpoint, control=CONTROL, numerics=[numerics]))


def read_short() -> list[Sentence]:
    known: Any = {"numerics": [answer(0.012, 3, 4)], "planted": answer(0.025, 3, 5)}
    return read(verify_endpoint(answer(0.014, 40, 13), control=CONTROL, **known))


def read_alike() -> list[Sentence]:
    return read(verify_endpoint(answer(0.012, 40, 14), control=CONTROL, numerics=[NUMERICS], planted=NUMERICS))


def read_warnings() -> list[Sentence]:
    cases = [("control_of_other_bucket", 0), ("rendered", 1), ("rendered", 1200), ("first_answers", 2000)]
    return [Sentence("warning", code, warn_of_verification(code, n)) for code, n in cases]


SITUATIONS: Situations = {
    "The reference's own answers": lambda: read(verify(answer(0.0, 60, 10))),
    "The same weights in a second dtype": lambda: read(verify(answer(0.012, 60, 10))),
    "The same weights, by tokens alone": lambda: read(verify(answer(0.012, 60, 10, has_logprobs=False))),
    "Weights that were changed a little": lambda: read(verify(answer(0.025, 60, 10))),
    "Other weights, and nothing was planted": lambda: read_unplanted(answer(0.4, 60, 10)),
    "Two answers": lambda: read(verify(answer(0.012, 2, 12))),
    "Known answers that are too few": read_short,
    "A planted change that is none": read_alike,
    "Numerics that never move": lambda: read_unplanted(answer(0.0, 40, 18), numerics=CONTROL),
    "An endpoint without answers": lambda: read(verify(answer(0.012, 0, 1))),
    "What takes from its weight": read_warnings,
}
