"""Instance files: what is read, and that every fault ends in one sentence."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from published_tiny import tiny

from nest_core.documents.errors import InputError
from nest_core.paper.published import (
    ArtifactBaseline,
    Instance,
    parse_instance,
    read_instance,
    solve,
)

Document = dict[str, Any]


def _node(document: Document, **changes: object) -> Document:
    document["nodes"]["1"][1] |= changes
    return document


def _edge(document: Document, **changes: object) -> Document:
    document["edges"]["1"][1] |= changes
    return document


def _with_edge(source: int, target: int) -> Document:
    document = tiny()
    edge = {"sourceId": source, "destId": target, "communicationCost": 1}
    document["edges"]["1"].append(edge)
    return document


def _without(key: str) -> Document:
    document = tiny()
    del document[key]
    return document


def _disconnected() -> Document:
    document = tiny()
    document["edges"]["1"] = document["edges"]["1"][:1]
    return document


def _branching() -> Document:
    document = _edge(tiny(), sourceId=-1)
    return document


def _embedding_last() -> Document:
    document = tiny()
    for edge in document["edges"]["1"]:
        edge["sourceId"], edge["destId"] = edge["destId"], edge["sourceId"]
    return document


def _second_width(change: Callable[[list[Document], list[Document]], None]) -> Document:
    document = tiny()
    for key in ("nodes", "edges"):
        document[key]["2"] = copy.deepcopy(document[key]["1"])
    change(document["nodes"]["2"], document["edges"]["2"])
    return document


def _fewer_layers(nodes: list[Document], edges: list[Document]) -> None:
    nodes.pop()
    edges.pop()


def _other_layer(nodes: list[Document], edges: list[Document]) -> None:
    nodes[-1]["id"] = edges[-1]["destId"] = 7


def _many_layers(count: int) -> Document:
    document = tiny()
    kind = document["nodes"]["1"][0]
    document["nodes"]["1"] = [{**kind, "id": layer} for layer in range(count)]
    return document


def _baseline(**changes: object) -> Document:
    plan = {"num_transformer_layers": 2, "p": 2, "d": 1, "t": 1, **changes}
    return tiny(baselines={"Manual": plan})


def _deep(levels: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


FAULTS: list[tuple[object, str]] = [
    # Shape of the document.
    ([], "instance must be an object"),
    (None, "instance must be an object with named keys, but is None"),
    (_without("bws"), "instance must have the key bws"),
    (_without("nodes"), "instance must have the key nodes"),
    (tiny(bandwith=1), "instance must have known keys only, but is 'bandwith'"),
    ({**tiny(), 3: 1}, "instance must have text keys"),
    # Single figures.
    (tiny(maxDevices=True), "maxDevices must be a number, but is True"),
    (tiny(maxDevices="2"), "maxDevices must be a number, but is '2'"),
    (tiny(maxDevices=None), "maxDevices must be a number, but is None"),
    (tiny(maxDevices=2.5), "maxDevices must be a whole number, but is 2.5"),
    (tiny(maxDevices=0), "maxDevices must be from 1 to 1,048,576, but is 0"),
    (tiny(maxDevices=2**21), "maxDevices must be from 1 to 1,048,576, but is 2097152"),
    (tiny(maxDevices=10**5000), r"maxDevices must be from 1 .* 'an integer of 16610 bits'"),
    (tiny(maxMemoryPerDevice=math.nan), "maxMemoryPerDevice must be from 1 to .* nan"),
    (tiny(maxMemoryPerDevice=math.inf), "maxMemoryPerDevice must be from 1 to .* inf"),
    (tiny(maxMemoryPerDevice=-1), "maxMemoryPerDevice must be from 1 to"),
    (tiny(mbsInBatch=0), "mbsInBatch must be from 1 to"),
    (tiny(mbsInBatch=1.5), "mbsInBatch must be a whole number"),
    (tiny(ep_degree=0), "ep_degree must be from 1 to"),
    (tiny(cp_degree=-1), "cp_degree must be from 1 to"),
    (tiny(activationRecomputation=1), "activationRecomputation must be true or false"),
    (tiny(optimizerAlgorithm="Lion"), "optimizerAlgorithm must be one of SGD, Adam"),
    (tiny(sp_enabled="no"), "sp_enabled must be true or false"),
    (tiny(frequency="fast"), "frequency must be a number"),
    # Levels.
    (tiny(bws=[]), "bws must have 1 to 32 entries"),
    (tiny(bws=20), "bws must be a list"),
    (tiny(bws=[20, 0]), r"bws\[1\] must be from 1e-09"),
    (tiny(bws=[20]), r"latency_per_level must have one entry per level of bws \(1\)"),
    (tiny(latency_per_level=[1]), r"latency_per_level must have one entry per level"),
    (tiny(devices_per_level=[2]), r"devices_per_level must have one entry per level"),
    (tiny(latency_per_level=[1, -1]), r"latency_per_level\[1\] must be from 0"),
    (tiny(devices_per_level=[1, 3]), r"devices_per_level must multiply to maxDevices \(2\).* 3"),
    (tiny(devices_per_level=[-1, -2]), r"devices_per_level\[0\] must be from 1"),
    # Layers.
    (tiny(nodes={}), "nodes must hold at least one tensor width"),
    (tiny(nodes=[]), "nodes must be an object"),
    (tiny(nodes={"0": []}), "nodes must have widths from 1"),
    (tiny(nodes={"01": []}), "nodes must have widths from 1"),
    (tiny(nodes={"9999999": []}), "nodes must have widths from 1"),
    (tiny(edges={"2": []}), "edges must have the tensor widths of nodes"),
    (tiny(nodes={"1": []}), r'nodes\["1"\] must have 1 to 2,000 entries'),
    (_many_layers(2001), r'nodes\["1"\] must have 1 to 2,000 entries, but is 2001'),
    (tiny(nodes={"1": [3]}), r'nodes\["1"\]\[0\] must be an object'),
    (_node(tiny(), id=-1), r'nodes\["1"\]\[1\].id must be unique, but is -1'),
    (_node(tiny(), id="0"), r'nodes\["1"\]\[1\].id must be a number'),
    (_node(tiny(), parameterSize=-3), r'nodes\["1"\]\[1\].parameterSize must be from 0'),
    (_node(tiny(), optimalLatencyFw="3"), r"optimalLatencyFw must be a number"),
    (_node(tiny(), optimalLatencyBw=False), r"optimalLatencyBw must be a number"),
    (_node(tiny(), activationSize=1e300), r"activationSize must be from 0 to 1e\+18"),
    (_node(tiny(), colour="red"), r"must have known keys only, but is 'colour'"),
    (_node(tiny(), energy="low"), r"energy must be a number"),
    (_node(tiny(), isTensorParallelized=1), r"isTensorParallelized must be true or false"),
    # Edges.
    (_edge(tiny(), destId=9), r'edges\["1"\]\[1\].destId must be a layer.s id, but is 9'),
    (_edge(tiny(), communicationCost=-1), r"communicationCost must be from 0"),
    (_edge(tiny(), weight=1), r"must have known keys only, but is 'weight'"),
    (_with_edge(-1, 0), r"must be the only edge of its pair"),
    (_with_edge(1, -1), r"must have no cycle"),
    (_with_edge(0, 0), r"must have no cycle, but is 'layer 0 waits for itself'"),
    (_disconnected(), r"no edge -1 to 1"),
    (_branching(), r"must lead through all layers one after another"),
    (_embedding_last(), r"must start at the embedding \(id -1\), but is 'layer 1 first'"),
    (
        _second_width(_fewer_layers),
        r"layers of the other widths.*layer none where the others have 1",
    ),
    (_second_width(_other_layer), r"layers of the other widths.*layer 7 where the others have 1"),
    # Baselines.
    (tiny(baselines=[]), "baselines must be an object"),
    (_baseline(p=0), r"baselines\['Manual'\].p must be from 1"),
    (_baseline(d=1.5), r"baselines\['Manual'\].d must be a whole number"),
    (_baseline(num_transformer_layers=4), r"num_transformer_layers must be from 1 to 3"),
    (_baseline(speed=1), r"must have known keys only, but is 'speed'"),
    (_baseline(layer_partition=[2]), r"layer_partition must have p \(2\) entries"),
    (_baseline(layer_partition=[2, 2]), r"must add up to num_transformer_layers \(2\).* 4"),
    (tiny(baselines={"M" * 100: {}}), "baselines must have names of 1 to 80 letters"),
]


@pytest.mark.parametrize(("document", "message"), FAULTS, ids=[fault[1] for fault in FAULTS])
def test_faults_of_a_document_are_named(document: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_instance(document)
    _assert_one_sentence(caught.value)


def _assert_one_sentence(error: InputError) -> None:
    text = str(error)
    assert "\n" not in text
    assert text.endswith(".")
    assert len(text) < 400


@pytest.mark.parametrize("key", ["maxMemoryPerDevice", "bws", "nodes", "baselines", "sp_enabled"])
def test_deep_values_are_refused_without_a_look_inside(key: str) -> None:
    with pytest.raises(InputError, match=r"must (be|have)"):
        parse_instance(tiny(**{key: _deep(50_000)}))


def test_zero_latencies_are_refused() -> None:
    document = tiny()
    for node in document["nodes"]["1"]:
        node |= {"optimalLatencyFw": 0, "optimalLatencyBw": 0}
    with pytest.raises(InputError, match="latencies that add up to at least 1e-12, but is 0"):
        parse_instance(document)


def _written(folder: Path, content: bytes) -> Path:
    path = folder / "instance.json"
    path.write_bytes(content)
    return path


def _text(**changes: object) -> str:
    return json.dumps(tiny(**changes))


BROKEN_FILES: list[tuple[bytes, str]] = [
    (b"", "must be valid JSON"),
    (b"{", "must be valid JSON"),
    (b"\xff\xfe{}", "must be UTF-8 text"),
    (b"[" * 100_000, "must nest a few levels deep"),
    (b'{"a":' * 100_000, "must nest a few levels deep"),
    (b"[" * 900 + b"]" * 900, "must be an object"),
    (b"[]", "instance must be an object"),
    (b"null", "instance must be an object"),
    (_text(mbsInBatch=math.nan).encode(), "finite numbers only, but is 'NaN'"),
    (_text(mbsInBatch=-math.inf).encode(), "finite numbers only, but is '-Infinity'"),
    (_text().replace("4.0", "1e999").encode(), "mbsInBatch must be from"),
    (_text().replace("4.0", "1" * 5000).encode(), "must be valid JSON"),
    (_text().replace("4.0", "1" * 4000).encode(), "mbsInBatch must be from"),
    (_text().replace('"bws"', '"ep_degree"').encode(), "must not repeat a key.* 'ep_degree'"),
    (b" " * 5_000_001, "must hold at most 5,000,000 bytes"),
]


@pytest.mark.parametrize(
    ("content", "message"),
    BROKEN_FILES,
    ids=[f"{fault[1]} {len(fault[0])}" for fault in BROKEN_FILES],
)
def test_faults_of_a_file_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_instance(_written(tmp_path, content))
    _assert_one_sentence(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.json", "must be a readable file"),
        ("absent.json\0", "must be a file's path"),
        (".", "must be a readable file"),
        ("x" * 5000, "must be a readable file"),
    ],
)
def test_paths_that_lead_to_no_file(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_instance(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_file_is_read(tmp_path: Path) -> None:
    path = _written(tmp_path, b"\xef\xbb\xbf" + _text().encode())
    instance = read_instance(str(path))
    assert instance == parse_instance(tiny())
    assert instance.layer_ids == (-1, 0, 1)
    assert instance.widths[0].edges == ((0, 1, 40.0), (1, 2, 80.0))
    assert instance.micro_batches == 4
    assert hash(instance) == hash(read_instance(path))


def test_order_of_the_file_does_not_matter() -> None:
    document = tiny()
    document["nodes"]["1"].reverse()
    document["edges"]["1"].reverse()
    assert parse_instance(document) == parse_instance(tiny())


def test_edges_may_skip_layers() -> None:
    assert parse_instance(_with_edge(-1, 1)).widths[0].edges[1] == (0, 2, 1.0)


def test_baselines_keep_their_partition() -> None:
    document = _baseline(layer_partition=[2, 0])
    assert parse_instance(document).baselines == (ArtifactBaseline("Manual", 2, 1, 1, 2, (2, 0)),)


_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-3, 9),
    st.sampled_from([10**400, -(10**400), 2**63, 1e18, 1e-300, 1e300, 0.0, -0.0, 2**20]),
    st.floats(),
    st.text(max_size=5),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=3) | st.sampled_from(["1", "2", "id", "p"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


def _containers(value: object) -> list[Any]:
    found: list[Any] = []
    if isinstance(value, dict | list):
        found.append(value)
        for entry in value.values() if isinstance(value, dict) else value:
            found += _containers(entry)
    return found


def _instance_or_sentence(read: Callable[[], Instance]) -> Instance | None:
    try:
        instance = read()
    except InputError as error:
        _assert_one_sentence(error)
        return None
    assert isinstance(instance, Instance)
    return instance


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
@pytest.mark.check
def test_any_mutation_gives_an_instance_or_one_sentence(data: st.DataObject) -> None:
    document: Any = _baseline(layer_partition=[1, 1])
    for _ in range(data.draw(st.integers(1, 3))):
        container = data.draw(st.sampled_from(_containers(document)))
        keys = list(container) if isinstance(container, dict) else list(range(len(container)))
        if not keys:
            continue
        key = data.draw(st.sampled_from(keys))
        action = data.draw(st.sampled_from(["replace", "replace", "remove", "copy", "add"]))
        if action == "replace":
            container[key] = data.draw(_VALUES)
        elif action == "remove":
            del container[key]
        elif action == "copy":
            container[key] = copy.deepcopy(container[data.draw(st.sampled_from(keys))])
        elif isinstance(container, dict):
            container[data.draw(st.text(max_size=4))] = data.draw(_VALUES)
        else:
            container.append(data.draw(_VALUES))
    instance = _instance_or_sentence(lambda: parse_instance(document))
    if instance is None:
        return
    solution = solve(instance)
    if solution.feasible:
        assert math.isfinite(solution.time_per_batch or math.nan)
        assert math.isfinite(solution.throughput or math.nan)
    else:
        assert solution.reason


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    edits=st.lists(
        st.tuples(st.integers(0, 10_000), st.integers(0, 3), st.binary(max_size=3)), max_size=4
    )
)
def test_any_bytes_give_an_instance_or_one_sentence(
    tmp_path: Path, edits: list[tuple[int, int, bytes]]
) -> None:
    content = bytearray(_text().encode())
    for place, removed, inserted in edits:
        start = place % len(content)
        content[start : start + removed] = inserted
    path = _written(tmp_path, bytes(content))
    _instance_or_sentence(lambda: read_instance(path))
