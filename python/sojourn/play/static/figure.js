// A live figure: a scenario with two queues, their animations and measurements, and controls that change it.
//
// `<div class="sojourn-live" data-scenario="home" data-queue="codel" data-against="pfifo limit 1000p">` in any
// page becomes a figure. The browser simulates; SOJOURN_CATALOGUE has the plans, SOJOURN_MODULE the engine.

(function (S) {
  "use strict";

  const { element } = S;
  /** Time of computing after which the runs are stopped, in seconds. */
  const PATIENCE = 20;
  /** Largest number of flows of a group, which the memory of a page can hold. */
  const FLOWS = 5000;
  /** Time series of the bottleneck: name, title and unit. */
  const SERIES = [
    ["last_sojourn", "Time in the queue", "s"],
    ["queue", "Packets in the queue", "1"],
    ["throughput", "Throughput", "bit/s"],
  ];

  /** Address of the page with all scenarios, in the folder of this script. */
  const PLAYGROUND = typeof document === "undefined" ? null : new URL("index.html", document.currentScript.src).href;

  let compiled = null;

  /** The compiled module of the engine, which all figures of a page share. */
  function module() {
    compiled ??= (async () => {
      const packed = Uint8Array.from(atob(globalThis.SOJOURN_MODULE), (c) => c.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
      return WebAssembly.compile(await new Response(stream).arrayBuffer());
    })();
    return compiled;
  }

  /** Returns the label of a group of flows: its own name, otherwise the label of its application. */
  function called(group) {
    return group.name === group.app ? group.label : group.name;
  }

  /** Returns the names of two queues: those in the scenario, otherwise of the disciplines; whole texts if these are equal. */
  function names(a, b) {
    const key = a.name === b.name ? "text" : "name";
    return [a, b].map((queue) => queue.called ?? queue[key]);
  }

  class Figure {
    /** `entry` is a scenario of the catalogue; `state` has the changed values; `changed(state)` is called at changes. */
    static async make(root, entry, state, options = {}) {
      const engines = await Promise.all([0, 1].map(async () => Engine.load(await module())));
      return new Figure(root, engines, entry, state, options);
    }

    constructor(root, engines, entry, state, { id = null, compact = true, changed = () => {}, metrics = null, playground = null } = {}) {
      Object.assign(this, { root, engines, id, compact, changed, metrics, playground });
      this.engine = engines[0];
      this.tables = new Map(this.engine.queues().map((table) => [table.name, table]));
      this.t = null;
      this.playing = !matchMedia("(prefers-reduced-motion: reduce)").matches;
      this.build();
      this.runs = new S.Runs(engines, {
        progress: (runs) => this.progress(runs),
        done: (runs) => this.done(runs),
        failed: (error) => this.failed(error),
      });
      this.show(entry, state);
      this.watch();
    }

    // Elements of the page

    build() {
      this.verdict = element("p", { className: "verdict", "aria-live": "polite" });
      this.lanes = [0, 1].map((i) => this.lane(i));
      this.button = element("button", { type: "button", className: "play" });
      this.button.addEventListener("click", () => this.play(!this.playing));
      this.clock = element("span", { className: "clock" });
      this.legend = element("ul", { className: "legend", "aria-label": "Packets" });
      this.tip = element("p", { className: "tip", hidden: true, role: "tooltip" });
      this.stage = element("div", { className: "stage" }, ...this.lanes.map(({ root }) => root),
        element("div", { className: "bar" }, this.button, this.clock, this.legend), this.tip);
      this.charts = SERIES.slice(0, this.compact ? 1 : 3).map(([, title, unit], i) =>
        new S.Chart(title, unit, i === 0 ? (seconds) => this.seek(seconds) : null));
      const first = this.first();
      const parts = [this.verdict, this.stage, first, this.charts[0].root];
      if (this.compact) parts.push(this.links());
      else parts.push(this.more(), this.numbers(), this.commands());
      this.root.classList.add("sojourn-figure", this.compact ? "compact" : "whole");
      this.root.replaceChildren(...parts);
      this.play(this.playing);
    }

    lane(i) {
      const canvas = element("canvas", { role: "img" });
      const name = element("strong", {});
      const now = element("span", { className: "now" });
      const root = element("div", { className: `lane run${i}` }, element("p", { className: "head" }, name, " ", now), canvas);
      const lane = new S.Lane(canvas);
      const over = (event) => this.over(lane, i, event);
      canvas.addEventListener("pointermove", over);
      canvas.addEventListener("pointerdown", over);
      canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
      return { root, canvas, name, now, lane };
    }

    /** Creates the first controls: rate and queues. */
    first() {
      this.rate = new S.Slider("Rate of the link", "", (text, control) => this.set({ rate: text }, control));
      this.queue = new S.Choice("Queue", (name, control) => this.set({ queue: this.entry.usual[name] }, control));
      this.against = new S.Choice("Compared with", (name, control) => this.set({ against: this.entry.usual[name] }, control));
      this.queue.root.classList.add("run0");
      this.against.root.classList.add("run1");
      return element("div", { className: "controls" }, this.rate.root, this.queue.root, this.against.root);
    }

    /** Creates the controls for experts. */
    more() {
      this.rtt = new S.Slider("Round-trip time", "of the link, with empty queues", (text, control) => this.set({ rtt: text }, control));
      this.duration = new S.Slider("Length", "of the run", (text, control) => this.set({ duration: text }, control));
      this.seed = new S.Field("Seed", (text, control) => {
        if (/^[0-9]{1,15}$/.test(text)) this.set({ seed: Number(text) }, control);
        else control.fail("must be a whole number of at most 15 digits, such as 7");
      });
      this.counts = element("div", { className: "counts" });
      this.texts = [["queue", "Queue, as `tc` writes it"], ["against", "Compared with, as `tc` writes it"]].map(([key, label]) => {
        const field = new S.Field("", (text, control) => this.set({ [key]: text }, control));
        field.root.querySelector("label").replaceChildren(...S.ticked(label));
        field.root.classList.add(key === "queue" ? "run0" : "run1");
        return field;
      });
      this.words = new S.Words(this.engine, (word, value, control) => {
        const queue = this.engine.rewriteQueue(this.state.queue, [[word, value]]);
        this.set({ queue }, control);
      });
      this.wordsTitle = element("h3", {});
      this.swap = element("button", { type: "button" }, "Exchange the two queues");
      this.swap.addEventListener("click", () => this.set({ queue: this.state.against, against: this.state.queue }, this.queue));
      return element("details", { className: "more" }, element("summary", {}, "More controls"),
        element("div", { className: "columns" },
          element("section", {}, element("h3", {}, "Link and traffic"), this.rtt.root, this.counts, this.duration.root, this.seed.root),
          element("section", {}, this.wordsTitle, this.words.root),
          element("section", {}, element("h3", {}, "The two queues"), ...this.texts.map(({ root }) => root), this.swap)));
    }

    /** Creates the charts of further time series and the table of measurements. */
    numbers() {
      this.table = element("table", {});
      this.cost = element("p", { className: "note" });
      const details = element("details", { className: "numbers" }, element("summary", {}, "All numbers"),
        element("div", { className: "panels" }, ...this.charts.slice(1).map((chart) => chart.root)),
        element("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Measured" }, this.table), this.cost);
      details.addEventListener("toggle", () => this.charts.forEach((chart) => chart.draw()));
      return details;
    }

    /** Creates the commands that repeat the comparison with many seeds. */
    commands() {
      this.command = element("pre", { tabIndex: 0 });
      const copy = element("button", { type: "button" }, "Copy");
      copy.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(this.command.textContent);
          copy.textContent = "Copied";
        } catch {
          getSelection().selectAllChildren(this.command);
          copy.textContent = "Selected: press Ctrl-C";
        }
        setTimeout(() => { copy.textContent = "Copy"; }, 2000);
      });
      return element("details", { className: "commands" }, element("summary", {}, "Is that certain? Use it on your own network"),
        element("p", {}, "This page shows one run. The first command compares the two queues over many runs and states how certain the difference is; the second prints the commands for a Linux interface."),
        this.command, copy);
    }

    links() {
      this.open = element("a", {}, "Open this scenario in the playground");
      return element("p", { className: "note" }, this.playground ? this.open : "");
    }

    // Display of a scenario

    /** Shows a scenario with new controls, and starts its runs. */
    show(entry, state = {}) {
      this.entry = entry;
      const duration = entry.plan.duration;
      this.state = { queue: entry.queue, against: entry.against, seed: 1, counts: {}, ...state };
      this.pace = S.speed(entry.bottleneck.rate) * 1e9;
      const subject = entry.groups.findIndex((group) => entry.by.metric.startsWith(`${group.name}.`));
      this.subject = subject < 0 ? null : subject;
      this.looks = S.looks(entry.groups.length, this.subject);
      this.t = null;
      this.shown = null;
      this.verdict.textContent = "";
      this.held = { rate: entry.bottleneck.rate, duration };
      this.describe();
      if (!this.compact) this.makeCounts();
      this.control = this.queue;
      this.restart();
    }

    describe() {
      const { groups, store } = this.entry;
      const items = groups.map((group, i) => {
        const mark = S.mark(this.looks[i]);
        const count = this.state.counts[i] ?? group.count;
        return element("li", {}, mark, ` ${called(group)}`, count > 1 ? ` × ${count}` : "");
      });
      if (store) items.push(element("li", {}, S.mark(this.looks[0]), " messages of the store"));
      items.push(element("li", { className: "dropped" }, "dropped"));
      this.marks = element("li", { className: "marked", hidden: true }, "marked (ECN)");
      items.push(this.marks);
      this.legend.replaceChildren(...items);
      this.restyle();
    }

    restyle() {
      this.lanes.forEach(({ lane }) => lane.restyle());
      this.legend.querySelectorAll("canvas").forEach((mark) => mark.redraw());
    }

    makeCounts() {
      this.counters = this.entry.groups.slice(0, 8).map((group, i) =>
        new S.Slider(`Number of ${called(group)}`, "", (text, control) => {
          if (/^[0-9]+$/.test(text) && Number(text) >= 1 && Number(text) <= FLOWS) {
            this.set({ counts: { ...this.state.counts, [i]: Number(text) } }, control);
          } else control.fail(`must be a whole number from 1 to ${FLOWS}`);
        }));
      this.counts.replaceChildren(...this.counters.map(({ root }) => root));
    }

    /** Changes the state by a control of the user; shows an error next to the control. */
    set(changes, control) {
      this.state = { ...this.state, ...changes };
      this.control?.fail(null);
      this.control = control;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.restart(), 15);
    }

    edits(queue) {
      const { affected, paths } = this.entry;
      const { rate, rtt, duration, counts } = this.state;
      const links = new Map();
      if (rate) for (const [link, text] of affected.rate) links.set(link, { link, rate, queue: text });
      for (const link of affected.queue) links.set(link, { link, ...(rate && links.has(link) ? { rate } : {}), queue });
      return {
        ...(duration ? { duration } : {}),
        links: [...links.values()],
        paths: rtt ? paths.map(([there, back]) => ({ there, back, rtt })) : [],
        groups: Object.entries(counts).map(([group, count]) => ({ group: Number(group), count })),
      };
    }

    restart() {
      const { entry, state } = this;
      let plans, read;
      try {
        read = [state.queue, state.against].map((text) => ({ text, called: entry.names[text], ...this.engine.readQueue(text, this.held.rate) }));
        plans = [state.queue, state.against].map((queue) => this.engine.edit(entry.plan, this.edits(queue)));
      } catch (error) {
        this.failed(error);
        return;
      }
      this.control?.fail(null);
      this.plans = plans;
      this.read = read;
      this.names = names(...read);
      const [link] = entry.bottleneck.links;
      const { params } = plans[0].links[link];
      this.held = { rate: params.rate ?? entry.bottleneck.rate, duration: plans[0].duration };
      this.fill();
      this.changed(this.state);
      this.root.dataset.state = "busy";
      try {
        this.runs.start(plans, state.seed, link, this.held.rate);
      } catch (error) {
        this.failed(error);
      }
    }

    /** Sets the controls to the values of the state. */
    fill() {
      const { entry, plans, read } = this;
      const span = (kind, value, low, high) => ({ kind, value, low: Math.min(low, value), high: Math.max(high, value), log: true });
      const rated = !entry.bottleneck.trace;
      this.rated = `${S.spoken(this.held.rate, "bit/s")}${rated ? "" : " on average"}`;
      this.rate.root.hidden = !rated;
      const usual = entry.bottleneck.rate;
      if (rated) this.rate.update(span("rate", this.held.rate, usual / 20, usual * 5), S.written("rate", this.held.rate));
      const options = [...this.tables.keys()].map((name) => [name, name]);
      this.queue.update(options, read[0].name, this.tables.get(read[0].name).summary);
      this.against.update(options, read[1].name, this.tables.get(read[1].name).summary);
      this.lanes.forEach(({ name }, i) => { name.textContent = this.names[i]; name.title = read[i].text; });
      this.describe();
      if (this.compact) {
        if (this.playground) this.open.href = `${this.playground}#${S.fragment(this.id, this.state, entry)}`;
        return;
      }
      const [path] = entry.paths;
      this.rtt.root.hidden = !path;
      if (path) {
        const rtt = path.reduce((sum, link) => sum + plans[0].links[link].params.delay, 0);
        this.rtt.update(span("time", Math.max(rtt, 1), Math.min(1e6, rtt / 20 || 1e6), Math.max(1e9, rtt)), S.written("time", rtt));
      }
      this.duration.update(span("time", plans[0].duration, 1e9, 60e9), S.written("time", plans[0].duration));
      this.seed.update(String(this.state.seed));
      this.counters.forEach((counter, i) => {
        const { count } = plans[0].groups[i];
        counter.update(span("integer", count, 1, 50), String(count));
      });
      this.wordsTitle.replaceChildren(...S.ticked(`Words of \`${read[0].name}\``));
      this.words.update(read[0], this.tables.get(read[0].name));
      this.texts.forEach((field, i) => field.update(read[i].text));
      for (const [i, { warnings }] of read.entries()) {
        if (warnings.length) [this.queue, this.against][i].help.textContent = warnings.join(" ");
      }
      this.command.textContent = S.commands(entry, this.state, plans[0]);
    }

    failed(error) {
      const of = /^links\[\d+\]\.rate/.test(error.problems?.[0]?.[0] ?? "") ? this.rate : this.control;
      const message = error.problems?.length ? error.problems.map(([, text]) => text).join("; ") : error.message;
      const outside = this.compact ? null : of.root.closest("details:not([open])");
      (outside ? this.queue : of).fail(message);
      this.root.dataset.state = "error";
    }

    progress(runs) {
      if (runs.some((run) => run.seconds > PATIENCE)) {
        this.runs.turn++;
        this.failed(new Error(`the simulation takes longer than ${PATIENCE} s: reduce the rate, the number of flows or the length, or use the commands below`));
      }
    }

    /** Returns the runs whose films can be shown: new runs once they have reached the time of the film. */
    ready() {
      const { runs } = this.runs;
      if (this.t === null && runs.length) {
        const [run] = runs;
        this.t = Math.min(Math.max(run.from, run.plan.warmup), run.until - 1);
      }
      if (runs.length && runs.every((run) => run.complete || run.now >= Math.min(this.t + 2 * this.pace, run.until))) {
        this.shown = runs;
      }
      return this.shown;
    }

    done(runs) {
      this.root.dataset.state = "ready";
      this.root.dataset.hashes = runs.map(({ record }) => record.trace_hash).join(" ");
      const { entry, names: labels } = this;
      const { metric } = entry.by;
      const group = this.subject === null ? null : entry.groups[this.subject];
      const wait = group ? `${group.name}.delay_mean` : "sojourn_mean";
      const told = runs.map((run, i) => ({ name: labels[i], value: run.value(metric), wait: run.value(wait) }));
      const of = !group ? "the flows" : group.name === group.app ? `the ${group.label}` : `the ${group.name}`;
      this.verdict.textContent = S.verdict(entry.by, told, of);
      this.lanes.forEach(({ canvas }, i) => canvas.setAttribute("aria-label", `Packets in the queue ${labels[i]}. ${this.verdict.textContent}`));
      this.marks.hidden = !runs.some((run) => run.value("marks") > 0);
      const { plan } = runs[0];
      const duration = plan.duration / 1e9;
      const until = Math.min(...runs.map((run) => run.until));
      const part = until - runs[0].from < plan.duration ? [runs[0].from / 1e9, until / 1e9] : null;
      this.charts.forEach((chart, n) => {
        const name = `${entry.bottleneck.name}.${SERIES[n][0]}`;
        const lines = runs.map((run, i) => ({ name: labels[i], times: run.series("time"), values: run.series(name) }));
        chart.show({ lines, duration, warmup: plan.warmup / 1e9, part });
      });
      if (!this.compact) this.measured(runs);
    }

    measured(runs) {
      const { entry, names: labels } = this;
      const body = [];
      const section = (prefix, title, view) => {
        const rows = this.metrics[view].map(([name, label, unit, better]) => {
          const values = runs.map((run) => run.value(prefix + name));
          if (!values.some(Number.isFinite)) return null;
          const best = better && values.every(Number.isFinite) && values[0] !== values[1]
            ? (better === "lower") === (values[0] < values[1]) ? 0 : 1 : null;
          return element("tr", {}, element("th", { scope: "row" }, label),
            ...values.map((value, i) => element("td", { className: i === best ? "better" : "" }, S.spoken(value, unit, name))));
        }).filter(Boolean);
        if (rows.length) body.push(element("tr", {}, element("th", { className: "place", colSpan: 3, scope: "rowgroup" }, title)), ...rows);
      };
      section("", `Link ${entry.bottleneck.name}`, "live.link");
      entry.groups.forEach((group) => section(`${group.name}.`, called(group), "live.flow"));
      if (entry.store) section(`${entry.store}.`, "store", "live.store");
      const head = element("tr", {}, element("th", {}, "Measured"), ...labels.map((label, i) => element("th", { className: `run${i}`, scope: "col" }, label)));
      this.table.replaceChildren(element("thead", {}, head), element("tbody", {}, ...body));
      this.cost.textContent = `${runs.map((run, i) => `${labels[i]}: ${run.record.events} events in ${(1000 * run.seconds).toFixed(0)} ms`).join("; ")}. Bold is better.`;
    }

    // Time of the film

    play(on) {
      this.playing = on;
      this.button.textContent = on ? "❚❚" : "▶";
      this.button.setAttribute("aria-label", on ? "Pause" : "Play");
      this.button.title = on ? "Pause" : "Play";
    }

    seek(seconds) {
      const { runs } = this.runs;
      if (!runs.length) return;
      const until = Math.min(...runs.map((run) => run.until));
      this.t = Math.min(Math.max(seconds * 1e9, runs[0].from), until - 1);
      this.frame(0);
    }

    /** Draws frames while the figure is visible. */
    watch() {
      let last = null;
      let handle = null;
      const step = (now) => {
        const passed = last === null ? 0 : Math.min(0.1, (now - last) / 1000);
        last = now;
        this.frame(this.playing ? passed : 0);
        handle = requestAnimationFrame(step);
      };
      new IntersectionObserver(([{ isIntersecting }]) => {
        cancelAnimationFrame(handle);
        last = null;
        if (isIntersecting) handle = requestAnimationFrame(step);
      }).observe(this.stage);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
      new MutationObserver(() => this.restyle()).observe(document.body, { attributes: true, attributeFilter: ["data-theme"] });
    }

    frame(passed) {
      const shown = this.ready();
      if (!shown) return;
      const known = Math.min(...shown.map((run) => Math.min(run.until, run.film.until)));
      this.t = Math.min(this.t + passed * this.pace, known);
      const pause = Math.min(...shown.map(({ film }) => S.idle(film, this.t, this.pace)));
      if (this.playing && pause > 0) this.t = Math.min(this.t + pause, known);
      const [{ from, plan }] = shown;
      const until = Math.min(...shown.map((run) => run.until));
      if (this.t >= until - 1) this.t = Math.max(from, Math.min(plan.warmup, until - 1));
      const most = Math.max(...shown.map((run) => run.film.most));
      this.lanes.forEach(({ lane, now }, i) => {
        const { film } = shown[i];
        lane.draw(film, this.t, { pace: this.pace, most, looks: this.looks, subject: this.subject, rate: this.rated });
        this.tell(now, film);
      });
      const slow = Number((1e9 / this.pace).toPrecision(2));
      this.clock.textContent = `${(this.t / 1e9).toFixed(this.held.duration < 3e9 ? 4 : 2)} s${slow > 1 ? `, slowed down ${slow} times` : ""}`;
      this.charts[0].move(this.t / 1e9);
      this.root.dataset.moving = String(this.playing);
    }

    /** Sets the text above a lane: packets in the queue and the last waiting time. */
    tell(now, film) {
      const waiting = film.queued(this.t).length;
      const last = film.last(this.t, this.subject);
      const group = this.subject === null ? null : this.entry.groups[this.subject];
      const wait = last === null ? null : (film.left[last] - film.offered[last]) / 1e9;
      const who = group ? called(group) : "the last";
      now.textContent = `${waiting} ${waiting === 1 ? "packet" : "packets"} in the queue${wait === null ? "" : ` · ${who} waited ${S.spoken(wait, "s")}`}`;
    }

    /** Shows a description of the packet under the pointer. */
    over(lane, i, event) {
      const film = this.shown?.[i].film;
      if (!film) return;
      const box = lane.canvas.getBoundingClientRect();
      const index = lane.near(event.clientX - box.left, event.clientY - box.top);
      this.tip.hidden = index === null;
      if (index === null) return;
      const group = this.entry.groups[film.group[index]];
      const spent = (film.left[index] - film.offered[index]) / 1e9;
      const dropped = film.refused.has(index) || film.drops.includes(index);
      const fate = dropped ? `dropped after ${S.spoken(spent, "s")}` : Number.isFinite(spent) ? `waits ${S.spoken(spent, "s")}` : "still waits";
      const marked = film.marked[index] ? ", marked (ECN)" : "";
      this.tip.textContent = `${group ? called(group) : "packet"}, ${film.length[index]} bytes: ${fate}${marked}`;
      const stage = this.stage.getBoundingClientRect();
      this.tip.style.left = `${Math.min(event.clientX - stage.left + 12, stage.width - 190)}px`;
      this.tip.style.top = `${event.clientY - stage.top + 14}px`;
    }
  }

  /** Returns a state as the part of an address after `#`; values equal to the catalogue's are omitted. */
  function fragment(id, state, entry) {
    const query = new URLSearchParams({ scenario: id });
    for (const key of ["queue", "against"]) if (state[key] !== entry[key]) query.set(key, state[key]);
    for (const key of ["rate", "rtt", "duration"]) if (state[key]) query.set(key, state[key]);
    if (state.seed !== 1) query.set("seed", state.seed);
    for (const [group, count] of Object.entries(state.counts)) query.set(`count.${group}`, count);
    return query.toString();
  }

  /** Returns the scenario's name and the state in the part of an address after `#`. */
  function parse(text) {
    const query = new URLSearchParams(text.replace(/^#/, ""));
    const state = { counts: {} };
    for (const [key, value] of query) {
      if (["queue", "against", "rate", "rtt", "duration"].includes(key)) state[key] = value.slice(0, 4096);
      else if (key === "seed" && /^[0-9]{1,15}$/.test(value)) state.seed = Number(value);
      else if (/^count\.[0-7]$/.test(key) && /^[0-9]{1,4}$/.test(value) && value !== "0") state.counts[key.slice(6)] = Math.min(FLOWS, Number(value));
    }
    return [query.get("scenario"), state];
  }

  /** Returns a text quoted for a shell. */
  function quoted(text) {
    return /^[\w./:=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
  }

  /** Returns the commands that compare with many seeds the queues that the page compares with one. */
  function commands(entry, state, plan) {
    const { keys } = entry;
    const settings = entry.settings.map(quoted);
    const put = (key, value) => settings.push(quoted(`${key}=${value}`));
    if (state.rate) keys.rate.forEach((key) => put(key, state.rate));
    if (state.rtt) {
      keys.rtt.forEach((key, i) => {
        const [link, text] = entry.netem[i];
        put(key, text.replace("{}", S.written("time", plan.links[link].params.delay)));
      });
    }
    if (state.duration) {
      put(keys.duration[0], state.duration);
      if (plan.warmup) put("warmup", `${plan.warmup / 1e6}ms`);
    }
    for (const [group, count] of Object.entries(state.counts)) keys.counts[group].forEach((key) => put(key, count));
    const set = settings.map((text) => ` --set ${text}`).join("");
    const [queue, against] = [state.queue, state.against].map((text) => entry.names[text] ?? text);
    const lines = entry.template ? [`sojourn new --template ${entry.template}`] : [];
    lines.push(`sojourn compare ${quoted(entry.file)} --queues ${quoted(queue)} ${quoted(against)}${set}`);
    lines.push(`sojourn tc ${quoted(entry.file)}${set}${keys.queue.map((key) => ` --set ${quoted(`${key}=${queue}`)}`).join("")}`);
    return lines.join("\n");
  }

  Object.assign(S, { Figure, fragment, parse, commands });

  /** Creates the figures of a page, each when it is scrolled near to the visible part. */
  function begin() {
    const catalogue = globalThis.SOJOURN_CATALOGUE;
    for (const place of document.querySelectorAll(".sojourn-live")) {
      const { scenario, queue, against } = place.dataset;
      const entry = catalogue?.scenarios[scenario];
      if (!entry || !globalThis.SOJOURN_MODULE) continue;
      const near = new IntersectionObserver(async ([{ isIntersecting }]) => {
        if (!isIntersecting) return;
        near.disconnect();
        const state = { ...(queue ? { queue } : {}), ...(against ? { against } : {}) };
        const figure = document.createElement("div");
        const made = await Figure.make(figure, entry, state, { playground: PLAYGROUND, id: scenario });
        place.replaceChildren(figure);
        made.restyle();
      }, { rootMargin: "300px" });
      near.observe(place);
    }
  }

  if (typeof document !== "undefined") {
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
    else begin();
  }
})((globalThis.Sojourn ??= {}));
