"""`python -m penstock`: the command line."""

import sys

from penstock._cli import main

sys.exit(main())
