"""An executor without processes."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool


class Inline(Executor):
    """Workers that are this process; ``dies`` says which task kills them."""

    def __init__(self, dies=lambda turned: False):
        self.dies, self.deaths = dies, 0

    def submit(self, function, *args, **options):
        future = Future()
        if self.dies(args[1]):
            self.deaths += 1
            future.set_exception(BrokenProcessPool("gone"))
        else:
            future.set_result(function(*args, **options))
        return future
