"""The parts of the fabric page: its form, and the answer from the top down.

A fabric is brought as a file, kept in the library, and taken along in another format here.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace

import streamlit as st

from nest_core.calibration.acceptance.expected import accelerator_in
from nest_core.calibration.collectives.sweep import (
    LIBRARY_NETWORK,
    CollectiveSweep,
    Measured,
    load_measured,
)
from nest_core.documents import InputError, as_markdown, load_toml, named_file
from nest_core.hardware.collectives.library import KIND, load_library
from nest_core.interop.formats import FORMATS, TABLE_START, Assumed, FabricText, ImportedFabric
from nest_core.network.algorithms import ALGORITHMS, OPS
from nest_core.planner.baselines.cost_matrices import CostMatrices
from nest_core.report.explain.summary import Headline
from nest_core.report.figures.collectives import bandwidth_figure, size_label, time_figure
from nest_core.report.notebook import PinOutput, table_output
from nest_core.report.picture.matrix import pointed_picture
from nest_core.scenario import Scenario, file_stem
from nest_studio.components.show import (
    AnswerArea,
    facts,
    headline_row,
    show_fabric,
    show_picture,
    shown_width,
    told,
)
from nest_studio.design.canvas import design_page, new_drawing, own_from
from nest_studio.form import (
    ADDRESS,
    DEFAULT_FABRIC,
    NODE,
    DrawnForm,
    OneOf,
    Text,
    changes_in_words,
    fabric_group,
    fabric_scenario,
    is_own,
    other_accelerator,
    reset_fabric,
    uploads,
    widget,
    widget_value,
)
from nest_studio.jobs.tasks.fabrics import (
    CollectiveRequest,
    FabricAnswer,
    fabric_drawn,
    fabric_export,
    fabric_import,
    fabric_sweep,
)
from nest_studio.jobs.tasks.plans import level_matrices
from nest_studio.jobs.waiting import WorkerCrash, forget, given_up, panel, submitted
from nest_studio.plan.state import planned_scenario
from nest_studio.session.own_fabric import (
    OWN,
    forget_places,
    is_drawing,
    kept_names,
    open_from_library,
    opened_name,
    own_document,
    own_fabric,
    remember,
)
from nest_studio.session.store.documents import LONGEST
from nest_studio.session.stored import documents

__all__ = [
    "bring_controls",
    "explorer",
    "fabric_form",
    "fabric_picture",
    "heading",
    "levels",
    "library_controls",
    "no_heading",
    "pin_output",
    "take_along",
    "what_was_read",
]

UPLOAD = "fabric file"
ASSUMED = {
    "devices_per_node": ("Node size, devices", 1, 1024),
    "intra_bandwidth_GBps": ("Inside nodes, GB/s per device; empty: the accelerator's", 0.001, 1e6),
    "link_bandwidth_GBps": ("Links without a rate, GB/s", 0.001, 1e6),
    "hop_latency_us": ("Latency per link, µs", 0.0, 1e6),
}


def bring_controls() -> None:
    """Import a file or begin an empty drawing; below the form's fabric."""
    with st.container(horizontal=True, gap="small"):
        with st.popover("Import a file", width="stretch"):
            _import()
        st.button(
            "New drawing",
            on_click=new_drawing,
            width="stretch",
            help="An empty canvas on this page; it becomes your fabric on every page.",
        )
    failed = design_page().problems.get("import")
    if failed:
        st.error(as_markdown(failed))


def what_was_read(answer: FabricAnswer, *, own: bool) -> None:
    """Draw what was assumed or left out in reading a fabric, and what its prices miss."""
    about = own_fabric().notes
    if own and about:
        facts("As read: " + " ".join(_sentence(note) for note in about), kind="nest-quiet")
    for caveat in answer.caveats:
        facts(caveat, kind="nest-quiet")


