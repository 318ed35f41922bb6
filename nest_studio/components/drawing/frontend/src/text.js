// Wording and numbers.

const ROLES = { device: "device", nic: "NIC", switch: "switch" };
const PLURALS = { device: "devices", nic: "NICs", switch: "switches" };

export const number = (value) => String(Number(Number(value).toPrecision(6)));

export const whole = (count) => count.toLocaleString("en-US");

export const counted = (count, one, many = `${one}s`) => `${whole(count)} ${count === 1 ? one : many}`;

export const rolesCounted = (counts) =>
  Object.keys(ROLES)
    .filter((role) => counts[role])
    .map((role) => counted(counts[role], ROLES[role], PLURALS[role]))
    .join(", ");

export const roleName = (role) => ROLES[role] ?? role;

/** "8 × 50 GB/s"; of unequal links the sum. */
export function linksLabel(links) {
  const count = links.reduce((sum, link) => sum + link.count, 0);
  const equal = links.every((link) => link.bandwidth_GBps === links[0].bandwidth_GBps);
  if (!equal) return `${count} links, ${number(total(links))} GB/s`;
  const each = `${number(links[0].bandwidth_GBps)} GB/s`;
  return count === 1 ? each : `${count} × ${each}`;
}

export const total = (links) =>
  links.reduce((sum, link) => sum + link.count * link.bandwidth_GBps, 0);

/** A name cut to fit; its end tells more than its beginning. */
export const cut = (text, most) => (text.length <= most ? text : `…${text.slice(1 - most)}`);

/** "16 spines" of an element that stands for several; nothing of one that stands for itself. */
export function alike({ id, role, count }) {
  if (count === 1) return undefined;
  const word = /^[^\W\d_]+/.exec(id)?.[0] ?? ROLES[role];
  return `${whole(count)} ${plural(word)}`;
}

const plural = (word) => {
  if (word.toLowerCase() === "leaf") return `${word.slice(0, -1)}ves`;
  return /(s|x|ch|sh)$/i.test(word) ? `${word}es` : `${word}s`;
};

const SEPARATORS = /[-_./: ]/g;

/** A name without its group's, whatever separates the parts. */
export function shortName(id, group) {
  const plain = id.replace(SEPARATORS, "/");
  const whole = group.replace(SEPARATORS, "/");
  const inner = group.slice(group.lastIndexOf("/") + 1).replace(SEPARATORS, "/");
  for (const prefix of [whole, inner]) {
    if (prefix && plain.startsWith(`${prefix}/`) && plain.length > prefix.length + 1) {
      return id.slice(prefix.length + 1);
    }
  }
  return id;
}
