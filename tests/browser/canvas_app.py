"""A page with nothing but the canvas: ``streamlit run canvas_app.py``; ?fabric= names its drawing.

Its document is the drawing itself; undo, redo, duplicate and arrange are the shortest that do.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from nest_studio.components.drawing.canvas import canvas, pending

Document = dict[str, list[dict[str, Any]]]


def element(name: str, role: str, group: str = "") -> dict[str, Any]:
    return {"id": name, "role": role, "radix": 0, "group": group, "x": None, "y": None}


def link(a: str, b: str, bandwidth: float = 50.0, latency: float = 0.6) -> dict[str, Any]:
    return {"a": a, "b": b, "bandwidth_GBps": bandwidth, "count": 1, "latency_us": latency}


def cluster(pods: int, racks: int, nodes: int, devices: int, *, nics: bool = False) -> Document:
    """Pods of racks of nodes, two leaves per rack, spines per pod, cores above."""
    elements, links = [], []
    cores = [f"core{index}" for index in range(4)]
    elements += [element(core, "switch") for core in cores]
    for pod in (f"pod{index}" for index in range(pods)):
        spines = [f"{pod}-spine{index}" for index in range(4)]
        elements += [element(spine, "switch", pod) for spine in spines]
        links += [link(spine, core) for spine, core in zip(spines, cores, strict=True)]
        for rack in (f"{pod}/rack{index}" for index in range(racks)):
            leaves = [f"{rack.replace('/', '-')}-leaf{index}" for index in range(2)]
            elements += [element(leaf, "switch", rack) for leaf in leaves]
            links += [link(leaf, spine) for leaf in leaves for spine in spines]
            for node in (f"{rack}/node{index}" for index in range(nodes)):
                stem = node.replace("/", "-")
                hub = f"{stem}-switch"
                elements.append(element(hub, "switch", node))
                if not nics:
                    links += [link(hub, leaf) for leaf in leaves]
                for index in range(devices):
                    device = f"{stem}-device{index}"
                    elements.append(element(device, "device", node))
                    links.append(link(device, hub, 450.0, 0.3))
                    if nics:
                        nic = f"{stem}-nic{index}"
                        elements.append(element(nic, "nic", node))
                        links += [link(device, nic, 64.0), link(nic, leaves[index % 2])]
    return {"elements": elements, "links": links}


def subnet(leaves: int, hosts: int, fewer: int) -> Document:
    """Hosts of eight devices and two NICs on their leaf, below four spines; the last has fewer."""
    spines = [f"spine{index}" for index in range(4)]
    elements, links = [element(spine, "switch") for spine in spines], []
    for leaf in range(leaves):
        elements.append(element(f"leaf{leaf}", "switch"))
        links += [link(f"leaf{leaf}", spine) for spine in spines]
        for host in range(hosts - (fewer if leaf == leaves - 1 else 0)):
            name = f"box{leaf}-{host}"
            elements.append(element(name, "switch", name))
            for index in range(8):
                elements.append(element(f"{name} gpu{index}", "device", name))
                links.append(link(f"{name} gpu{index}", name, 300.0))
            for rail in range(2):
                nic = f"{name} nic{rail}"
                elements.append(element(nic, "nic", name))
                links.append(link(nic, f"leaf{leaf}", 25.0))
                links += [link(f"{name} gpu{4 * rail + at}", nic, 25.0) for at in range(4)]
    return {"elements": elements, "links": links}


FABRICS = {
    "subnet": lambda: subnet(16, 6, 2),
    "empty": lambda: {"elements": [], "links": []},
    "node": lambda: cluster(1, 1, 2, 4),
    "small": lambda: cluster(1, 2, 2, 8),
    "1024": lambda: cluster(4, 8, 4, 8),
    "1024-nics": lambda: cluster(4, 8, 4, 8, nics=True),
}


def duplicate(document: Document, ids: list[str]) -> Document:
    names = {name: f"{name}-copy" for name in ids}
    copies = [
        entry
        | {"id": names[entry["id"]], "x": entry["x"] + 40, "y": entry["y"] + 140}
        | {"group": f"{entry['group']}-copy" if entry["group"] else ""}
        for entry in document["elements"]
        if entry["id"] in names
    ]
    links = [
        entry | {"a": names[entry["a"]], "b": names[entry["b"]]}
        for entry in document["links"]
        if entry["a"] in names and entry["b"] in names
    ]
    return {"elements": document["elements"] + copies, "links": document["links"] + links}


def arranged(document: Document) -> Document:
    elements = [entry | {"x": None, "y": None} for entry in document["elements"]]
    return document | {"elements": elements}


def act(name: str, ids: list[str]) -> None:
    state = st.session_state
    before, after = state.before, state.after
    if name == "undo" and before:
        state.after, state.document, state.before = (
            [*after, state.document],
            before[-1],
            before[:-1],
        )
    elif name == "redo" and after:
        state.before, state.document, state.after = (
            [*before, state.document],
            after[-1],
            after[:-1],
        )
    elif name in ("duplicate", "arrange"):
        change = arranged(state.document) if name == "arrange" else duplicate(state.document, ids)
        state.before, state.document, state.after = [*before, state.document], change, []
    state.revision += 1


def main() -> None:
    st.set_page_config(layout="wide")
    state = st.session_state
    if "document" not in state:
        state.document = FABRICS[st.query_params.get("fabric", "empty")]()
        state.before, state.after, state.revision = [], [], 1
    received = pending("canvas")
    if received.drawing:
        state.before = [*state.before, state.document]
        state.document = {part: list(received.drawing[part]) for part in ("elements", "links")}
        state.after = []
        state.revision += 1
    if received.action:
        act(received.action["name"], received.action["ids"])
    shown = {"revision": state.revision, "name": "Harness", **state.document}
    canvas(shown, key="canvas", height=560, editable="look" not in st.query_params)
    st.button("Run again")
    with st.expander("Document"):
        st.json({"revision": state.revision, "links": state.document["links"][:20]})


main()
