"""When the server collects garbage."""

from __future__ import annotations

import gc

import pytest

from nest_studio.server.garbage import EVERY_S, Collector


class Cycle:
    """Freed by a collection alone."""

    def __init__(self):
        self.itself = self


@pytest.fixture
def collected():
    """How often a cycle left behind was freed."""
    freed = []
    original = gc.isenabled()
    gc.disable()
    Cycle.__del__ = lambda self: freed.append(1)
    yield freed
    del Cycle.__del__
    gc.unfreeze()
    if original:
        gc.enable()


@pytest.mark.check
def test_cycles_are_freed_at_once_and_then_only_after_a_while(collected):
    now = [100.0]
    collector = Collector(lambda: now[0])
    for passed, total in ((0.0, 1), (EVERY_S / 2, 1), (EVERY_S / 2, 3), (EVERY_S - 1, 3)):
        now[0] += passed
        Cycle()
        collector.after_run()
        assert len(collected) == total


@pytest.mark.check
def test_what_stands_at_the_first_run_is_never_looked_at_again(collected):
    collector = Collector()
    before = gc.get_freeze_count()
    collector.after_run()
    frozen = gc.get_freeze_count()
    assert frozen > before
    collector.after_run()
    assert gc.get_freeze_count() <= frozen
