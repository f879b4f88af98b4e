"""`evalboard signin`: a fresh sign-in link of the installation that runs on this machine."""

from collections.abc import Mapping

from evalboard.local.manage import manage, running_folder

PERSON = "local"  # as whom `evalboard up` signs its own person in


def fresh_link(environment: Mapping[str, str]) -> str:
    """Return a sign-in address that works once, within a day. Raises CannotStart if nothing runs here."""
    folder, address = running_folder(environment)
    return address + manage(environment, folder, "sign_in_link", PERSON, failed="No link could be made")
