"""`python -m rotorid`, the same as `rotorid`."""

from rotorid.cli import main

if __name__ == "__main__":
    main()
