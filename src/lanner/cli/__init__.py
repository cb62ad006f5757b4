"""The ``lanner`` command."""

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    from lanner.cli.app import app

    app(prog_name="lanner")
