"""What may still change: each module here is imported by its own name."""

__all__ = ()