def take_along(scenario: Scenario, answer: FabricAnswer) -> None:
    """Draw downloads in every format, with what each cannot hold."""
    with st.popover("Export"):
        format_ = st.selectbox(
            "Format",
            [name for name, entry in FORMATS.items() if entry.writes],
            key="export.format",
            format_func=lambda name: FORMATS[name].label,
            help="What the chosen format cannot hold stands below.",
        )
        # With the places of its elements, unless it is not what is being drawn now.
        document = own_document() if is_own(scenario) else None
        if document is not None and forget_places(document) == scenario.document["fabric"]:
            scenario = replace(scenario, document={"fabric": document})
        exported: FabricText | None = None
        with told(st.info):
            exported = panel(
                submitted(fabric_export, scenario, format_, place="export", urgent=False),
                "Writing it and reading it again to compare",
                key="export",
            )
        if exported is None:
            return
        lost = [_sentence(loss) for loss in exported.lost]
        facts(*(["Left out:", *lost] if lost else ["Holds everything."]), kind="nest-quiet")
        st.download_button(
            "↓ Download",
            lambda: exported.text,
            f"{file_stem(answer.title)}{FORMATS[format_].suffixes[0]}",
            on_click="ignore",
        )


def _import() -> None:
    readable = [entry.label for entry in FORMATS.values() if entry.reads]
    facts(f"Read: {', '.join(readable)}.", kind="nest-quiet")
    for name, (label, least, most) in ASSUMED.items():
        standard = getattr(Assumed(), name)
        st.number_input(
            label,
            least if standard is None else type(standard)(least),
            most if standard is None else type(standard)(most),
            standard,
            key=f"assumed.{name}",
            on_change=_read_again,
            help=f"{least:g} to {most:,.0f}; assumed where the file does not say.",
        )
    st.file_uploader(
        "Fabric file, and forwarding tables of its switches",
        accept_multiple_files=True,
        key=UPLOAD,
        on_change=_read,
        help="At most 5 MB each; of several fabrics the last is read. Tables are what dump_lfts "
        "prints of the subnet that ibnetdiscover printed. The files stay on this machine.",
    )


def _read() -> None:
    """Read the uploaded files anew; what is there stays if they cannot be read."""
    design_page().problems.pop("import", None)
    files = uploads(st.session_state.get(UPLOAD))
    if not files:
        return
    dumps = [file for file in files if file.getvalue().startswith(TABLE_START.encode())]
    fabric = next((file for file in reversed(files) if file not in dumps), files[-1])
    names = ", ".join(dict.fromkeys(file.name for file in (fabric, *dumps)))
    standard = asdict(Assumed())
    figures = {name: st.session_state.get(f"assumed.{name}", standard[name]) for name in ASSUMED}
    job = submitted(
        fabric_import,
        fabric.getvalue(),
        fabric.name,
        Assumed(**figures),
        b"\n".join(dump.getvalue() for dump in dumps),
        place="import",
    )
    try:
        imported: ImportedFabric = job.result()
    except InputError as error:
        design_page().problems["import"] = str(error)
        return
    except WorkerCrash as error:
        design_page().problems["import"] = f"{names} was not read: {error}."
        return
    finally:
        forget(job)  # the document is the session's now
    own_from(imported.document, (f"{FORMATS[imported.format].label}, {names}", *imported.notes))
    design_page().imported_revision = own_fabric().revision


def _read_again() -> None:
    """Read the files with other assumptions, unless what it gave was edited since."""
    if design_page().imported_revision in (None, own_fabric().revision):
        _read()


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


_SAVE, _PICK, _RENAME = "library.save", "library.pick", "library.rename"


