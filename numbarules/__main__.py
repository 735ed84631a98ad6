"""`python -m numbarules`: the command `numbarules`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
