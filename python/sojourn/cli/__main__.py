"""Entry point of `python -m sojourn.cli`."""

from sojourn.cli import main

main()
