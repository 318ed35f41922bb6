// Mouse and keyboard, turned into the editor's verbs.

import { TOOL_KEYS } from "./panels.js";

const STEP = 8; // pixels per arrow key
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export function attach(editor) {
  const { cy, root, stage } = editor;
  const focused = () => root.getRootNode().activeElement;

  // Links
  editor.edges = cy.edgehandles({
    snap: false,
    hoverDelay: 0,
    disableBrowserGestures: false,
    canConnect: (source, target) => editor.editable && source.nonempty() && target.nonempty()
      && !editor.view.nested(source, target),
    edgeParams: () => ({ data: { width: 2, label: "", font: 10 } }),
  });
  editor.handlesLink = (node) => editor.edges.start(node);
  cy.on("ehcomplete", (event, source, target, added) => {
    const ends = [source.id(), target.id()];
    added.remove();
    // edgehandles still tidies up after this event.
    queueMicrotask(() => editor.connect(...ends));
  });
  const release = () => setTimeout(() => editor.edges.stop());
  window.addEventListener("mouseup", release);

  // Placing
  cy.on("tap", (event) => {
    const placing = !["select", "link"].includes(editor.tool);
    if (!placing) return;
    if (event.target === cy) editor.placeAt(event.position, "");
    else if (event.target.isNode() && event.target.hasClass("open")) {
      editor.placeAt(event.position, event.target.id().slice(2));
    }
  });

  // Moving: what is inside an open group goes along, frames follow; one gesture in the end
  let before = null;
  let last = new Map();
  let due = false;
  const follow = () => {
    due = false;
    if (!before) return;
    cy.batch(() => {
      for (const [node, { x, y, inside }] of last) {
        const at = node.position();
        const shift = { x: at.x - x, y: at.y - y };
        last.set(node, { ...at, inside });
        if (shift.x || shift.y) inside.shift(shift);
      }
    });
    editor.view.takePositions();
    editor.view.reframe();
    // A frame that was moved stands where its members put it.
    for (const [node, entry] of last) last.set(node, { ...entry, ...node.position() });
  };
  cy.on("grab", "node", (event) => {
    before ??= editor.positions();
    const path = event.target.hasClass("open") ? event.target.id().slice(2) : null;
    if (!path) return;
    const inside = editor.view.inside(path).filter((node) => !node.grabbed() && !node.hasClass("open"));
    last.set(event.target, { ...event.target.position(), inside });
  });
  cy.on("drag", "node", () => {
    if (due) return;
    due = true;
    requestAnimationFrame(follow);
  });
  cy.on("dragfree", "node", () => {
    queueMicrotask(() => {
      if (!before) return;
      follow();
      const start = before;
      before = null;
      last = new Map();
      editor.moved(start);
    });
  });
  cy.on("select", "node.open", (event) => event.target.unpanify());
  cy.on("unselect", "node.open", (event) => event.target.panify());

  // Selecting
  let telling = false;
  cy.on("select unselect", () => {
    if (telling) return;
    telling = true;
    queueMicrotask(() => {
      telling = false;
      if (!cy.destroyed()) editor.refreshPanels();
    });
  });
  cy.on("dbltap", "node.closed, node.open", (event) => {
    if (event.target.id().startsWith("g:") && editor.tool === "select") {
      editor.toggle(event.target.id().slice(2));
    }
  });

  // Hovering
  cy.on("mousemove", (event) => {
    const { target, originalEvent } = event;
    if (editor.handles.holds(originalEvent)) return;
    const still = editor.tool === "select" && editor.editable && !editor.edges.active && !held;
    const node = target !== cy && target.isNode() && !target.hasClass("eh-ghost");
    if (still && node) editor.handles.show(target);
    else editor.handles.leave();
  });
  cy.on("mouseover", "edge", (event) => event.target.addClass("hovered"));
  cy.on("mouseout", "edge", (event) => event.target.removeClass("hovered"));
  let held = false;
  cy.on("grab", () => { held = true; editor.handles.hide(); });
  cy.on("free", () => {
    held = false;
    // After a click no dragfree follows.
    queueMicrotask(() => queueMicrotask(() => {
      before = null;
      last = new Map();
    }));
  });
  cy.on("viewport", () => editor.handles.hide());
  cy.on("zoom", () => editor.view.size());

  // The page scrolls until the canvas was clicked, or Ctrl is held.
  const onWheel = (event) => {
    const ours = stage.contains(focused()) || event.ctrlKey || event.metaKey;
    if (!ours) event.stopPropagation();
  };
  stage.addEventListener("wheel", onWheel, { capture: true, passive: true });
  // After cytoscape, which takes the focus away from everything.
  stage.addEventListener("mousedown", () => {
    stage.toggleAttribute("data-clicked", true);
    if (!stage.contains(focused())) stage.focus({ preventScroll: true });
  });

  stage.addEventListener("blur", () => stage.toggleAttribute("data-clicked", false));

  // Keys stay here: Streamlit has shortcuts of its own.
  const keep = (event) => event.stopPropagation();
  const onKey = (event) => {
    event.stopPropagation();
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(focused()?.tagName);
    if (typing || event.altKey) return;
    if (pressed(editor, event, focused())) event.preventDefault();
  };
  root.addEventListener("keydown", onKey);
  root.addEventListener("keyup", keep);
  root.addEventListener("keypress", keep);

  return () => window.removeEventListener("mouseup", release);
}

/** Whether the key meant something. */
function pressed(editor, event, focused) {
  const { key, shiftKey } = event;
  if (event.ctrlKey || event.metaKey) {
    const verbs = {
      a: () => editor.select(editor.cy.nodes().map((node) => node.id())),
      c: () => editor.copy(),
      d: () => editor.ask("duplicate"),
      v: () => editor.paste(),
      y: () => editor.ask("redo"),
      z: () => editor.ask(shiftKey ? "redo" : "undo"),
    };
    const verb = verbs[key.toLowerCase()];
    verb?.();
    return Boolean(verb);
  }
  const onButton = focused?.tagName === "BUTTON";
  const verbs = {
    Delete: () => editor.removeSelected(),
    Backspace: () => editor.removeSelected(),
    Escape: () => {
      editor.edges.stop();
      if (editor.tool === "select") editor.select([]);
      else editor.use("select");
    },
    "+": () => editor.zoom("in"),
    "-": () => editor.zoom("out"),
    0: () => editor.zoom("fit"),
  };
  if (key === "Enter" && !onButton) verbs.Enter = () => editor.selected().groups.forEach((path) => editor.toggle(path));
  if (key in ARROWS) {
    const [x, y] = ARROWS[key];
    verbs[key] = () => editor.nudge(x * STEP, y * STEP);
  }
  if (key in TOOL_KEYS) verbs[key] = () => editor.use(TOOL_KEYS[key]);
  verbs[key]?.();
  return key in verbs;
}
