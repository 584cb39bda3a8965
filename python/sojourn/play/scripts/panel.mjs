// The controls of a figure.

import { called } from "./animation.mjs";
import { FLOWS } from "./changes.mjs";
import { Choice, Field, Slider, Words, element, ticked } from "./controls.mjs";
import { written } from "./units.mjs";

/** @import { State } from "./changes.mjs" */
/** @import { Control } from "./controls.mjs" */
/** @import { Span } from "./units.mjs" */
/** @import { Engine, Entry, Plan, QueueTable, ReadQueue } from "./types.js" */

/**
 * A queue's text as read, with its name in the scenario if it has one.
 * @typedef {ReadQueue & { text: string, called: string | undefined }} Queue
 */

/**
 * @param {string} kind
 * @param {number} value
 * @param {number} low
 * @param {number} high
 * @returns {Span}
 */
function span(kind, value, low, high) {
  return { kind, value, low: Math.min(low, value), high: Math.max(high, value), log: true };
}

/** Rate and queues. */
export class Panel {
  /**
   * @param {Entry} entry
   * @param {Engine} engine
   * @param {(changes: Partial<State>, control: Control) => void} set Called at changes by the user.
   */
  constructor(entry, engine, set) {
    this.entry = entry;
    this.set = set;
    this.tables = new Map(engine.queues().map((table) => [table.name, table]));
    this.rate = new Slider("Rate of the link", "", (rate, control) => set({ rate }, control));
    this.queue = new Choice("Queue", (name, control) => set({ queue: this.entry.usual[name] }, control));
    this.against = new Choice("Compared with", (name, control) => set({ against: this.entry.usual[name] }, control));
    this.queue.root.classList.add("run0");
    this.against.root.classList.add("run1");
    this.root = element("div", { className: "controls" }, this.rate.root, this.queue.root, this.against.root);
  }

  /** @param {string} name */
  table(name) {
    return /** @type {QueueTable} */ (this.tables.get(name));
  }

  /**
   * Sets the controls to the values of a state.
   * @param {Queue[]} read The two queues.
   * @param {number} rate In bit/s.
   */
  fill(read, rate) {
    const { bottleneck } = this.entry;
    this.rate.root.hidden = bottleneck.trace;
    if (!bottleneck.trace) this.rate.update(span("rate", rate, bottleneck.rate / 20, bottleneck.rate * 5), written("rate", rate));
    const names = [...this.tables.keys()];
    [this.queue, this.against].forEach((choice, i) => {
      const { called: own, name, warnings } = read[i];
      choice.update(names.map((option) => [option, own && option === name ? `${own} (${option})` : option]), name, warnings.join(" ") || this.table(name).summary);
    });
  }
}

/** The controls for experts. */
export class Experts {
  /** @type {Slider[]} */
  counters = [];

  /**
   * @param {Engine} engine
   * @param {Panel} panel
   * @param {() => State} state Returns the current state.
   */
  constructor(engine, panel, state) {
    this.panel = panel;
    const { set } = panel;
    this.rtt = new Slider("Round-trip time", "of the link, with empty queues", (rtt, control) => set({ rtt }, control));
    this.duration = new Slider("Length", "of the run", (duration, control) => set({ duration }, control));
    this.seed = new Field("Seed", (text, control) => {
      if (/^[0-9]{1,15}$/.test(text)) set({ seed: Number(text) }, control);
      else control.fail("must be a whole number of at most 15 digits, such as 7");
    });
    this.counts = element("div", { className: "counts" });
    this.texts = [
      new Field("Queue, as `tc` writes it", (queue, control) => set({ queue }, control)),
      new Field("Compared with, as `tc` writes it", (against, control) => set({ against }, control)),
    ];
    this.texts.forEach(({ root }, i) => root.classList.add(`run${i}`));
    this.words = new Words(engine, (word, value, control) =>
      set({ queue: engine.rewriteQueue(state().queue, [[word, value]]) }, control));
    this.wordsTitle = element("h3");
    const swap = element("button", { type: "button" }, "Exchange the two queues");
    swap.addEventListener("click", () => set({ queue: state().against, against: state().queue }, panel.queue));
    this.root = element("details", { className: "more" }, element("summary", {}, "More controls"),
      element("div", { className: "columns" },
        element("section", {}, element("h3", {}, "Link and traffic"), this.rtt.root, this.counts, this.duration.root, this.seed.root),
        element("section", {}, this.wordsTitle, this.words.root),
        element("section", {}, element("h3", {}, "The two queues"), ...this.texts.map(({ root }) => root), swap)));
  }

  /**
   * Creates the controls for a scenario's numbers of flows.
   * @param {Entry} entry
   * @param {() => State} state Returns the current state.
   */
  scenario(entry, state) {
    this.counters = entry.groups.slice(0, 8).map((group, i) =>
      new Slider(`Number of ${called(group)}`, "", (text, control) => {
        if (/^[0-9]+$/.test(text) && Number(text) >= 1 && Number(text) <= FLOWS) {
          this.panel.set({ counts: { ...state().counts, [i]: Number(text) } }, control);
        } else control.fail(`must be a whole number from 1 to ${FLOWS}`);
      }));
    this.counts.replaceChildren(...this.counters.map(({ root }) => root));
  }

  /**
   * Sets the controls to the values of a state.
   * @param {Queue[]} read The two queues.
   * @param {Plan} plan
   * @param {State} state
   */
  fill(read, plan, state) {
    const [path] = this.panel.entry.paths;
    this.rtt.root.hidden = !path;
    if (path) {
      const rtt = path.reduce((sum, link) => sum + plan.links[link].params.delay, 0);
      this.rtt.update(span("time", Math.max(rtt, 1), Math.min(1e6, rtt / 20 || 1e6), Math.max(1e9, rtt)), written("time", rtt));
    }
    this.duration.update(span("time", plan.duration, 1e9, 60e9), written("time", plan.duration));
    this.seed.update(String(state.seed));
    this.counters.forEach((counter, i) => {
      const { count } = plan.groups[i];
      counter.update(span("integer", count, 1, 50), String(count));
    });
    const { name } = read[0];
    this.wordsTitle.replaceChildren(...ticked(`Words of \`${name}\``));
    this.words.update(read[0], this.panel.table(name));
    this.texts.forEach((field, i) => field.update(read[i].text));
  }
}
