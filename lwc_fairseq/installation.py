"""Installation hints for missing requirements. This module imports only the standard library."""

FAIRSEQ = "0.12.2"


def how_to_install(error: ModuleNotFoundError) -> str:
    """Return one line that names what is missing and the command that installs it."""
    if error.name == "fairseq":
        return f"lwc_fairseq needs fairseq {FAIRSEQ}; install it with: pip install --no-deps fairseq=={FAIRSEQ}"
    return f"{error}; install what the package needs with: pip install ."
