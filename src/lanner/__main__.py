"""``python -m lanner``."""

from lanner.cli import main

main()
