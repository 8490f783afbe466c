"""The version, on its own so that every layer can say which laminae wrote a file."""

__version__ = "0.2.0"
