// Hands a page's keys to Python: which ones were pressed since the page was opened, in order.

const WALKS = new Set(["slider", "radio", "tab", "option", "spinbutton", "menuitem"]);
const PATIENCE_MS = 300;
const opened = String(performance.timeOrigin);
const pressed = [];
let port = null;
let again = 0;
let seen = 0;
let wanted = {};
let everywhere = false;
let entered = null;

function types(target) {
  const tag = target?.tagName;
  return tag === "INPUT" || tag === "TEXTAREA" || tag === "SELECT" || target?.isContentEditable;
}

// Whether a key is ours; a field that has it then hands on what was typed into it.
function takes(event) {
  const { key, target } = event;
  if (key === "Escape") return true;
  const isButton = target?.tagName === "BUTTON" && target.matches(":focus-visible");
  if (!everywhere) {
    const walks = types(target) || WALKS.has(target?.getAttribute?.("role"));
    return !walks && !(key === "Enter" && target?.tagName === "BUTTON");
  }
  if (key === "Enter" && isButton) return false;
  if (!types(target)) return true;
  target.blur();
  return key !== "Enter"; // which ends a number, and no more
}

document.addEventListener(
  "keydown",
  (event) => {
    const name = wanted[event.key];
    if (!port || !name || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!takes(event)) return;
    event.preventDefault();
    event.stopPropagation();
    pressed.push(name);
    send(PATIENCE_MS * 5);
  },
  true,
);

document.addEventListener("focusin", (event) => {
  entered = event.target;
});

// A click where keys are ours everywhere leaves no button in charge of Enter, and what is typed
// into a field takes the place of what stood there.
document.addEventListener("click", (event) => {
  const first = entered;
  entered = null;
  if (!port || !everywhere || !event.detail) return;
  const target = event.composedPath()[0];
  if (!types(target)) setTimeout(() => types(document.activeElement) || document.activeElement.blur());
  else if (target === first) target.select?.();
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
  everywhere = data.everywhere;
  document.documentElement.dataset.keys = Object.keys(wanted).join(" "); // which are listened to
  seen = data.opened === opened ? data.seen : 0;
  clearTimeout(again);
  if (seen < pressed.length) again = setTimeout(send, PATIENCE_MS, PATIENCE_MS * 5);
  // Streamlit also cleans up after a call that a newer one overtook; that one goes on.
  return () => {
    if (port !== here || parentElement.isConnected) return;
    port = null;
    delete document.documentElement.dataset.keys;
  };
}
