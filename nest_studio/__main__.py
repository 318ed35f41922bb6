"""``python -m nest_studio`` is the command ``nest-studio``."""

from nest_studio.cli import main

if __name__ == "__main__":
    main()
