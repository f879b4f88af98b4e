"""The version that pages name."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("evalboard")
except PackageNotFoundError:  # run from a checkout that is not installed
    VERSION = ""
