"""Decide which user-supplied addresses this installation may send to: one rule for all of them.

The right to add a webhook or an endpoint must not give access to what only this installation's machines can reach.
`hosts` are those that the operator has named, EVALBOARD_ENDPOINT_HOSTS, and our own services as `!host:port`.
"""

import ipaddress
from collections.abc import Collection, Iterable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# IPv6 addresses that stand for an IPv4 one: translation (RFC 6052, RFC 8215) and the old compatible form.
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
COMPATIBLE = ipaddress.IPv6Network("::/96")
# Reserved for protocols (RFC 6890) and former relays (RFC 7526); not every Python calls them so.
SPECIAL = (ipaddress.IPv4Network("192.0.0.0/24"), ipaddress.IPv4Network("192.88.99.0/24"))
# Where clouds hand a machine its own credentials. A host's name never leads there; the address itself must be named.
METADATA = frozenset(
    ipaddress.ip_address(address)
    for address in ("169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200", "fd00:ec2::254")
)
EVERY_PUBLIC_HOST = "*"


def endpoint_host_problem(
    host: str, addresses: Iterable[Address], *, hosts: Collection[str], port: int | None = None
) -> str | None:
    """Return why no call may go to an endpoint at a host with these addresses; None where it may.

    One address that may not be reached is enough. `port` None: of an entry with a port, the host alone counts.
    """
    addresses = list(addresses)
    if _is_own(host, addresses, port, hosts):
        return (
            f"Port {port} of {host} is one of Evalboard's own services, and no endpoint is called there. Where another "
            "machine is meant, give its name in place of a local address."
        )
    named = _is_named(host, port, hosts)
    if not named and EVERY_PUBLIC_HOST not in hosts:
        return (
            f"{host} is not among the hosts that endpoints may have. The operator can add it to "
            "EVALBOARD_ENDPOINT_HOSTS."
        )
    for address in addresses:
        where = str(address) if host == str(address) else f"{host} is {address}, which"
        if _is_metadata(address) and str(address) not in hosts:
            return (
                f"{where} hands out credentials of the machine. It is called only where EVALBOARD_ENDPOINT_HOSTS names "
                "the address itself."
            )
        if not named and not is_public(address):
            return f"{where} is not on the open internet. The operator can add the host to EVALBOARD_ENDPOINT_HOSTS."
    return None


def plain_http_problem(host: str, *, hosts: Collection[str], port: int) -> str | None:
    """Return why no unencrypted call may go to a host; None if the list names it."""
    if _is_named(host, port, hosts):
        return None
    return (
        "Its address must begin with https://, because the key goes with every call; EVALBOARD_ENDPOINT_HOSTS may name "
        "the host."
    )


def is_public(address: Address) -> bool:
    """Tell whether an address, and every address embedded in it, is on the open internet."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.is_site_local:  # deprecated, still routed inside some networks
            return False
        if (inner := _stands_for(address)) is not None and not is_public(inner):
            return False
        if address.ipv4_mapped is not None:
            return True  # its IPv4 address is; Python's own words on mapped ones differ by version
    elif any(address in network for network in SPECIAL):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _is_named(host: str, port: int | None, hosts: Collection[str]) -> bool:
    name = host.casefold().rstrip(".").removeprefix("[").removesuffix("]")
    if name in hosts:
        return True
    start = f"[{name}]:" if ":" in name else f"{name}:"
    if port is None:
        return any(entry.startswith(start) and entry[len(start) :].isdigit() for entry in hosts)
    return f"{start}{port}" in hosts


def _is_own(host: str, addresses: Iterable[Address], port: int | None, hosts: Collection[str]) -> bool:
    name = host.casefold().rstrip(".").removeprefix("[").removesuffix("]")
    names = {name, *map(str, addresses)}
    if name.rpartition(".")[2] == "localhost" or any(map(_is_here, addresses)):
        names.add("127.0.0.1")
    return any(f"!{known}:{port}" in hosts for known in names)


def _is_here(address: Address) -> bool:
    inner = _stands_for(address) if isinstance(address, ipaddress.IPv6Address) else None
    return any(each.is_loopback or each.is_unspecified for each in (address, inner) if each is not None)


def _is_metadata(address: Address) -> bool:
    inner = _stands_for(address) if isinstance(address, ipaddress.IPv6Address) else None
    return address in METADATA or inner in METADATA


def _stands_for(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in NAT64 or address in COMPATIBLE:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return None
