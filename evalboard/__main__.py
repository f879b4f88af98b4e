"""`python -m evalboard`."""

from evalboard.cli.main import main

if __name__ == "__main__":
    main()
