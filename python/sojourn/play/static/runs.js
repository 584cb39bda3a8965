// Runs are simulated in short slices between frames, so that the page responds during long simulations.

(function (S) {
  "use strict";

  /** Largest number of packets in a film, which a phone can hold in memory. */
  const PACKETS = 40_000;
  const FRAME = 1514 * 8;
  /** Longest time of simulation between two pauses, in milliseconds. */
  const SLICE = 10;

  /**
   * Returns the times at which the log and the film begin, in ns. Both begin at 0 if the film can have all packets
   * of a fully used link; otherwise the film begins after the warm-up. The log begins earlier than the film, so
   * that it has the packets that are in the queue when the film begins.
   */
  function filmed(plan, rate) {
    const span = Math.round((PACKETS * FRAME * 1e9) / rate);
    return span >= plan.duration ? [0, 0] : [Math.max(0, plan.warmup - span), plan.warmup];
  }

  /**
   * Returns a function from the direction of a packet to the number of its group of flows. Directions are numbered
   * by flow in the order of the plan, two for each flow.
   */
  function grouping(plan) {
    const ends = [];
    let flows = 0;
    for (const group of plan.groups) ends.push((flows += group.count));
    return (direction) => {
      const flow = direction >> 1;
      const group = ends.findIndex((end) => flow < end);
      return group < 0 ? ends.length : group;
    };
  }

  /** Returns a table of a record as an object: unit and values by column. */
  function table(columns) {
    return Object.fromEntries(columns.map(([name, unit, values]) => [name, { unit, values }]));
  }

  /** A run: it has a film while it is simulated, and a record at the end. */
  class Run {
    constructor(engine, plan, seed, link, rate) {
      Object.assign(this, { engine, plan, link });
      [this.logged, this.from] = filmed(plan, rate);
      this.until = plan.duration;
      this.film = new S.Film(grouping(plan));
      this.now = 0;
      this.step = plan.duration / 200;
      this.logging = false;
      this.before = 0;
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
        const { tables, trace_hash, events } = this.engine.record();
        this.record = { trace_hash, events, summary: table(tables.summary), series: table(tables.series) };
      }
      const took = performance.now() - begin;
      this.seconds += took / 1000;
      this.step *= took > SLICE ? 0.6 : took < SLICE / 3 ? 1.5 : 1;
    }

    log(on) {
      this.logging = on;
      this.engine.log(on ? [this.link] : []);
    }

    get complete() {
      return this.record !== null;
    }

    /** Returns the value of a metric; NaN before the end of the run or if it was not measured. */
    value(metric) {
      return this.record?.summary[metric]?.values[0] ?? NaN;
    }

    /** Returns the values of a time series of the bottleneck; empty before the end of the run. */
    series(name) {
      return this.record?.series[name]?.values ?? [];
    }
  }

  /** Several runs that are simulated alternately until they are complete or replaced. */
  class Runs {
    /** `progress` is called with the runs after each slice, `done` with the runs at the end, `failed` with an error. */
    constructor(engines, { progress, done, failed }) {
      Object.assign(this, { engines, progress, done, failed });
      this.runs = [];
      this.turn = 0;
    }

    /** Starts a run of each plan with a seed, and ends earlier runs; `link` is filmed, and `rate` is its usual rate. */
    start(plans, seed, link, rate) {
      this.turn++;
      this.runs = plans.map((plan, i) => new Run(this.engines[i], plan, seed, link, rate));
      this.go(this.turn);
    }

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

  Object.assign(S, { Runs });
})((globalThis.Sojourn ??= {}));
