// Runs are simulated in short slices between frames, so that the page responds during long simulations.

import { Film } from "./film.mjs";

/** @import { Column, Engine, Plan, Value } from "./types.js" */

/** Largest number of packets in a film, which a phone can hold in memory. */
const PACKETS = 40_000;
const FRAME = 1514 * 8;
/** Longest time of simulation between two pauses, in milliseconds. */
const SLICE = 10;

/**
 * Returns the times at which the log and the film begin, in ns. Both begin at 0 if the film can have all packets
 * of a fully used link; otherwise the film begins after the warm-up. The log begins earlier than the film, so
 * that it has the packets that are in the queue when the film begins.
 * @param {Plan} plan
 * @param {number} rate Rate of the link in bit/s.
 */
function filmed(plan, rate) {
  const span = Math.round((PACKETS * FRAME * 1e9) / rate);
  return span >= plan.duration ? { logged: 0, from: 0 } : { logged: Math.max(0, plan.warmup - span), from: plan.warmup };
}

/**
 * Returns a function from the direction of a packet to the number of its group of flows. Directions are numbered
 * by flow in the order of the plan, two for each flow.
 * @param {Plan} plan
 */
function grouping(plan) {
  let flows = 0;
  const ends = plan.groups.map(({ count }) => (flows += count));
  return (/** @type {number} */ direction) => {
    const flow = direction >> 1;
    const group = ends.findIndex((end) => flow < end);
    return group < 0 ? ends.length : group;
  };
}

/**
 * Returns the numbers of a table of a record, by column; NaN where a number is missing.
 * @param {Column[]} columns
 * @returns {Map<string, number[]>}
 */
function numbers(columns) {
  const number = (/** @type {Value} */ value) => (typeof value === "number" ? value : NaN);
  return new Map(columns.map(([name, , values]) => [name, values.map(number)]));
}

/** A run: it has a film while it is simulated, and a record at the end. */
export class Run {
  /**
   * @param {Engine} engine
   * @param {Plan} plan
   * @param {number} seed
   * @param {number} link Number of the filmed link.
   * @param {number} rate Usual rate of this link in bit/s.
   */
  constructor(engine, plan, seed, link, rate) {
    this.engine = engine;
    this.plan = plan;
    this.link = link;
    const { logged, from } = filmed(plan, rate);
    this.logged = logged;
    this.from = from;
    this.until = plan.duration;
    this.film = new Film(grouping(plan));
    this.now = 0;
    this.step = plan.duration / 200;
    this.logging = false;
    this.before = 0;
    /** @type {{ causes: string[], trace_hash: string, events: number, summary: Map<string, number[]>, series: Map<string, number[]> } | null} */
    this.record = null;
    this.seconds = 0;
    engine.open(plan, seed);
  }

  /** Simulates one step, whose length is adapted to the time that it takes. */
  advance() {
    const begin = performance.now();
    if (!this.logging && this.now >= this.logged && this.now < this.until) this.log(true);
    let target = Math.min(this.plan.duration, this.now + this.step);
    for (const stop of [this.logged, this.from]) if (this.now < stop) target = Math.min(target, stop);
    const found = this.engine.advance(target);
    this.now = found.now;
    if (this.logging) this.film.add(found);
    if (this.now <= this.from) this.before = this.film.offered.length;
    if (this.logging && this.film.offered.length - this.before >= PACKETS) {
      this.log(false);
      this.until = this.now;
    }
    if (found.complete) {
      const { tables, causes, trace_hash, events } = this.engine.record();
      this.record = { causes, trace_hash, events, summary: numbers(tables.summary), series: numbers(tables.series) };
    }
    const took = performance.now() - begin;
    this.seconds += took / 1000;
    this.step *= took > SLICE ? 0.6 : took < SLICE / 3 ? 1.5 : 1;
  }

  /** @param {boolean} on */
  log(on) {
    this.logging = on;
    this.engine.log(on ? [this.link] : []);
  }

  get complete() {
    return this.record !== null;
  }

  /**
   * Returns the value of a metric; NaN before the end of the run or if it was not measured.
   * @param {string} metric
   */
  value(metric) {
    return this.record?.summary.get(metric)?.[0] ?? NaN;
  }

  /** Sentences on what limited the run; none before its end. */
  get causes() {
    return this.record?.causes ?? [];
  }

  /**
   * Returns the values of a time series of the bottleneck; empty before the end of the run.
   * @param {string} name
   */
  series(name) {
    return this.record?.series.get(name) ?? [];
  }
}

/** Several runs that are simulated alternately until they are complete or replaced. */
export class Runs {
  /**
   * @param {Engine[]} engines
   * @param {object} calls
   * @param {(runs: Run[]) => void} calls.progress Called after each slice.
   * @param {(runs: Run[]) => void} calls.done Called at the end.
   * @param {(error: unknown) => void} calls.failed
   */
  constructor(engines, { progress, done, failed }) {
    this.engines = engines;
    this.progress = progress;
    this.done = done;
    this.failed = failed;
    /** @type {Run[]} */
    this.runs = [];
    this.turn = 0;
  }

  /**
   * Starts a run of each plan, and ends earlier runs.
   * @param {Plan[]} plans
   * @param {number} seed
   * @param {number} link Number of the filmed link.
   * @param {number} rate Usual rate of this link in bit/s.
   */
  start(plans, seed, link, rate) {
    this.turn++;
    this.runs = plans.map((plan, i) => new Run(this.engines[i], plan, seed, link, rate));
    this.go(this.turn);
  }

  /** @param {number} turn */
  go(turn) {
    if (turn !== this.turn) return;
    const begin = performance.now();
    try {
      while (performance.now() - begin < SLICE) {
        // The run with the smallest simulated time continues, so that all films begin early.
        const open = this.runs.filter((run) => !run.complete);
        if (open.length === 0) {
          this.done(this.runs);
          return;
        }
        open.reduce((a, b) => (b.now < a.now ? b : a)).advance();
      }
    } catch (error) {
      this.turn++;
      this.failed(error);
      return;
    }
    this.progress(this.runs);
    setTimeout(() => this.go(turn));
  }
}
