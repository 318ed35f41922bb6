// What passes between the canvas and Python: changes and actions out, answers in.

const PATIENCE_MS = 5000;

export class Bridge {
  revision = null;
  edition = 0;
  serial = 0;
  /** The action that the latest message answers; "" if none. */
  done = "";
  #asked = "";
  #answered = { edition: 0, serial: 0 };
  #waiting = false;
  #queue = [];

  constructor(onWaiting) {
    this.onWaiting = onWaiting;
  }

  /** The functions of the latest call; Streamlit makes new ones for every run. */
  connect({ setStateValue, setTriggerValue }) {
    this.port = { setStateValue, setTriggerValue };
  }

  /** Whether what Python sent is to be shown; not if it has not seen the latest gesture. */
  receive({ revision, answered }) {
    this.done = answered.serial > this.#answered.serial ? this.#asked : "";
    this.#answered = answered;
    const fresh = this.revision === null;
    if (fresh) {
      this.edition = Math.max(this.edition, answered.edition);
      this.serial = Math.max(this.serial, answered.serial);
    }
    if (this.#waiting && answered.serial >= this.serial) this.#done();
    if (answered.edition < this.edition || revision === this.revision) return false;
    this.revision = revision;
    return true;
  }

  /** A finished gesture. */
  changed(plain) {
    this.edition += 1;
    this.port.setStateValue("drawing", { base: this.revision, edition: this.edition, ...plain });
  }

  /** Ask Python; one request after the other. A change sent before is part of the message. */
  ask(name, ids, groups) {
    this.#queue.push({ name, ids, groups });
    if (!this.#waiting) this.#next();
  }

  #next() {
    const action = this.#queue.shift();
    if (!action) return;
    this.serial += 1;
    this.#asked = action.name;
    this.#wait(true);
    this.timer = setTimeout(() => this.#done(), PATIENCE_MS);
    this.port.setTriggerValue("action", { ...action, serial: this.serial });
  }

  #done() {
    clearTimeout(this.timer);
    this.#wait(false);
    // After the answer has been shown.
    if (this.#queue.length) setTimeout(() => this.#waiting || this.#next());
  }

  #wait(waiting) {
    this.#waiting = waiting;
    this.onWaiting(waiting);
  }

  close() {
    clearTimeout(this.timer);
    this.#queue = [];
  }
}
