// Calls functions of the page's scripts: a line of JSON for each call, and a line for each answer.
// node scripts.js FOLDER CALLS
//
// A call is [name, argument, ...], see `functions`.
const { readFileSync, writeSync } = require("node:fs");

const [, , folder, calls] = process.argv;
globalThis.Engine = require(`${folder}/engine.js`).Engine;
for (const name of ["module", "catalogue", "units", "words", "film", "runs", "stage", "chart", "controls", "figure"]) {
  require(`${folder}/${name}.js`);
}
const S = globalThis.Sojourn;

/** What a change of a page's state makes of a scenario: the plan, and the commands. */
function changed(engine, id, changes) {
  const entry = globalThis.SOJOURN_CATALOGUE.scenarios[id];
  const state = { queue: entry.queue, against: entry.against, seed: 1, counts: {}, ...changes };
  const plan = engine.edit(entry.plan, S.Figure.prototype.edits.call({ entry, state }, state.queue));
  const fragment = S.fragment(id, state, entry);
  return { plan, commands: S.commands(entry, state, plan), fragment, parsed: S.parse(fragment) };
}

/** What a film shows of a run at some times, beside what the run itself counted. */
function filmed(engine, id, steps) {
  const entry = globalThis.SOJOURN_CATALOGUE.scenarios[id];
  const [link] = entry.bottleneck.links;
  const runs = new S.Runs([engine], {});
  // Slices are made by hand: `go` waits for frames.
  runs.go = () => {};
  runs.start([entry.plan], 1, link, entry.bottleneck.rate);
  const [run] = runs.runs;
  while (!run.complete) run.advance();
  const times = run.record.series.time.values.map((t, sample) => [Math.round(t * 1e9), sample]);
  const inside = times.filter(([t]) => t > run.from && t < run.until);
  const at = inside.filter((_, i) => i % Math.ceil(inside.length / steps) === 0);
  return {
    record: run.record,
    span: [run.from, run.until],
    counts: { offered: run.film.offered.length, departures: run.film.departures.length, drops: run.film.drops.length },
    moments: at.map(([t, sample]) => {
      const queued = run.film.queued(t);
      return {
        sample,
        queued: queued.length,
        ordered: queued.every((index, k) => k === 0 || run.film.left[queued[k - 1]] <= run.film.left[index]),
        inside: queued.every((index) => run.film.offered[index] <= t && t < run.film.left[index]),
        idle: S.idle(run.film, t, 1e6),
      };
    }),
  };
}

(async () => {
  const packed = Buffer.from(globalThis.SOJOURN_MODULE, "base64");
  const engine = await Engine.load(require("node:zlib").gunzipSync(packed));
  const functions = {
    verdict: (by, runs, of) => S.verdict(by, runs.map((run) => ({ ...run, value: run.value ?? NaN })), of),
    spoken: S.spoken,
    written: S.written,
    valueAt: S.valueAt,
    position: S.position,
    parse: S.parse,
    changed: (...rest) => changed(engine, ...rest),
    filmed: (...rest) => filmed(engine, ...rest),
  };
  for (const line of readFileSync(calls, "utf8").split("\n").filter(Boolean)) {
    const [name, ...rest] = JSON.parse(line);
    let answer;
    try {
      answer = { value: functions[name](...rest) };
    } catch (error) {
      answer = { error: error.message };
    }
    writeSync(1, `${JSON.stringify(answer)}\n`);
  }
})();
