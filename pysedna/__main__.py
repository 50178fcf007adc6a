"""`python -m pysedna`: the same as the `pysedna` command."""

from pysedna.cli import main

if __name__ == "__main__":
    main()
