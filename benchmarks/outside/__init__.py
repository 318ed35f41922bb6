"""Tools of other people, run beside ours: each in a virtual environment of its own.

``make outside`` (``python -m benchmarks.outside``) goes through the modules of `TOOLS`, one process
at a time, prints a table and writes it to ``docs/outside.md``. A module names its tool (`Tool`:
version, what pip installs) and has a function ``rows`` that installs it below ``build/outside``,
runs a program of ``inside/`` with that tool's own Python and says what came of it, `Row` by row.
Programs in ``inside/`` import nothing of ours. What they find becomes a test on small facts.
"""
