// How things look on the canvas. Okabe-Ito: compute blue, its lighter sister, communication orange.

export const COLOURS = { device: "#0072B2", nic: "#56B4E9", switch: "#E69F00" };

const SHAPES = { device: "rectangle", nic: "ellipse", switch: "round-rectangle" };

export function stylesheet(theme) {
  const roles = Object.keys(COLOURS).map((role) => ({
    selector: `node.${role}`,
    style: { "background-color": COLOURS[role], shape: SHAPES[role], "font-size": "data(font)" },
  }));
  return [
    {
      selector: "node",
      style: {
        width: "data(width)",
        height: "data(height)",
        label: "data(label)",
        color: theme.text,
        "font-family": theme.font,
        "font-size": 10,
        "overlay-opacity": 0,
        "border-width": 0,
        "z-index-compare": "manual",
        "z-index": 20,
      },
    },
    ...roles,
    { selector: "node.device", style: { "text-valign": "bottom", "text-margin-y": 3 } },
    {
      selector: "node.nic",
      style: { "text-halign": "right", "text-valign": "center", "text-margin-x": 3 },
    },
    {
      selector: "node.switch",
      style: { "text-valign": "center", "text-halign": "center", color: "#1B1F24" },
    },
    {
      selector: "node.open",
      style: {
        shape: "round-rectangle",
        "background-color": theme.text,
        "background-opacity": 0.025,
        "border-width": "data(line)",
        "border-color": theme.text,
        "border-opacity": 0.25,
        "z-index": "data(depth)",
        "box-selection": "none",
        "text-valign": "top",
        "text-halign": "center",
        "text-margin-x": "data(shift)",
        "text-margin-y": 16,
        "text-opacity": 0.7,
      },
    },
    {
      selector: "node.closed",
      style: {
        shape: "round-rectangle",
        "background-color": theme.surface,
        "border-width": "data(line)",
        "border-color": theme.text,
        "border-opacity": 0.35,
        "text-valign": "center",
        "text-halign": "center",
        "text-wrap": "wrap",
        "font-size": "data(font)",
      },
    },
    {
      selector: "node.fewer",
      style: { "border-style": "dashed", "border-color": "#D55E00", "border-opacity": 1 },
    },
    {
      selector: "edge",
      style: {
        "curve-style": "haystack",
        "haystack-radius": 0,
        width: "data(width)",
        "line-color": theme.text,
        "line-opacity": 0.42,
        "overlay-opacity": 0,
        "overlay-padding": 4,
        "z-index-compare": "manual",
        "z-index": 1,
        "font-family": theme.font,
        "font-size": "data(font)",
        color: theme.text,
        "text-background-color": theme.background,
        "text-background-opacity": 0.92,
        "text-background-padding": 1.5,
      },
    },
    { selector: "edge.parallel", style: { "curve-style": "bezier", "control-point-step-size": 22 } },
    { selector: "edge.labelled, edge.hovered", style: { label: "data(label)" } },
    { selector: "edge.labelled.small", style: { label: "" } },
    { selector: "node.small", style: { label: "" } },
    { selector: "node.brief", style: { label: "data(name)", "font-size": "data(nameFont)" } },
    { selector: "edge.hovered", style: { "line-opacity": 0.9, "z-index": 30 } },
    {
      selector: "node:selected",
      style: {
        "outline-width": 2.5,
        "outline-color": theme.accent,
        "outline-offset": 2,
        "outline-opacity": 1,
      },
    },
    {
      selector: "node.closed:selected, node.open:selected",
      style: { "border-color": theme.accent, "border-opacity": 1, "outline-width": "data(line)" },
    },
    {
      selector: "edge:selected",
      style: { "line-color": theme.accent, "line-opacity": 1, "z-index": 9 },
    },
    {
      selector: "node.eh-source, node.eh-target",
      style: { "outline-width": 3, "outline-color": theme.accent, "outline-offset": 2 },
    },
    {
      selector: "edge.eh-ghost-edge, edge.eh-preview",
      style: {
        width: 2,
        "font-size": 10,
        "curve-style": "straight",
        "line-color": theme.accent,
        "line-opacity": 0.9,
        "line-style": "dashed",
        label: "",
      },
    },
    { selector: "edge.eh-ghost-edge.eh-preview-active", style: { opacity: 0 } },
    {
      selector: "core",
      style: {
        "selection-box-color": theme.accent,
        "selection-box-opacity": 0.12,
        "selection-box-border-color": theme.accent,
        "selection-box-border-width": 1,
        "active-bg-size": 0,
      },
    },
  ];
}
