"""What to install when something that this package needs is missing. Imports only the standard library."""

FAIRSEQ = "0.12.2"


def how_to_install(error: ModuleNotFoundError) -> str:
    """What is missing, and the command that installs it, in one line."""
    if error.name == "fairseq":
        return f"lwc_fairseq needs fairseq {FAIRSEQ}; install it with: pip install --no-deps fairseq=={FAIRSEQ}"
    return f"{error}; install what the package needs with: pip install ."
