"""The error rates that docs/probes.md promises, simulated: a few probes in the gate, full size in `make nightly`."""

import pytest

from bench.simulated_probes import BATCH_CLAIMS, CANARY_CLAIMS, CHARACTER_CLAIMS, SEED_CLAIMS, Claim
from bench.simulated_witnesses import CERTIFICATE_CLAIMS
from bench.simulated_witnesses import SEED_CLAIMS as WITNESS_CLAIMS
from tests.core.rates import assert_kept_in_few, group_by_promise

# Probes of each situation in the gate. A canary takes ten times as long as another probe.
FAMILIES = {
    "seed": (15, SEED_CLAIMS),
    "seed by characters": (12, CHARACTER_CLAIMS),
    "batch": (8, BATCH_CLAIMS),
    "canary": (4, CANARY_CLAIMS),
    "witnesses": (12, WITNESS_CLAIMS),
    "certificate": (50, CERTIFICATE_CLAIMS),
}
TESTED = [claim for _, claims in FAMILIES.values() for claim in claims if claim.n_in_tests]
FEW = [
    pytest.param(claims, n_each, id=f"{name}, {claims[0].aim}")
    for name, (n_each, family) in FAMILIES.items()
    for claims in group_by_promise(claim for claim in family if claim.n_in_tests)
]


@pytest.mark.parametrize(("claims", "n_each"), FEW)
def test_a_promise_is_kept_in_a_few_probes_of_each_situation(claims: tuple[Claim, ...], n_each: int) -> None:
    assert_kept_in_few(claims, n_each)


@pytest.mark.nightly
@pytest.mark.parametrize("claim", TESTED, ids=lambda claim: f"{claim.situation}: {claim.says}")
def test_a_promised_rate_is_kept(claim: Claim) -> None:
    share = claim.measure(claim.n_in_tests)
    assert claim.is_kept(share), f"{100 * share:.1f} %, and {claim.aim} is promised"
