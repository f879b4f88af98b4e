"""Which addresses a webhook's message may go to: any on the open internet, and the hosts that configuration allows.

Whoever may add a webhook must not thereby reach what only this installation's machines can reach.
"""

import ipaddress
from collections.abc import Iterable

from django.conf import settings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# IPv6 addresses that stand for an IPv4 one: translation (RFC 6052, RFC 8215) and the old compatible form.
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
COMPATIBLE = ipaddress.IPv6Network("::/96")
# Reserved for protocols (RFC 6890) and former relays (RFC 7526); not every Python calls them so.
SPECIAL = (ipaddress.IPv4Network("192.0.0.0/24"), ipaddress.IPv4Network("192.88.99.0/24"))


def host_problem(host: str, addresses: Iterable[Address]) -> str | None:
    """Return why nothing may be sent to a host with these addresses; None where it may. One private one is enough."""
    if is_allowed(host):
        return None
    for address in addresses:
        if not is_public(address):
            where = str(address) if host == str(address) else f"{host} is {address}, which"
            return (
                f"{where} is not on the open internet. Whoever runs this installation can allow the host in "
                "EVALBOARD_WEBHOOK_ALLOW_PRIVATE."
            )
    return None


def is_allowed(host: str) -> bool:
    """Tell whether configuration lets messages go to this host, whatever its address is."""
    return host.casefold().rstrip(".") in settings.WEBHOOK_ALLOW_PRIVATE


def is_public(address: Address) -> bool:
    """Tell whether an address, and every address that it stands for, is on the open internet."""
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
