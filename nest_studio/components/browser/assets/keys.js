// Hands a page's keys to Python: which ones were pressed since the page was opened, in order.

const WALKS = new Set(["slider", "radio", "tab", "option", "spinbutton", "menuitem"]);
const PATIENCE_MS = 300;
const opened = String(performance.timeOrigin);
const pressed = [];
let port = null;
let again = 0;
let seen = 0;
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
  send(PATIENCE_MS * 5);
});

// What was sent while the page ran may have been dropped: it is said again, ever more patiently.
function send(patience) {
  clearTimeout(again);
  if (!port || seen >= pressed.length) return;
  port.send("pressed", { opened, names: [...pressed] });
  again = setTimeout(send, patience, 2 * patience);
}

export default function keys({ data, parentElement, setTriggerValue }) {
  const here = { send: setTriggerValue };
  port = here;
  wanted = data.keys;
  seen = data.opened === opened ? data.seen : 0;
  clearTimeout(again);
  if (seen < pressed.length) again = setTimeout(send, PATIENCE_MS, PATIENCE_MS * 5);
  // Streamlit also cleans up after a call that a newer one overtook; that one goes on.
  return () => {
    if (port === here && !parentElement.isConnected) port = null;
  };
}
