// Hands a page's keys to Python: which ones were pressed since the page was opened, in order.

const WALKS = new Set(["slider", "radio", "tab", "option", "spinbutton", "menuitem"]);
const opened = String(performance.timeOrigin);
const pressed = [];
let port = null;
let wanted = {};

function takes(target) {
  const tag = target?.tagName;
  if (tag === "INPUT" || tag === "TEXTAREA" || tag === "SELECT") return true;
  return target?.isContentEditable || WALKS.has(target?.getAttribute?.("role"));
}

document.addEventListener("keydown", (event) => {
  const name = wanted[event.key];
  if (!port || !name || event.ctrlKey || event.metaKey || event.altKey) return;
  // Escape leaves a field; other keys are the field's own, as Enter is a button's.
  if (event.key !== "Escape" && takes(event.target)) return;
  if (event.key === "Enter" && event.target?.tagName === "BUTTON") return;
  event.preventDefault();
  pressed.push(name);
  port("pressed", { opened, names: [...pressed] });
});

export default function keys({ data, setTriggerValue }) {
  port = setTriggerValue;
  wanted = data ?? {};
  return () => {
    if (port === setTriggerValue) port = null;
  };
}
