// A figure: a scenario with two queues, their animations and measurements, and controls that change it. The browser
// simulates; SOJOURN_CATALOGUE has the plans, SOJOURN_MODULE the engine.

import { Animation } from "./animation.mjs";
import { changed, commands, edits, fragment } from "./changes.mjs";
import { element } from "./controls.mjs";
import { Experts, Panel } from "./panel.mjs";
import { Commands, Results } from "./results.mjs";
import { Runs } from "./runs.mjs";
import { spoken } from "./units.mjs";

/** @import { State } from "./changes.mjs" */
/** @import { Control } from "./controls.mjs" */
/** @import { Queue } from "./panel.mjs" */
/** @import { Run } from "./runs.mjs" */
/** @import { Engine as EngineType, Entry, Metrics, Plan, Problem } from "./types.js" */

/**
 * `metrics` has the metrics of the table; without them the figure is compact, and `id` and `playground` are the
 * scenario's name and the address of the page to which it links. `changed` is called with the state at changes.
 * @typedef {{ metrics?: Metrics, id?: string, playground?: string | null, changed?: (state: State) => void }} Options
 */

/** Time of computing after which the runs are stopped, in seconds. */
const PATIENCE = 20;

/** @type {Promise<WebAssembly.Module> | null} */
let compiled = null;

