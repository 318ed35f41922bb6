// Has parts of the page run again, until Python draws this no more.

export default function again({ data, parentElement, setTriggerValue }) {
  // Streamlit may call this anew before it has cleaned up after the call before.
  clearInterval(parentElement.timer);
  const timer = setInterval(() => setTriggerValue("due", true), data.after_ms);
  parentElement.timer = timer;
  return () => clearInterval(timer);
}
