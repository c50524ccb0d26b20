"""`python -m antiphon.cli`: the command `antiphon` without its launcher."""

from antiphon.cli import main

if __name__ == "__main__":
    main()
