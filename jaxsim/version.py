"""The version of the package, read by its metadata, by saved models and by the command line."""

__version__ = "0.2.0"
