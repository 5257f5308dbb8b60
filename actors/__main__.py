"""`python -m actors` is the command line."""

import sys

from actors.cli import main

if __name__ == "__main__":
    sys.exit(main())
