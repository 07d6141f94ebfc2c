"""The compute capability of the simulated device, such as (7, 5) of a T4 and (9, 0) of an H100."""

_capability = (9, 0)


def capability() -> tuple[int, int]:
    """Major and minor number."""
    return _capability


def set_capability(text: str) -> None:
    """Set the capability from text such as "7.5"."""
    global _capability
    major, _, minor = text.partition(".")
    _capability = int(major), int(minor or 0)
