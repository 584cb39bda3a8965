// Runs in slices between frames, so that a page stays quick whatever is simulated.

(function (S) {
  "use strict";

  /** Packets of a film: enough for what a viewer can see, and small enough for a phone. */
  const PACKETS = 40_000;
  const FRAME = 1514 * 8;
  /** Milliseconds of computing between two pauses. */
  const SLICE = 10;

  /**
   * When the log and the film begin, in ns: at once where all packets of a full link fit in, else after the
   * warm-up. The log begins earlier, with packets that wait when the film begins.
   */
  function filmed(plan, rate) {
    const span = Math.round((PACKETS * FRAME * 1e9) / rate);
    return span >= plan.duration ? [0, 0] : [Math.max(0, plan.warmup - span), plan.warmup];
  }

  /** The group of flows of a packet's direction; directions count flows in the order of the plan, two for each. */
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

  /** A table of a record as an object of columns. */
  function table(columns) {
    return Object.fromEntries(columns.map(([name, unit, values]) => [name, { unit, values }]));
  }

  /** One run: its film while it is simulated, and its record at the end. */
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

    /** Simulates a little. */
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

    /** The value of a metric, or NaN. */
    value(metric) {
      return this.record?.summary[metric]?.values[0] ?? NaN;
    }

    /** A series of the bottleneck. */
    series(name) {
      return this.record?.series[name]?.values ?? [];
    }
  }

  /** Runs that are simulated side by side until they are complete or replaced. */
  class Runs {
    /** `progress` is called after each slice, `done` at the end, `failed` with an error. */
    constructor(engines, { progress, done, failed }) {
      Object.assign(this, { engines, progress, done, failed });
      this.runs = [];
      this.turn = 0;
    }

    /** Starts runs in place of those under way; plans, a seed, the link that is filmed, and its usual rate. */
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
          // The run that is behind goes on, so that both films begin early.
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
