"""`python -m rotorid.studies.register`."""

import sys

from rotorid.studies.register.command import main

if __name__ == "__main__":
    sys.exit(main())
