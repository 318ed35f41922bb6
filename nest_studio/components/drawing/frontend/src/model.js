// The drawing itself: elements by name, links by a number of their own. No DOM, no cytoscape.

import { unfolded } from "./folds.js";

let nextLink = 1;

const ROLES = ["device", "nic", "switch"];

const pairOf = (a, b) => (a < b ? JSON.stringify([a, b]) : JSON.stringify([b, a]));

const plainElement = ({ id, role, radix, count = 1, group, x, y }) =>
  ({ id, role, radix, count, group: unfolded(group), x, y });
const plainLink = ({ a, b, bandwidth_GBps, count, latency_us }) =>
  ({ a, b, bandwidth_GBps, count, latency_us });

export class Drawing {
  elements = new Map();
  links = new Map();
  /** What a table may hold while it is typed: no name, one twice, links to nowhere. Sent back. */
  loose = { elements: [], links: [] };

  /** Take over what Python sent; links keep their number where their ends stay. */
  replace({ elements, links }) {
    const numbers = new Map();
    for (const link of this.links.values()) {
      const pair = pairOf(link.a, link.b);
      if (!numbers.has(pair)) numbers.set(pair, []);
      numbers.get(pair).push(link.number);
    }
    this.elements = new Map();
    this.links = new Map();
    this.loose = { elements: [], links: [] };
    for (const element of elements) {
      const { id, role } = element;
      if (!id || this.elements.has(id)) this.loose.elements.push(plainElement(element));
      else this.elements.set(id, { ...plainElement(element), role: ROLES.includes(role) ? role : "switch" });
    }
    for (const link of links) {
      const { a, b } = link;
      if (a === b || !this.elements.has(a) || !this.elements.has(b)) {
        this.loose.links.push(plainLink(link));
        continue;
      }
      const number = numbers.get(pairOf(link.a, link.b))?.shift() ?? nextLink++;
      this.links.set(number, { number, ...plainLink(link) });
    }
  }

  /** What goes to Python. */
  plain() {
    return {
      elements: [...[...this.elements.values()].map(plainElement), ...this.loose.elements],
      links: [...[...this.links.values()].map(plainLink), ...this.loose.links],
    };
  }

  /** Whether Python sent back what is here: then nothing moves under the person's hand. */
  same({ elements, links }) {
    const sent = { elements: elements.map(plainElement), links: links.map(plainLink) };
    return JSON.stringify(sent) === JSON.stringify(this.plain());
  }

  add(element) {
    this.elements.set(element.id, element);
  }

  /** Join two elements; parallel links are one with a count. */
  join(a, b, { bandwidth_GBps, latency_us, count }) {
    const pair = pairOf(a, b);
    for (const link of this.links.values()) {
      if (pairOf(link.a, link.b) === pair) {
        link.count += 1;
        return link;
      }
    }
    const link = { number: nextLink++, a, b, bandwidth_GBps, latency_us, count };
    this.links.set(link.number, link);
    return link;
  }

  remove(ids, numbers) {
    for (const number of numbers) this.links.delete(number);
    for (const id of ids) this.elements.delete(id);
    for (const link of this.links.values()) {
      if (!this.elements.has(link.a) || !this.elements.has(link.b)) this.links.delete(link.number);
    }
  }

  /** Keeps the order of elements. */
  rename(id, name) {
    this.elements = new Map([...this.elements.values()].map((element) => {
      if (element.id === id) element.id = name;
      return [element.id, element];
    }));
    for (const link of this.links.values()) {
      if (link.a === id) link.a = name;
      if (link.b === id) link.b = name;
    }
  }

  renameGroup(path, renamed) {
    for (const element of this.elements.values()) {
      if (element.group === path || element.group.startsWith(`${path}/`)) {
        element.group = renamed + element.group.slice(path.length);
      }
    }
  }

  /** A free name: stem0, stem1 and so on. */
  freeName(stem, taken = (name) => this.elements.has(name)) {
    for (let number = 0; ; number += 1) {
      if (!taken(`${stem}${number}`)) return `${stem}${number}`;
    }
  }

  /** Elements of a role; one may stand for several. */
  count(role) {
    let found = 0;
    for (const element of this.elements.values()) if (element.role === role) found += element.count;
    return found;
  }
}

/** Links to pass from the nearest device to each element; unreachable ones are 1. */
export function tiers(elements, links) {
  const neighbours = new Map([...elements.keys()].map((id) => [id, []]));
  for (const { a, b } of links.values()) {
    neighbours.get(a)?.push(b);
    neighbours.get(b)?.push(a);
  }
  const distance = new Map();
  let front = [];
  for (const { id, role } of elements.values()) {
    if (role === "device") {
      distance.set(id, 0);
      front.push(id);
    }
  }
  for (let step = 1; front.length; step += 1) {
    const next = [];
    for (const id of front) {
      for (const other of neighbours.get(id)) {
        if (!distance.has(other)) {
          distance.set(other, step);
          next.push(other);
        }
      }
    }
    front = next;
  }
  for (const id of elements.keys()) if (!distance.has(id)) distance.set(id, 1);
  return distance;
}
