"""TEPA: the life of a language agent's memories, as a library and under an audit dashboard."""

__version__ = "0.1.0"

__all__ = ["__version__"]
