// Calls functions of the page's scripts: a line of JSON for each call, and a line for each answer.
// node scripts.mjs FOLDER CALLS
//
// FOLDER has the files of a page. A call is [name, argument, ...], see `functions`.
import { readFileSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { gunzipSync } from "node:zlib";
import { changed, commands, edits, fragment, parse } from "../../python/sojourn/play/scripts/changes.mjs";
import { Runs } from "../../python/sojourn/play/scripts/runs.mjs";
import { idle } from "../../python/sojourn/play/scripts/stage.mjs";
import { position, spoken, valueAt, written } from "../../python/sojourn/play/scripts/units.mjs";
import { verdict } from "../../python/sojourn/play/scripts/verdict.mjs";

/** @import { State } from "../../python/sojourn/play/scripts/changes.mjs" */
/** @import { Catalogue, Decides, Engine } from "../../python/sojourn/play/scripts/types.js" */

const [, , folder, calls] = process.argv;
const load = createRequire(import.meta.url);
load(`${folder}/module.js`);
load(`${folder}/catalogue.js`);
const { scenarios } = /** @type {Catalogue} */ (globalThis.SOJOURN_CATALOGUE);
const packed = Buffer.from(globalThis.SOJOURN_MODULE ?? "", "base64");
/** @type {Engine} */
const engine = await load(`${folder}/engine.js`).Engine.load(gunzipSync(packed));

/**
 * Returns the plan, the commands and the address of a scenario with changes.
 * @param {string} id
 * @param {Partial<State>} changes
 */
function changedScenario(id, changes) {
  const entry = scenarios[id];
  const state = changed(entry, changes);
  const plan = engine.edit(entry.plan, edits(entry, state, state.queue));
  const address = fragment(id, state, entry);
  return { plan, commands: commands(entry, state, plan), fragment: address, parsed: parse(address) };
}

/**
 * Returns the content of a run's film at some times, and the counts of the run itself.
 * @param {string} id
 * @param {number} steps
 */
function filmed(id, steps) {
  const entry = scenarios[id];
  const [link] = entry.bottleneck.links;
  const ignore = () => {};
  const runs = new Runs([engine], { progress: ignore, done: ignore, failed: ignore });
  // Slices are made by hand: `go` waits for frames.
  runs.go = ignore;
  runs.start([entry.plan], 1, link, entry.bottleneck.rate);
  const [run] = runs.runs;
  while (!run.record) run.advance();
  const { film, record } = run;
  const times = run.series("time").map((t, sample) => ({ t: Math.round(t * 1e9), sample }));
  const inside = times.filter(({ t }) => t > run.from && t < run.until);
  const at = inside.filter((_, i) => i % Math.ceil(inside.length / steps) === 0);
  return {
    trace_hash: record.trace_hash,
    series: Object.fromEntries(record.series),
    span: [run.from, run.until],
    counts: { offered: film.offered.length, departures: film.departures.length, drops: film.drops.length },
    moments: at.map(({ t, sample }) => {
      const queued = film.queued(t);
      return {
        sample,
        queued: queued.length,
        ordered: queued.every((index, k) => k === 0 || film.left[queued[k - 1]] <= film.left[index]),
        inside: queued.every((index) => film.offered[index] <= t && t < film.left[index]),
        idle: idle(film, t, 1e6),
      };
    }),
  };
}

/**
 * @param {Decides} by
 * @param {{ name: string, value: number | null, wait: number }[]} runs
 * @param {string} of
 */
function sentence(by, runs, of) {
  return verdict(by, runs.map((run) => ({ ...run, value: run.value ?? NaN })), of);
}

/** @type {{ [name: string]: (...rest: any[]) => unknown }} */
const functions = { verdict: sentence, spoken, written, valueAt, position, parse, changed: changedScenario, filmed };
for (const line of readFileSync(calls, "utf8").split("\n").filter(Boolean)) {
  const [name, ...rest] = JSON.parse(line);
  let answer;
  try {
    answer = { value: functions[name](...rest) };
  } catch (/** @type {any} */ error) {
    answer = { error: error.message };
  }
  writeSync(1, `${JSON.stringify(answer)}\n`);
}
