"""`python -m sojourn.cli`."""

from sojourn.cli import main

main()
