// The animations of the two queues, and the time that they show.

import { element } from "./controls.mjs";
import { Lane, Mark, groupLooks, idle, speed } from "./stage.mjs";
import { spoken } from "./units.mjs";

/** @import { Film } from "./film.mjs" */
/** @import { Run, Runs } from "./runs.mjs" */
/** @import { State } from "./changes.mjs" */
/** @import { Entry, Group } from "./types.js" */

/**
 * Returns the label of a group of flows: its own name, otherwise the label of its application.
 * @param {Group} group
 */
export function called(group) {
  return group.name === group.app ? group.label : group.name;
}

/**
 * Returns the number of the group that a scenario's deciding metric measures; null if it measures a link.
 * @param {Entry} entry
 */
export function deciding(entry) {
  const number = entry.groups.findIndex((group) => entry.by.metric.startsWith(`${group.name}.`));
  return number < 0 ? null : number;
}

/**
 * Returns what a scenario decides: the number of simulated ns in a second of the film, and the looks of the groups.
 * @param {Entry} entry
 */
function view(entry) {
  const subject = deciding(entry);
  return { entry, subject, pace: speed(entry.bottleneck.rate) * 1e9, looks: groupLooks(entry.groups.length, subject) };
}

export class Animation {
  /** Time of the film in ns; null before the first picture. @type {number | null} */
  t = null;
  /** The runs that are shown. @type {Run[] | null} */
  shown = null;
  /** @type {Mark[]} */
  symbols = [];
  marks = element("li", { className: "marked", hidden: true }, "marked (ECN)");
  playing = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  /** Text at the link. */
  rate = "";
  /** Whether each of the two queues drops only when it is full. @type {boolean[]} */
  plain = [];

  /**
   * @param {Entry} entry
   * @param {Runs} runs
   * @param {(seconds: number) => void} moved Called at each picture with the time of the film.
   * @param {number} count Number of queues.
   */
  constructor(entry, runs, moved, count = 2) {
    this.runs = runs;
    this.moved = moved;
    this.lanes = Array.from({ length: count }, (_, i) => this.lane(i));
    this.button = element("button", { type: "button", className: "play" });
    this.button.addEventListener("click", () => this.play(!this.playing));
    this.clock = element("span", { className: "clock" });
    this.legend = element("ul", { className: "legend", "aria-label": "Packets" });
    this.bar = element("progress", { max: 1, value: 0, className: "computed", "aria-label": "Simulated" });
    this.tip = element("p", { className: "tip", hidden: true, role: "tooltip" });
    this.root = element("div", { className: "stage" }, ...this.lanes.map(({ root }) => root),
      element("div", { className: "bar" }, this.button, this.clock, this.bar, this.legend), this.tip);
    this.play(this.playing);
    this.view = view(entry);
  }

  /** @param {number} i */
  lane(i) {
    const canvas = element("canvas", { role: "img" });
    const name = element("strong");
    const now = element("span", { className: "now" });
    const root = element("div", { className: `lane run${i}` }, element("p", { className: "head" }, name, " ", now), canvas);
    const lane = new Lane(canvas);
    const over = (/** @type {PointerEvent} */ event) => this.over(lane, i, event);
    canvas.addEventListener("pointermove", over);
    canvas.addEventListener("pointerdown", over);
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    return { root, canvas, name, now, lane };
  }

  /**
   * Prepares for the runs of a scenario.
   * @param {Entry} entry
   */
  scenario(entry) {
    this.view = view(entry);
    this.t = null;
    this.shown = null;
    this.tip.hidden = true;
    this.clock.textContent = "";
    for (const { lane, now } of this.lanes) {
      now.textContent = "";
      lane.clear();
    }
  }

  /**
   * Describes the packets in the legend.
   * @param {State["counts"]} counts
   */
  describe(counts) {
    const { looks, entry: { groups, store } } = this.view;
    this.symbols = groups.map((_, i) => new Mark(looks[i]));
    const items = groups.map((group, i) => {
      const count = counts[i] ?? group.count;
      return element("li", {}, this.symbols[i].canvas, ` ${called(group)}`, count > 1 ? ` × ${count}` : "");
    });
    if (store) {
      const symbol = new Mark(looks[0]);
      this.symbols.push(symbol);
      items.push(element("li", {}, symbol.canvas, " messages of the store"));
    }
    this.marks.hidden = true;
    this.legend.replaceChildren(...items, element("li", { className: "dropped" }, "dropped"), this.marks);
    this.restyle();
  }

  /** Draws all in the colours of the current theme. */
  restyle() {
    this.lanes.forEach(({ lane }) => lane.restyle());
    this.symbols.forEach((symbol) => symbol.draw());
  }

  /** @param {boolean} on */
  play(on) {
    this.playing = on;
    this.button.textContent = on ? "❚❚" : "▶";
    this.button.setAttribute("aria-label", on ? "Pause" : "Play");
    this.button.title = on ? "Pause" : "Play";
  }

