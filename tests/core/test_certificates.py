"""What a certificate rules out is seen, and what the seed probe says of one bucket or of the temperature is so."""

import pytest

from bench.simulated_probes import Claim
from bench.simulated_witnesses import CLAIMS


@pytest.mark.parametrize(
    "claim", [each for each in CLAIMS if each.n_in_tests], ids=lambda claim: f"{claim.situation}: {claim.says}"
)
def test_a_promised_rate_is_kept(claim: Claim) -> None:
    share = claim.measure(claim.n_in_tests)
    assert claim.is_kept(share), f"{100 * share:.1f} %, and {claim.aim} is promised"