def library_controls(scenario: Scenario) -> None:
    """Draw a box with the library; what was refused stands below it."""
    design_page().library_scenario = scenario
    with st.popover("Library", width="stretch"):
        facts("Fabrics kept by name, to be chosen on Plan and Compare too.", kind="nest-quiet")
        widget(
            _SAVE,
            Text(),
            opened_name(),
            label=f"Name, 1 to {LONGEST} characters",
            bind=None,
            max_chars=LONGEST,
            help="The one that is open is saved over under its own name; no other is.",
        )
        st.button("Save the shown fabric", on_click=_save, width="stretch", key="library.saving")
        names = kept_names()
        if names:
            widget(
                _PICK,
                OneOf(names),
                names[0],
                label="Kept",
                bind=None,
                help="Opened, it becomes your own fabric.",
            )
            with st.container(horizontal=True, gap="small"):
                st.button("Open", on_click=_open, key="library.open")
                st.button("Delete", on_click=_delete, key="library.delete")
            widget(_RENAME, Text(), "", label="New name", bind=None, max_chars=LONGEST)
            st.button("Rename", on_click=_rename, key="library.renaming")
        else:
            facts("Nothing is kept yet.", kind="nest-quiet")
    if problem := design_page().problems.get("library"):
        st.error(as_markdown(problem))


def _save() -> None:
    name = widget_value(_SAVE, Text()) or ""
    scenario = design_page().library_scenario
    if scenario is None:
        return
    document = own_document() if is_own(scenario) else None
    if document is None or not is_drawing(document):
        document = scenario.fabric_table
    with design_page().noting("library"):
        remember(documents("fabrics").save(name, document, replace=name.strip() == opened_name()))


def _open() -> None:
    name = widget_value(_PICK, OneOf(kept_names()))
    if name is not None:
        design_page().problems.pop("library", None)
        open_from_library(name)
        reset_fabric()
        st.session_state[_SAVE] = name


def _rename() -> None:
    old, new = widget_value(_PICK, OneOf(kept_names())), widget_value(_RENAME, Text()) or ""
    if old is None:
        return
    with design_page().noting("library"):
        name = documents("fabrics").rename(old, new)
        if opened_name() == old:
            remember(name)
        st.session_state[_PICK] = name


def _delete() -> None:
    name = widget_value(_PICK, OneOf(kept_names()))
    if name is not None:
        with design_page().noting("library"):
            documents("fabrics").delete(name)


IDEAL_LINKS = "ideal links"
LARGEST_GROUP = 1_048_576
# Options are what the address says, so they are words and not names of the code.
LIBRARY, FASTEST = "as plans", "fastest"
OPERATIONS = {name.replace("_", "-"): name for name in OPS}
CONCURRENT = ("one", "all")
FABRIC = "design-fabric"
MATRICES = "Running NEST's level-wise program"
WANTS_MATRIX = "level costs"
MEASURED_NONE = "There are no measured runs of this group."


def fabric_form(bring: Callable[[], None]) -> tuple[Scenario, DrawnForm]:
    """Draw the form and return the fabric that it asks for, and itself.

    Parameters
    ----------
    bring : callable
        Draws the ways to bring a fabric of one's own.
    """
    form = DrawnForm({}, {"fabric": DEFAULT_FABRIC})
    fabric_group(form)
    bring()
    scenario = fabric_scenario(form.values.pop("fabric"), form.overrides)
    # A drawn fabric has no size of nodes, and only a worker reads it.
    if "element" not in scenario.fabric_table and (
        accelerator := accelerator_in(str(scenario.fabric_table["name"]))
    ):
        with suppress(InputError):  # what is refused is said above the page
            other_accelerator(form, scenario.fabric, accelerator, form.boxes.get(NODE, st))
    return scenario, form


def heading(scenario: Scenario, answer: FabricAnswer, lacking: str = "") -> None:
    """Draw what fabric this is, and what it is made of; or why the figures are earlier ones."""
    words = changes_in_words(scenario.overrides)
    facts(answer.title, kind="nest-scenario")
    state = f" Changed: {words}." if words else "" if is_own(scenario) else " As in the preset."
    facts(
        f"The figures are those of the last whole fabric: {lacking}"
        if lacking
        else f"{answer.contents}{state}",
        kind="nest-quiet",
    )


