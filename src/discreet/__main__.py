"""Runs the command line as `python -m discreet`."""

import sys

from discreet.cli import main

sys.exit(main())
