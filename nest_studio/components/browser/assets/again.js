// Has Python look whether a part of the page is to run again, until it draws this no more.

export default function again({ data, parentElement, setTriggerValue }) {
  // Streamlit may call this anew before it has cleaned up after the call before.
  clearInterval(parentElement.timer);
  const timer = setInterval(() => setTriggerValue("due", true), data.after_ms);
  parentElement.timer = timer;
  return () => clearInterval(timer);
}
