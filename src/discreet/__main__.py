"""``python -m discreet``: the same as the command ``discreet``."""

from discreet.apps.cli.main import main

main()
