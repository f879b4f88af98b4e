"""Check where webhooks may send: any public host, and those that the configuration allows."""

from collections.abc import Iterable

from django.conf import settings

from evalboard.calling.addresses import Address, is_public


def host_problem(host: str, addresses: Iterable[Address]) -> str | None:
    """Return why a host with these addresses is refused, None if allowed. One private address is enough."""
    if is_allowed(host):
        return None
    for address in addresses:
        if not is_public(address):
            where = str(address) if host == str(address) else f"{host} is {address}, which"
            return (
                f"{where} is not on the open internet. The operator can allow the host in "
                "EVALBOARD_WEBHOOK_ALLOW_PRIVATE."
            )
    return None


def is_allowed(host: str) -> bool:
    """Tell whether configuration lets messages go to this host, whatever its address is."""
    return host.casefold().rstrip(".") in settings.WEBHOOK_ALLOW_PRIVATE
