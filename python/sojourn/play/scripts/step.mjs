// A step of an explanation: the animation of one or two queues, without controls.

import { Animation } from "./animation.mjs";
import { changed, edits } from "./changes.mjs";
import { compile } from "./figure.mjs";
import { Runs } from "./runs.mjs";
import { spoken } from "./units.mjs";

/** @import { Step as Data } from "./types.js" */

/**
 * Creates the figure of a step and starts it; returns its animation.
 * @param {HTMLElement} root
 * @param {Data} step
 */
export async function show(root, { entry, queues }) {
  const engines = await Promise.all(queues.map(async () => Engine.load(await compile())));
  const nothing = () => {};
  const done = () => { root.dataset.state = "ready"; };
  const runs = new Runs(engines, { progress: nothing, done, failed: (error) => { throw error; } });
  const animation = new Animation(entry, runs, nothing, queues.length);
  root.classList.add("sojourn-figure", "compact");
  root.replaceChildren(animation.root);
  const read = queues.map((text) => engines[0].readQueue(text, entry.bottleneck.rate));
  animation.plain = read.map(({ name }) => ["pfifo", "bfifo"].includes(name));
  animation.lanes.forEach(({ name, canvas }, i) => {
    name.textContent = queues.length > 1 ? queues[i] : "";
    canvas.setAttribute("aria-label", `Packets in the queue ${queues[i]}`);
  });
  animation.rate = spoken(entry.bottleneck.rate, "bit/s");
  animation.describe({});
  const state = changed(entry, {});
  runs.start(queues.map((queue) => engines[0].edit(entry.plan, edits(entry, state, queue))), 1, entry.bottleneck.links[0], entry.bottleneck.rate);
  animation.watch();
  return animation;
}
