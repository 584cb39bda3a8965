// A panel: lines over time, drawn as SVG.

import { digits, readable } from "./units.js";

const NS = "http://www.w3.org/2000/svg";
const MARGIN = { left: 46, right: 14, top: 8, bottom: 22 };

/** An SVG element with attributes. */
export function svg(name, attributes = {}, text = undefined) {
  const element = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function steps(most, wanted) {
  const raw = most / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((s) => s * power).find((s) => s >= raw * 0.999);
  const ticks = [];
  for (let i = 0; i * step <= most * 1.0001; i++) ticks.push(i * step);
  return ticks;
}

function decades(low, high) {
  const ticks = [];
  for (let p = Math.ceil(Math.log10(low) - 1e-9); 10 ** p <= high * 1.0001; p++) ticks.push(10 ** p);
  return ticks;
}

export class Chart {
  /** `lines` are [name of a series, class]; `others` are the panels that share the cursor. */
  constructor(parent, { title, unit, lines, steps: stepped = false, log = false }, others) {
    this.options = { title, unit, lines, stepped };
    this.logarithmic = false;
    this.others = others;
    this.root = document.createElement("figure");
    const head = document.createElement("figcaption");
    this.title = document.createElement("h2");
    this.reading = document.createElement("p");
    this.reading.className = "reading";
    head.append(this.title, this.reading);
    if (log) head.append(this.switch());
    this.svg = svg("svg", { role: "img" });
    this.root.append(head, this.svg);
    parent.append(this.root);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerdown", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => others.forEach((chart) => chart.cursor(null)));
    new ResizeObserver(() => this.draw()).observe(this.root);
  }

  switch() {
    const label = document.createElement("label");
    label.className = "log";
    const box = document.createElement("input");
    box.type = "checkbox";
    box.addEventListener("change", () => { this.logarithmic = box.checked; this.draw(); });
    label.append(box, "log");
    return label;
  }

  show(data) {
    this.data = data;
    this.draw();
  }

  draw() {
    const width = this.root.clientWidth;
    const height = this.svg.getBoundingClientRect().height || 190;
    if (!this.data || width < 80) return;
    const { runs, duration, warmup } = this.data;
    const { title, unit, lines, stepped } = this.options;
    const all = runs.flatMap((run) => lines.flatMap(([name]) => run.series[name]));
    const values = all.filter((v) => v !== null);
    const most = Math.max(...values, 0) || 1;
    const least = Math.min(...values.filter((v) => v > 0), most);
    const [factor, name] = readable(unit, most);
    this.factor = factor;
    this.title.textContent = name ? `${title}, ${name}` : title;
    const log = this.logarithmic;
    const low = Math.max(least, most / 1e5);
    const bottom = 10 ** Math.floor(Math.log10(low));
    const ticks = log
      ? decades(bottom / factor, most / factor).map((t) => t * factor)
      : steps(most / factor, 4).map((t) => t * factor);
    const top = log ? most * 1.3 : most * 1.06;
    const plot = { w: width - MARGIN.left - MARGIN.right, h: height - MARGIN.top - MARGIN.bottom };
    this.x = (t) => MARGIN.left + (plot.w * t) / duration;
    const share = (v) => (log ? Math.log(Math.max(v, bottom) / bottom) / Math.log(top / bottom) : v / top);
    this.y = (v) => MARGIN.top + plot.h * (1 - share(v));

    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren();
    if (warmup > 0) {
      const w = this.x(warmup) - this.x(0);
      const area = svg("rect", { x: this.x(0), y: MARGIN.top, width: w, height: plot.h, class: "warmup" });
      area.append(svg("title", {}, "warm-up: not measured"));
      this.svg.append(area);
    }
    for (const tick of ticks) {
      const y = this.y(tick);
      this.svg.append(
        svg("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: y, y2: y, class: "grid" }),
        svg("text", { x: MARGIN.left - 6, y: y + 4, class: "scale end" }, digits(tick / factor)),
      );
    }
    const seconds = steps(duration, plot.w > 300 ? 5 : 3);
    for (const tick of seconds) {
      const last = tick === seconds.at(-1);
      const text = last ? `${digits(tick)} s` : digits(tick);
      const side = last ? "end" : "middle";
      const x = this.x(tick) + (last ? 10 : 0);
      this.svg.append(svg("text", { x, y: height - 5, class: `scale ${side}` }, text));
    }
    // The queue that is played with lies above the pinned one.
    const order = runs.map((run, i) => [run, i]).reverse();
    for (const [run, i] of order) {
      for (const [series, extra] of lines) {
        if (extra && !run.series[series].some((v) => v > 0)) continue;
        const d = this.path(run.series.time, run.series[series], stepped);
        this.svg.append(svg("path", { d, class: `curve run${i} ${extra}` }));
      }
    }
    this.rule = svg("line", { y1: MARGIN.top, y2: MARGIN.top + plot.h, class: "cursor", visibility: "hidden" });
    this.svg.append(this.rule);
    this.svg.setAttribute("aria-label", this.said(runs, lines[0][0], factor, name));
    this.cursor(null);
  }

  path(times, values, stepped) {
    let d = "";
    let pen = false;
    for (let i = 0; i < times.length; i++) {
      if (values[i] === null) { pen = false; continue; }
      const x = this.x(times[i]).toFixed(1);
      const y = this.y(values[i]).toFixed(1);
      if (stepped && pen) d += `V${y}H${x}`;
      else d += `${pen ? "L" : "M"}${x} ${y}`;
      pen = true;
    }
    return d;
  }

  said(runs, series, factor, unit) {
    const parts = runs.map((run) => {
      const there = run.series[series].filter((v) => v !== null);
      const mean = there.reduce((sum, v) => sum + v, 0) / Math.max(1, there.length);
      return `${run.label}: ${digits(mean / factor)} ${unit} in the mean`;
    });
    return `${this.options.title} over time. ${parts.join("; ")}.`;
  }

  point(event) {
    if (!this.data) return;
    const box = this.svg.getBoundingClientRect();
    const share = (event.clientX - box.left - MARGIN.left) / (box.width - MARGIN.left - MARGIN.right);
    const t = Math.min(1, Math.max(0, share)) * this.data.duration;
    this.others.forEach((chart) => chart.cursor(t));
  }

  cursor(t) {
    if (!this.data || !this.rule) return;
    this.reading.replaceChildren();
    if (t === null) {
      this.rule.setAttribute("visibility", "hidden");
      return;
    }
    const { runs, duration } = this.data;
    const times = runs[0].series.time;
    const i = Math.min(times.length - 1, Math.round((t / duration) * (times.length - 1)));
    this.rule.setAttribute("x1", this.x(times[i]));
    this.rule.setAttribute("x2", this.x(times[i]));
    this.rule.setAttribute("visibility", "visible");
    runs.forEach((run, n) => {
      const value = run.series[this.options.lines[0][0]][i];
      const span = document.createElement("span");
      span.className = `run${n}`;
      span.textContent = value === null ? "–" : digits(value / this.factor);
      this.reading.append(span);
    });
    const at = document.createElement("span");
    at.textContent = `at ${digits(times[i])} s`;
    this.reading.append(at);
  }
}
