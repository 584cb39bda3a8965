// Changes of a scenario: as edits of its plan, as the part of the page's address after `#`, and as commands.

import { written } from "./units.mjs";

/** @import { Edits, Entry, LinkEdit, Plan } from "./types.js" */

/**
 * The two queues and the changes of a scenario; `counts` has numbers of flows by number of the group.
 * @typedef {object} State
 * @property {string} queue
 * @property {string} against
 * @property {number} seed
 * @property {{ [group: string]: number }} counts
 * @property {string} [rate]
 * @property {string} [rtt]
 * @property {string} [duration]
 */

/** Largest number of flows of a group, which the memory of a page can hold. */
export const FLOWS = 5000;

/**
 * Returns the state of a scenario with some changes.
 * @param {Entry} entry
 * @param {Partial<State>} changes
 * @returns {State}
 */
export function changed(entry, changes) {
  return { queue: entry.queue, against: entry.against, seed: 1, counts: {}, ...changes };
}

/**
 * Returns the edits that make a scenario's plan into that of a state, with one of the two queues.
 * @param {Entry} entry
 * @param {State} state
 * @param {string} queue
 * @returns {Edits}
 */
export function edits({ affected, paths }, { rate, rtt, duration, counts }, queue) {
  /** @type {Map<number, LinkEdit>} */
  const links = new Map();
  if (rate) for (const [link, text] of affected.rate) links.set(link, { link, rate, queue: text });
  for (const link of affected.queue) links.set(link, { link, ...(rate && links.has(link) ? { rate } : {}), queue });
  return {
    ...(duration ? { duration } : {}),
    links: [...links.values()],
    paths: rtt ? paths.map(([there, back]) => ({ there, back, rtt })) : [],
    groups: Object.entries(counts).map(([group, count]) => ({ group: Number(group), count })),
  };
}

/**
 * Returns a state as the part of an address after `#`; values equal to the catalogue's are omitted.
 * @param {string} id Name of the scenario.
 * @param {State} state
 * @param {Entry} entry
 */
export function fragment(id, state, entry) {
  const query = new URLSearchParams({ scenario: id });
  for (const key of /** @type {const} */ (["queue", "against"])) if (state[key] !== entry[key]) query.set(key, state[key]);
  const { rate, rtt, duration } = state;
  for (const [key, value] of Object.entries({ rate, rtt, duration })) if (value) query.set(key, value);
  if (state.seed !== 1) query.set("seed", String(state.seed));
  for (const [group, count] of Object.entries(state.counts)) query.set(`count.${group}`, String(count));
  return query.toString();
}

/**
 * Returns the scenario's name and the changes in the part of an address after `#`.
 * @param {string} text
 * @returns {[name: string | null, changes: Partial<State>]}
 */
export function parse(text) {
  const query = new URLSearchParams(text.replace(/^#/, ""));
  /** @type {State["counts"]} */
  const counts = {};
  /** @type {Partial<State>} */
  const changes = { counts };
  for (const [key, value] of query) {
    if (key === "queue" || key === "against" || key === "rate" || key === "rtt" || key === "duration") changes[key] = value.slice(0, 4096);
    else if (key === "seed" && /^[0-9]{1,15}$/.test(value)) changes.seed = Number(value);
    else if (/^count\.[0-7]$/.test(key) && /^[0-9]{1,4}$/.test(value) && value !== "0") counts[key.slice(6)] = Math.min(FLOWS, Number(value));
  }
  return [query.get("scenario"), changes];
}

/**
 * Returns a text quoted for a shell.
 * @param {string} text
 */
function quoted(text) {
  return /^[\w./:=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * Returns the commands that compare with many seeds the queues that the page compares with one.
 * @param {Entry} entry
 * @param {State} state
 * @param {Plan} plan The plan of the state.
 */
export function commands(entry, state, plan) {
  const { keys } = entry;
  const settings = entry.settings.map(quoted);
  const put = (/** @type {string} */ key, /** @type {string | number} */ value) => settings.push(quoted(`${key}=${value}`));
  const { rate, duration } = state;
  if (rate) keys.rate.forEach((key) => put(key, rate));
  if (state.rtt) {
    keys.rtt.forEach((key, i) => {
      const [link, text] = entry.netem[i];
      put(key, text.replace("{}", written("time", plan.links[link].params.delay)));
    });
  }
  if (duration) {
    put(keys.duration[0], duration);
    if (plan.warmup) put("warmup", `${plan.warmup / 1e6}ms`);
  }
  for (const [group, count] of Object.entries(state.counts)) keys.counts[Number(group)].forEach((key) => put(key, count));
  const set = settings.map((text) => ` --set ${text}`).join("");
  const [queue, against] = [state.queue, state.against].map((text) => entry.names[text] ?? text);
  const lines = entry.template ? [`sojourn new --template ${entry.template}`] : [];
  lines.push(`sojourn compare ${quoted(entry.file)} --queues ${quoted(queue)} ${quoted(against)}${set}`);
  lines.push(`sojourn tc ${quoted(entry.file)}${set}${keys.queue.map((key) => ` --set ${quoted(`${key}=${queue}`)}`).join("")}`);
  return lines.join("\n");
}