def no_heading(lacking: str) -> None:
    """Draw the same places while a drawing is not a fabric yet, so that the canvas stays put."""
    facts(OWN, kind="nest-scenario")
    facts(f"Not a fabric yet: {lacking}", kind="nest-quiet")
    names = ("Devices", "Levels", "Bisection", "Of full bisection", "Collapse error")
    headline_row(tuple(Headline(name, "–", "once it is a fabric", ()) for name in names))


def levels(answer: FabricAnswer) -> None:
    """Draw the levels as a table, and as a map of who meets whom where."""
    wide, narrow = st.columns([3, 2], gap="medium")
    wide.html(answer.levels.to_html())
    show_picture(answer.map, "fabric-levels", narrow)


def pin_output(answer: FabricAnswer) -> PinOutput:
    """Return the levels as a notebook shows them, with the map of who meets whom where."""
    return table_output(answer.levels, (answer.map,))


@st.fragment
def fabric_picture(scenario: Scenario) -> None:
    """Draw the fabric by its kind's rule, and beside it a job's cost matrix if one asks."""
    job = submitted(fabric_drawn, scenario, shown_width(FABRIC), place="fabric-drawn")
    with st.container(key="waiting-drawn"):
        picture = panel(job, "Drawing the fabric", key="fabric-drawn")
    if picture is not None:
        design_page().drawn = scenario, picture
    of, drawn = design_page().drawn or (None, None)
    if drawn is None or of != scenario:
        return
    read, words = _matrices(scenario)
    show_fabric(pointed_picture(drawn, read), key=FABRIC)
    st.toggle(
        "Cost matrix",
        key=WANTS_MATRIX,
        help="Plans the job of the Plan page on this fabric by NEST's level-wise program, which "
        "takes seconds to minutes, and shows what each class of traffic would cost at each level.",
    )
    facts(words, kind="nest-quiet")


def _matrices(scenario: Scenario) -> tuple[CostMatrices | None, str]:
    """Level-wise cost matrix of the job that was planned last, where it is asked for, and words."""
    if not st.session_state.get(WANTS_MATRIX):
        given_up("level-costs")
        return None, ""
    planned = planned_scenario()
    overrides = {
        key: value for key, value in planned.overrides.items() if not key.startswith("fabric")
    }
    try:
        overrides["fabric"] = scenario.fabric_table
        job = submitted(
            level_matrices, Scenario(planned.document, overrides), urgent=False, place="level-costs"
        )
        with st.container(key="waiting-matrices"):
            answer = panel(job, MATRICES, key="level-costs")
        if answer is None:
            return None, f"{MATRICES} …"
    except InputError as error:
        return None, f"No cost matrix: {error}"
    title, read, reason = answer
    return (
        read,
        f"Job: {title}, as planned last or as the Plan page begins."
        if read
        else f"No cost matrix: {reason}",
    )


def explorer(scenario: Scenario, answer: FabricAnswer) -> None:
    """Draw what a collective costs: controls, time and bus bandwidth, what it waits for."""
    st.subheader("Collective explorer")
    request, area = _controls(), AnswerArea("collective")
    area.awaits((scenario, request))
    with st.container(key="charts"):
        if answer.devices < 2:
            st.info("No times: a collective needs two devices, and this fabric has one.")
            return
        try:
            swept = panel(
                submitted(fabric_sweep, scenario, request, place="collective", edited=True),
                "Pricing every algorithm at every size",
                key="collective",
            )
        except InputError as error:
            group = "group " if error.field == "size" else ""
            st.info(as_markdown(f"No times for this choice: {group}{error}"))
            return
        if swept is not None:
            design_page().sweep = scenario, request, *swept
        last = design_page().sweep
        if last is None or last[0] != scenario:
            return
        _, request, sweep, waits = last
        library = request.library
        measured = _measured_of(scenario.fabric_table["name"], sweep, library)
        with area.part("swept", (scenario, request)):
            first, second = st.columns(2, gap="medium")
            show_picture(time_figure(sweep, measured), "collective-time", first)
            show_picture(bandwidth_figure(sweep, measured), "collective-bandwidth", second)
            source = f"Measured: {measured.source}." if measured else MEASURED_NONE
            smallest, largest = (
                f"{size_label(float(sweep.size_bytes[end]))} "
                f"({sweep.algorithms[end].replace('_', ' ')}) wait for {reason}"
                for end, reason in zip((0, -1), waits, strict=True)
            )
            facts(f"On the links {smallest}; {largest}.", f"{_library_note(library)} {source}")


