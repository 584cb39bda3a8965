// The verdict on two runs in a sentence, for users without knowledge of networks.

import { digits, spoken } from "./units.mjs";

/** @import { Decides } from "./types.js" */

/**
 * The run with one queue: the queue's name, the value of the deciding metric, and the mean queueing delay of the flows' packets in s.
 * @typedef {{ name: string, value: number, wait: number }} Outcome
 */

/** Values whose difference is below this share of the larger one count as equal. */
const CLOSE = 0.1;
/** Mean opinion scores (1 to 4.5) with a difference below this value count as equal. */
const CLOSE_SCORE = 0.15;

/**
 * Returns the word for the quality of a call; the catalogue has the words of all texts.
 * @param {number} mos
 */
function quality(mos) {
  return globalThis.SOJOURN_CATALOGUE?.quality.find(([least]) => mos >= least)?.[1] ?? "";
}

/** @param {string} text */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Clauses about a metric of a group of flows, by the pattern of the metric's name. */
/** @type {[pattern: RegExp, phrase: (value: string, of: string) => string][]} */
const PHRASES = [
  [/delay_p99$/, (v, of) => `99 of 100 packets of ${of} arrive within ${v}`],
  [/delay_p95$/, (v, of) => `95 of 100 packets of ${of} arrive within ${v}`],
  [/page_p95$/, (v) => `95 of 100 pages load within ${v}`],
  [/page_mean$/, (v) => `a page loads in ${v} on average`],
  [/fct_p99$/, (v, of) => `99 of 100 ${of.replace(/^the /, "")} are complete within ${v}`],
  [/latency_p99$/, (v) => `99 of 100 writes are confirmed within ${v}`],
  [/^loss$/, (v) => (v === "0 %" ? "no packet is lost" : `${v} of all packets are lost`)],
  [/sojourn_p95$/, (v) => `95 of 100 packets wait less than ${v}`],
];

/**
 * Returns a clause about the metric's value in one run.
 * @param {Decides} by
 * @param {number} value
 * @param {string} of
 */
function clause({ metric, label, unit }, value, of) {
  if (/mos$/.test(metric)) return `the call is ${quality(value)} (quality ${digits(value, 2)} of 4.5)`;
  const text = spoken(value, unit, metric);
  const [, phrase] = PHRASES.find(([pattern]) => pattern.test(metric)) ?? [];
  return phrase ? phrase(text, of) : `${label} is ${text}`;
}

/**
 * @param {string} metric
 * @param {number} a
 * @param {number} b
 */
function close(metric, a, b) {
  if (/mos$/.test(metric)) return Math.abs(a - b) < CLOSE_SCORE;
  const most = Math.max(Math.abs(a), Math.abs(b));
  return most === 0 || Math.abs(a - b) < CLOSE * most;
}

/**
 * Returns the sentence.
 * @param {Decides} by
 * @param {Outcome[]} runs The two runs.
 * @param {string} of Name of the flows.
 */
export function verdict(by, runs, of) {
  const [mine, other] = runs;
  const known = runs.filter(({ value }) => Number.isFinite(value));
  if (known.length === 0) return "The runs are too short for a result: make them longer, or add flows.";
  if (known.length === 1) {
    const [run] = known;
    const silent = runs.find((r) => r !== run);
    const rest = silent ? ` With ${silent.name} nothing was measured.` : "";
    return `${capital(`with ${run.name} ${clause(by, run.value, of)}`)}.${rest}`;
  }
  if (close(by.metric, mine.value, other.value)) {
    return `With ${mine.name} and ${other.name} alike ${clause(by, mine.value, of)}.`;
  }
  const better = (by.better === "lower") === (mine.value < other.value) ? mine : other;
  const worse = better === mine ? other : mine;
  let second = clause(by, worse.value, of);
  if (/mos$/.test(by.metric)) {
    second = second.replace("the call", "it");
    if (worse.wait > 0.15) second += `, and every word waits ${spoken(worse.wait, "s")}`;
  } else if (/_p9[59]$/.test(by.metric)) {
    second = `it takes ${spoken(worse.value, by.unit, by.metric)}`;
  } else if (/mean$/.test(by.metric)) {
    second = `in ${spoken(worse.value, by.unit, by.metric)}`;
  }
  return `With ${better.name} ${clause(by, better.value, of)}; with ${worse.name} ${second}.`;
}
