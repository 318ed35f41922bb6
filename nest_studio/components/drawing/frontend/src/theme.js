// Streamlit's theme as plain values: the canvas element does not see CSS variables.

const FALLBACK = {
  text: "#1b1f24",
  background: "#ffffff",
  surface: "#f5f6f7",
  border: "#dde1e5",
  accent: "#0072b2",
  font: "sans-serif",
};
const VARIABLES = {
  text: "--st-text-color",
  background: "--st-background-color",
  surface: "--st-secondary-background-color",
  border: "--st-border-color",
  accent: "--st-primary-color",
  font: "--st-font",
};

/** Font names with digits or signs must stay quoted; cytoscape takes the list as it is. */
export function readTheme(root) {
  const style = getComputedStyle(root);
  const theme = {};
  for (const [name, variable] of Object.entries(VARIABLES)) {
    theme[name] = style.getPropertyValue(variable).trim() || FALLBACK[name];
  }
  return theme;
}
