"""Bringing a fabric as a file, keeping it in the library, and taking it along in another format."""

from dataclasses import asdict, replace

import streamlit as st

from nest_core.documents import InputError, as_markdown
from nest_core.interop.formats import FORMATS, Assumed, FabricText, ImportedFabric
from nest_core.scenario import Scenario, file_stem
from nest_studio.components.show import facts, told
from nest_studio.design.canvas import new_drawing, own_from
from nest_studio.design.state import design_page
from nest_studio.form.fabric import is_own, reset_fabric
from nest_studio.form.fields import OneOf, Text, upload, widget, widget_value
from nest_studio.jobs.tasks.fabrics import FabricAnswer, fabric_export, fabric_import
from nest_studio.jobs.waiting import WorkerCrash, forget, panel, submitted
from nest_studio.session.library import kept_names, open_from_library, opened_name, remember
from nest_studio.session.own_fabric import forget_places, is_drawing, own_document, own_fabric
from nest_studio.session.store.documents import LONGEST
from nest_studio.session.stored import fabrics

__all__ = [
    "bring_controls",
    "library_controls",
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
    facts(f"Read: {', '.join(entry.label for entry in FORMATS.values())}.", kind="nest-quiet")
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
        "Fabric file",
        key=UPLOAD,
        on_change=_read,
        help="At most 5 MB. The file stays on this machine.",
    )


def _read() -> None:
    """Read the uploaded file anew; what is there stays if it cannot be read."""
    design_page().problems.pop("import", None)
    file = upload(st.session_state.get(UPLOAD))
    if file is None:
        return
    standard = asdict(Assumed())
    figures = {name: st.session_state.get(f"assumed.{name}", standard[name]) for name in ASSUMED}
    job = submitted(fabric_import, file.getvalue(), file.name, Assumed(**figures), place="import")
    try:
        imported: ImportedFabric = job.result()
    except InputError as error:
        design_page().problems["import"] = str(error)
        return
    except WorkerCrash as error:
        design_page().problems["import"] = f"{file.name} was not read: {error}."
        return
    finally:
        forget(job)  # the document is the session's now
    own_from(imported.document, (f"{FORMATS[imported.format].label}, {file.name}", *imported.notes))
    design_page().imported_revision = own_fabric().revision


def _read_again() -> None:
    """Read the file with other assumptions, unless what it gave was edited since."""
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
        remember(fabrics().save(name, document, replace=name.strip() == opened_name()))


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
        name = fabrics().rename(old, new)
        if opened_name() == old:
            remember(name)
        st.session_state[_PICK] = name


def _delete() -> None:
    name = widget_value(_PICK, OneOf(kept_names()))
    if name is not None:
        with design_page().noting("library"):
            fabrics().delete(name)
