// Makes calls of the engine: a line of JSON for each, and a line for each answer.
// node calls.js FOLDER CALLS
//
// A call is [name, argument, ...]; `steps` opens a run, advances it in equal steps and takes its record.

/** @import { Plan } from "../../crates/wasm/types.js" */

const { readFileSync, writeSync } = require("node:fs");
const { Engine } = require(`${process.argv[2]}/sojourn.js`);

/**
 * @param {any} engine
 * @param {Plan} plan
 * @param {number} seed
 * @param {number} count
 */
function steps(engine, plan, seed, count) {
  engine.open(plan, seed);
  engine.log(plan.observe.bottleneck.links);
  const parts = [];
  for (let i = 1; i <= count; i++) parts.push(engine.advance((plan.duration * i) / count));
  return { parts, record: engine.record() };
}

/**
 * @param {any} engine
 * @param {any[]} call
 */
function answer(engine, [name, ...rest]) {
  try {
    return { value: name === "steps" ? steps(engine, rest[0], rest[1], rest[2]) : engine[name](...rest) };
  } catch (/** @type {any} */ error) {
    return { error: error.message, problems: error.problems ?? null };
  }
}

(async () => {
  const engine = await Engine.load(readFileSync(`${process.argv[2]}/sojourn.wasm`));
  for (const line of readFileSync(process.argv[3], "utf8").split("\n").filter(Boolean)) {
    writeSync(1, `${JSON.stringify(answer(engine, JSON.parse(line)))}\n`);
  }
})();
