"""The version of the installed distribution, which records and results carry."""

from importlib.metadata import version

VERSION: str = version("arecall")