/** Returns the compiled module of the engine, which all figures of a page share. */
export function compile() {
  compiled ??= (async () => {
    const packed = Uint8Array.from(atob(globalThis.SOJOURN_MODULE ?? ""), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return WebAssembly.compile(await new Response(stream).arrayBuffer());
  })();
  return compiled;
}

/**
 * Returns the names of two queues: those in the scenario, otherwise of the disciplines; whole texts if these are equal.
 * @param {Queue[]} queues
 */
function names(queues) {
  const [a, b] = queues;
  const key = a.name === b.name ? "text" : "name";
  return queues.map((queue) => queue.called ?? queue[key]);
}

export class Figure {
  /** @type {Plan[]} The plans with each of the two queues. */
  plans = [];
  /** @type {string[]} Names of the two queues. */
  names = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer;

  /**
   * @param {HTMLElement} root
   * @param {Entry} entry
   * @param {Partial<State>} changes
   * @param {Options} options
   */
  static async make(root, entry, changes, options) {
    const engines = await Promise.all([0, 1].map(async () => Engine.load(await compile())));
    return new Figure(root, engines, entry, changes, options);
  }

  /**
   * @param {HTMLElement} root
   * @param {EngineType[]} engines
   * @param {Entry} entry
   * @param {Partial<State>} changes
   * @param {Options} options
   */
  constructor(root, engines, entry, changes, options) {
    this.root = root;
    this.engine = engines[0];
    this.options = options;
    this.entry = entry;
    this.state = changed(entry, changes);
    this.rate = entry.bottleneck.rate;
    this.runs = new Runs(engines, {
      progress: (runs) => this.progress(runs),
      done: (runs) => this.done(runs),
      failed: (error) => this.failed(error),
    });
    const { metrics, playground } = options;
    this.animation = new Animation(entry, this.runs, (seconds) => this.moved(seconds));
    this.results = new Results(metrics ?? null, (seconds) => this.animation.seek(seconds));
    this.panel = new Panel(entry, this.engine, (edit, control) => this.set(edit, control));
    /** @type {Control} The control that caused the last change. */
    this.control = this.panel.queue;
    this.open = element("a", {}, "Open this scenario in the playground");
    this.whole = metrics ? { experts: new Experts(this.engine, this.panel, () => this.state), commands: new Commands() } : null;
    root.classList.add("sojourn-figure", this.whole ? "whole" : "compact");
    root.replaceChildren(this.results.verdict, this.results.reasons, this.animation.root, this.panel.root, this.results.charts[0].root);
    if (this.whole) root.append(this.whole.experts.root, this.results.numbers?.root ?? "", this.whole.commands.root);
    else root.append(element("p", { className: "note" }, playground ? this.open : ""));
    this.show(entry, changes);
    this.animation.watch();
  }

  /**
   * Shows a scenario with new controls, and starts its runs.
   * @param {Entry} entry
   * @param {Partial<State>} changes
   */
  show(entry, changes) {
    this.entry = entry;
    this.panel.entry = entry;
    this.state = changed(entry, changes);
    this.rate = entry.bottleneck.rate;
    this.results.clear();
    this.animation.scenario(entry);
    this.animation.describe(this.state.counts);
    this.whole?.experts.scenario(entry, () => this.state);
    this.control = this.panel.queue;
    this.restart();
  }

  /**
   * Changes the state by a control of the user; shows an error next to the control.
   * @param {Partial<State>} changes
   * @param {Control} control
   */
  set(changes, control) {
    this.state = { ...this.state, ...changes };
    this.control.fail(null);
    this.control = control;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.restart(), 15);
  }

  /** Starts the runs of the current state; shows an error if it cannot be simulated. */
  restart() {
    const { engine, entry, state } = this;
    const queues = [state.queue, state.against];
    /** @type {Queue[]} */
    let read;
    try {
      read = queues.map((text) => ({ text, called: entry.names[text], ...engine.readQueue(text, this.rate) }));
      this.plans = queues.map((queue) => engine.edit(entry.plan, edits(entry, state, queue)));
    } catch (error) {
      this.failed(error);
      return;
    }
    this.control.fail(null);
    this.names = names(read);
    const [link] = entry.bottleneck.links;
    this.rate = this.plans[0].links[link].params.rate ?? entry.bottleneck.rate;
    this.fill(read);
    this.options.changed?.(state);
    this.root.dataset.state = "busy";
    this.animation.bar.value = 0;
    this.results.reasons.textContent = "";
    try {
      this.runs.start(this.plans, state.seed, link, this.rate);
    } catch (error) {
      this.failed(error);
    }
  }

  /**
   * Shows the current state in all controls and texts.
   * @param {Queue[]} read The two queues.
   */
  fill(read) {
    const { animation, entry, options, state } = this;
    animation.rate = `${spoken(this.rate, "bit/s")}${entry.bottleneck.trace ? " on average" : ""}`;
    animation.plain = read.map(({ name }) => ["pfifo", "bfifo"].includes(name));
    animation.lanes.forEach(({ name }, i) => {
      name.textContent = this.names[i];
      name.title = read[i].text;
    });
    animation.describe(state.counts);
    this.panel.fill(read, this.rate);
    this.open.href = `${options.playground}#${fragment(options.id ?? "", state, entry)}`;
    if (!this.whole) return;
    this.whole.experts.fill(read, this.plans[0], state);
    this.whole.commands.text.textContent = commands(entry, state, this.plans[0]);
  }

  /** @param {unknown} error */
  failed(error) {
    const problems = error instanceof Error && "problems" in error ? /** @type {Problem[]} */ (error.problems) : [];
    const of = /^links\[\d+\]\.rate/.test(problems[0]?.[0] ?? "") ? this.panel.rate : this.control;
    const message = problems.map(([, text]) => text).join("; ") || (error instanceof Error ? error.message : String(error));
    const outside = this.whole && of.root.closest("details:not([open])");
    (outside ? this.panel.queue : of).fail(message);
    this.root.dataset.state = "error";
  }

  /** @param {Run[]} runs */
  progress(runs) {
    this.animation.bar.value = Math.min(...runs.map((run) => run.now / run.plan.duration));
    if (runs.some((run) => run.seconds > PATIENCE)) {
      this.runs.turn++;
      this.failed(new Error(`the simulation takes longer than ${PATIENCE} s: reduce the rate, the number of flows or the length, or use the commands below`));
    }
  }

  /** @param {Run[]} runs */
  done(runs) {
    this.root.dataset.state = "ready";
    this.root.dataset.hashes = runs.map(({ record }) => record?.trace_hash).join(" ");
    const { entry, state } = this;
    const own = state.queue === entry.queue && state.against === entry.against && !state.rate;
    const same = own && !state.rtt && !state.duration && Object.keys(state.counts).length === 0;
    this.results.show(runs, entry, this.names, own, same);
    const { textContent } = this.results.verdict;
    this.animation.lanes.forEach(({ canvas }, i) => canvas.setAttribute("aria-label", `Packets in the queue ${this.names[i]}. ${textContent}`));
    this.animation.marks.hidden = !runs.some((run) => run.value("marks") > 0);
  }

  /** @param {number} seconds */
  moved(seconds) {
    this.results.charts[0].move(seconds);
    this.root.dataset.moving = String(this.animation.playing);
  }
}
