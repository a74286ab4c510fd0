"""`python -m arecall`."""

from arecall.cli import main

main()
