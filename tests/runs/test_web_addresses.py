"""Which hosts an endpoint of others may have: those that are named, and every public one where that is said."""

import ipaddress
from typing import Any

import pytest
from django.conf import settings as site

from evalboard import safety
from evalboard.calling.addresses import endpoint_host_problem

PUBLIC, PRIVATE, LINK_LOCAL, METADATA = "93.184.216.34", "10.1.2.3", "169.254.7.7", "169.254.169.254"


def problem(host: str, *addresses: str, port: int | None = None) -> str | None:
    return endpoint_host_problem(host, map(ipaddress.ip_address, addresses), hosts=site.ENDPOINT_HOSTS, port=port)


def name(settings: Any, *hosts: str, reached_as: tuple[str, ...] = safety.LOCAL_HOSTS) -> None:
    settings.ENDPOINT_HOSTS = safety.endpoint_hosts(hosts, hosts=reached_as)


def test_an_installation_of_one_machine_calls_public_hosts_and_itself(settings: Any) -> None:
    name(settings)
    assert problem("api.example", PUBLIC) is None
    for host, address in (("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("::1", "::1"), ("[::1]", "::1")):
        assert problem(host, address, port=8000) is None
    for address in (PRIVATE, LINK_LOCAL, "127.0.0.1", "::1", "fd00::1", "64:ff9b::a00:1", "::ffff:10.0.0.1"):
        assert "not on the open internet" in str(problem("gpu.example", address))


def test_an_installation_that_others_reach_calls_nobody_until_it_is_said(settings: Any) -> None:
    name(settings, reached_as=("evalboard.example",))
    for host, address in (("api.example", PUBLIC), ("127.0.0.1", "127.0.0.1")):
        assert "EVALBOARD_ENDPOINT_HOSTS" in str(problem(host, address))
    name(settings, "", " ", reached_as=("evalboard.example",))  # as compose hands over what nobody set
    assert problem("api.example", PUBLIC) is not None


def test_a_named_host_may_be_private_and_no_other_may(settings: Any) -> None:
    name(settings, "GPU-3.internal.", "10.9.9.9:8000", "[fd00::7]:8000")
    assert problem("gpu-3.internal", PRIVATE, port=8000) is None
    assert problem("GPU-3.INTERNAL.", LINK_LOCAL, port=443) is None
    assert problem("gpu-4.internal", PRIVATE, port=8000) is not None
    assert problem("api.example", PUBLIC, port=443) is not None


def test_an_entry_with_a_port_opens_that_port_alone(settings: Any) -> None:
    name(settings, "10.9.9.9:8000", "[fd00::7]:8000")
    assert problem("10.9.9.9", "10.9.9.9", port=8000) is None
    assert problem("fd00::7", "fd00::7", port=8000) is None
    assert problem("10.9.9.9", "10.9.9.9") is None  # no port was given to judge by
    assert problem("10.9.9.9", "10.9.9.9", port=5432) is not None
    assert problem("fd00::7", "fd00::7", port=22) is not None
    assert problem("10.9.9.99", "10.9.9.99", port=8000) is not None


def test_one_private_address_among_public_ones_is_enough(settings: Any) -> None:
    name(settings, "*")
    assert "api.example is 10.1.2.3" in str(problem("api.example", PUBLIC, PRIVATE))


@pytest.mark.parametrize("address", [METADATA, "::ffff:169.254.169.254", "168.63.129.16", "fd00:ec2::254"])
def test_credentials_of_the_machine_are_behind_a_name_of_their_own_only(settings: Any, address: str) -> None:
    """A named host whose name is pointed there must not lead there; two of these addresses are not even private."""
    name(settings, "*", "gpu-3.internal")
    assert "credentials" in str(problem("gpu-3.internal", address))
    name(settings, str(ipaddress.ip_address(address)))
    assert problem(str(ipaddress.ip_address(address)), address) is None
