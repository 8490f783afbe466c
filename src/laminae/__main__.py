"""`python -m laminae` is the command line."""

from laminae.cli import main

main()
