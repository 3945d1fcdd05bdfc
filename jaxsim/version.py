"""The version, which the package's metadata, saved models and the command read here."""

__version__ = "0.2.0"