def _controls() -> CollectiveRequest:
    curves = [curve.name for curve in load_library().curves if curve.link == "nvlink"]
    families = (name for name in curves if name != "start")
    operation, devices, between, groups, algorithms, libraries = st.columns(
        [1.05, 1, 0.85, 0.85, 1.2, 1.15], gap="small"
    )
    op = OPERATIONS[
        operation.selectbox(
            "Operation",
            tuple(OPERATIONS),
            key="collective.op",
            bind=ADDRESS,
            on_change=_fit_algorithm,
            help="Message sizes count as in nccl-tests: what a device puts in, for all-gather "
            "what it gets out.",
        )
    ]
    size = devices.number_input(
        "Group size, devices",
        2,
        LARGEST_GROUP,
        8,
        1,
        key="collective.devices",
        bind=ADDRESS,
        help="2 to the number of devices.",
    )
    stride = between.number_input(
        "Stride, devices",
        1,
        LARGEST_GROUP,
        1,
        1,
        key="collective.stride",
        bind=ADDRESS,
        help="1 to the number of devices: a group has members 0, s, 2s, …",
    )
    concurrent = groups.selectbox(
        "Groups",
        CONCURRENT,
        key="collective.groups",
        bind=ADDRESS,
        help="One group alone, or all groups that tile the fabric at once, on shared links.",
    )
    algorithm = algorithms.selectbox(
        "Algorithm",
        tuple(_algorithms(op)),
        key="collective.algorithm",
        bind=ADDRESS,
        help="What libraries run and plans are priced by, the fastest of all, or one of them.",
    )
    library = libraries.selectbox(
        "Library",
        (IDEAL_LINKS, *families),
        key="collective.library",
        bind=ADDRESS,
        help="What a library makes of the links: curves fitted to measured runs.",
    )
    chosen = _algorithms(op)[algorithm]
    curve = "" if library == IDEAL_LINKS else library
    return CollectiveRequest(op, size, stride, concurrent, chosen, curve)


def _algorithms(op: str) -> dict[str, str]:
    """Options to what the core calls them."""
    return {LIBRARY: "library", FASTEST: "fastest"} | {
        name.replace("_", " "): name for name in ALGORITHMS[op]
    }


def _fit_algorithm() -> None:
    op = OPERATIONS.get(widget_value("collective.op", OneOf(tuple(OPERATIONS))))
    if op and st.session_state.get("collective.algorithm") not in _algorithms(op):
        st.session_state["collective.algorithm"] = LIBRARY


def _measured_of(name: str, sweep: CollectiveSweep, library: str) -> Measured | None:
    """Measured runs of the chosen family, or of the accelerator that the fabric's name gives."""
    if sweep.nodes != 1:
        return None
    if not library:
        curves = load_library().local(name)
        if curves is None:
            return None
        library = curves[0].name
    return load_measured(library, sweep.op, sweep.devices)


def _library_note(library: str) -> str:
    """Where the chosen curve comes from, in one sentence."""
    if not library:
        return "Ideal links: the fabric's latencies and all of its bandwidth, no software."
    facts = load_toml(named_file(KIND, library, None, field="curves")).get("provenance", {})
    rows, median = facts.get("rows_fitted"), facts.get("held_out_median")
    fit = f"{library}: {facts.get('status', 'not fitted')}"
    if rows:
        fit += f" to {rows:,} measured runs"
    if median:
        fit += f", {100 * median:.2g} % off in the median on runs held out"
    return f"{fit}; between nodes {LIBRARY_NETWORK}, assumed and not fitted."
