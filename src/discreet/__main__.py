"""``python -m discreet``: the same as the command ``discreet``."""

from discreet.cli.main import main

main()