  /** @param {number} seconds */
  seek(seconds) {
    const { runs } = this.runs;
    if (!runs.length) return;
    const until = Math.min(...runs.map((run) => run.until));
    this.t = Math.min(Math.max(seconds * 1e9, runs[0].from), until - 1);
    this.frame(0);
  }

  /** Draws frames while the animation is visible. */
  watch() {
    /** @type {number | null} */
    let last = null;
    let handle = 0;
    const step = (/** @type {number} */ now) => {
      const passed = last === null ? 0 : Math.min(0.1, (now - last) / 1000);
      last = now;
      this.frame(this.playing ? passed : 0);
      handle = requestAnimationFrame(step);
    };
    new IntersectionObserver(([{ isIntersecting }]) => {
      cancelAnimationFrame(handle);
      last = null;
      if (isIntersecting) handle = requestAnimationFrame(step);
    }).observe(this.root);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
    new MutationObserver(() => this.restyle()).observe(document.body, { attributes: true, attributeFilter: ["data-theme"] });
  }

  /** Returns the time of the film, and the runs whose films can be shown: new runs once they have reached this time. */
  ready() {
    const { runs } = this.runs;
    if (this.t === null && runs.length) {
      const [run] = runs;
      this.t = Math.min(Math.max(run.from, run.plan.warmup), run.until - 1);
    }
    const ahead = (this.t ?? 0) + 2 * this.view.pace;
    if (runs.length && runs.every((run) => run.complete || run.now >= Math.min(ahead, run.until))) this.shown = runs;
    return { t: this.t, shown: this.shown };
  }

  /** @param {number} passed Seconds since the last picture. */
  frame(passed) {
    const { t: before, shown } = this.ready();
    if (before === null || !shown) return;
    const { rate, view: { pace, looks, subject } } = this;
    const t = this.t = this.next(before + passed * pace, shown);
    const [{ plan }] = shown;
    const most = Math.max(...shown.map((run) => run.film.most));
    this.lanes.forEach(({ lane, now }, i) => {
      const { film } = shown[i];
      lane.draw(film, t, { pace, most, looks, subject, rate, plain: this.plain[i] });
      now.textContent = this.waiting(film, t);
    });
    const slow = Number((1e9 / pace).toPrecision(2));
    this.clock.textContent = `${(t / 1e9).toFixed(plan.duration < 3e9 ? 4 : 2)} s${slow > 1 ? `, slowed down ${slow} times` : ""}`;
    this.moved(t / 1e9);
  }

  /**
   * Returns the time of the next picture: pauses without packets are skipped, and the film begins again at its end.
   * @param {number} t
   * @param {Run[]} shown
   */
  next(t, shown) {
    const known = Math.min(...shown.map((run) => Math.min(run.until, run.film.until)));
    let next = Math.min(t, known);
    const pause = Math.min(...shown.map(({ film }) => idle(film, next, this.view.pace)));
    if (this.playing && pause > 0) next = Math.min(next + pause, known);
    const [{ from, plan }] = shown;
    const until = Math.min(...shown.map((run) => run.until));
    return next < until - 1 ? next : Math.max(from, Math.min(plan.warmup, until - 1));
  }

  /**
   * Returns the text above a lane: packets in the queue and the last waiting time.
   * @param {Film} film
   * @param {number} t
   */
  waiting(film, t) {
    const waiting = film.queued(t).length;
    const { entry, subject } = this.view;
    const last = film.last(t, subject);
    const wait = last === null ? null : (film.left[last] - film.offered[last]) / 1e9;
    const who = subject === null ? "the last" : called(entry.groups[subject]);
    return `${waiting} ${waiting === 1 ? "packet" : "packets"} in the queue${wait === null ? "" : ` · ${who} waited ${spoken(wait, "s")}`}`;
  }

  /**
   * Shows a description of the packet under the pointer.
   * @param {Lane} lane
   * @param {number} i
   * @param {PointerEvent} event
   */
  over(lane, i, event) {
    const film = this.shown?.[i].film;
    if (!film) return;
    const box = lane.canvas.getBoundingClientRect();
    const index = lane.near(event.clientX - box.left, event.clientY - box.top);
    this.tip.hidden = index === null;
    if (index === null) return;
    const group = this.view.entry.groups[film.group[index]];
    const spent = (film.left[index] - film.offered[index]) / 1e9;
    const dropped = film.refused.has(index) || film.drops.includes(index);
    const fate = dropped ? `${film.reason(index, this.plain[i])} after ${spoken(spent, "s")}` : Number.isFinite(spent) ? `waits ${spoken(spent, "s")}` : "still waits";
    const marked = film.marked[index] ? ", marked (ECN)" : "";
    this.tip.textContent = `${group ? called(group) : "packet"}, ${film.length[index]} bytes: ${fate}${marked}`;
    const stage = this.root.getBoundingClientRect();
    this.tip.style.left = `${Math.min(event.clientX - stage.left + 12, stage.width - 190)}px`;
    this.tip.style.top = `${event.clientY - stage.top + 14}px`;
  }
}
