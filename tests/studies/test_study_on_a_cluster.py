"""One study on processes, on a cluster of two workers, and here: equal to the bit."""

from __future__ import annotations

import pytest
from distributed import LocalCluster
from studies import written

from nest_core.documents.errors import InputError
from nest_core.studies import engine
from nest_core.studies.engine import WorkerPool
from nest_core.studies.rows import rows_of
from nest_core.studies.study import load_study
from nest_studio.jobs.workers import cluster, cluster_size, processes
from nest_studio.session.store import Database, StoredAnswers


@pytest.mark.check
def test_engines_differ_in_nothing(tmp_path):
    study = load_study(str(written(tmp_path)), tmp_path)
    found = []
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as local:
        address = local.scheduler_address
        assert cluster_size(address) == 2
        for name, pool in (
            ("cluster", lambda: cluster(address)),
            ("two", lambda: processes(2)),
            ("one", lambda: processes(1)),
        ):
            answers = StoredAnswers(Database(f"sqlite:///{tmp_path}/{name}.sqlite"))
            count = 1 if name == "one" else 2
            ended = engine.run(study.points(), answers, WorkerPool(pool, count))
            assert (ended.computed, ended.failed, ended.complete) == (len(study), 0, True)
            found.append(list(rows_of(study, answers)))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense", "tcp://"])
def test_a_dead_scheduler_is_said(address, monkeypatch):
    monkeypatch.setattr("nest_studio.jobs.workers.PATIENCE_S", 0.5)
    with pytest.raises(InputError, match="--dask must name a scheduler that answers"):
        cluster_size(address)
