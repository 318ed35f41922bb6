// What Streamlit calls on every run whose data or theme changed.

import css from "./style.css";
import { Editor } from "./editor.js";

const GRACE_MS = 1000;
const editors = new WeakMap();

export default function drawing({ parentElement, data, setStateValue, setTriggerValue }) {
  let entry = editors.get(parentElement);
  if (!entry) {
    entry = { editor: new Editor(parentElement, css), calls: 0 };
    editors.set(parentElement, entry);
  }
  entry.calls += 1;
  const call = entry.calls;
  entry.editor.update(data, { setStateValue, setTriggerValue });

  const destroy = () => {
    if (editors.get(parentElement) !== entry || entry.calls !== call) return;
    editors.delete(parentElement);
    entry.editor.destroy();
  };
  // Streamlit also cleans up after a call that a newer one overtook; that one takes over.
  return () => {
    if (parentElement.isConnected) setTimeout(destroy, GRACE_MS);
    else destroy();
  };
}
