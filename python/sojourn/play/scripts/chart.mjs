// A chart of two lines over time, with the position of the film, which can be moved.

import { digits, readable } from "./units.mjs";

/**
 * A curve: values at times in s; NaN interrupts it.
 * @typedef {{ name: string, times: number[], values: number[] }} Line
 * The lines, and length, warm-up and the film's part of the run, in s.
 * @typedef {{ lines: Line[], duration: number, warmup: number, part: [from: number, until: number] | null }} Data
 */

const NS = "http://www.w3.org/2000/svg";
const MARGIN = { left: 52, right: 12, top: 16, bottom: 34 };
/** Step of the position for each key, as a share of the length. */
const STEP = 0.01;

/**
 * @template {keyof SVGElementTagNameMap} Name
 * @param {Name} name
 * @param {{ [name: string]: string | number }} attributes
 * @param {string} text
 */
function svg(name, attributes = {}, text = "") {
  const element = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(text);
  return element;
}

/**
 * Returns about `wanted` round numbers from 0 to `most`.
 * @param {number} most
 * @param {number} wanted
 */
function steps(most, wanted) {
  const raw = most / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((s) => s * power).find((s) => s >= raw * 0.999) ?? 10 * power;
  const ticks = [];
  for (let i = 0; i * step <= most * 1.0001; i++) ticks.push(i * step);
  return ticks;
}

export class Chart {
  /**
   * @param {string} title
   * @param {string} unit Unit of the values.
   * @param {((seconds: number) => void) | null} seek Called when the user moves the position; null forbids it.
   */
  constructor(title, unit, seek = null) {
    this.title = title;
    this.unit = unit;
    this.seek = seek;
    /** @type {Data | null} */
    this.data = null;
    /** @type {SVGGElement | null} */
    this.rule = null;
    this.at = 0;
    this.root = document.createElement("figure");
    this.root.className = "chart";
    this.caption = document.createElement("figcaption");
    this.svg = svg("svg", seek ? { role: "slider", tabindex: "0", "aria-label": "Position in the run" } : { role: "img" });
    this.root.append(this.caption, this.svg);
    if (seek) {
      const move = (/** @type {PointerEvent} */ event) => {
        if (event.type === "pointermove" && !event.buttons) return;
        this.svg.setPointerCapture?.(event.pointerId);
        this.point(event);
      };
      this.svg.addEventListener("pointerdown", move);
      this.svg.addEventListener("pointermove", move);
      this.svg.addEventListener("keydown", (event) => this.key(event));
    }
    new ResizeObserver(() => this.draw()).observe(this.root);
  }

  /** @param {Data} data */
  show(data) {
    this.data = data;
    this.draw();
  }

  /** Removes the lines. */
  clear() {
    this.data = null;
    this.rule = null;
    this.caption.replaceChildren(Object.assign(document.createElement("h3"), { textContent: this.title }));
    this.svg.replaceChildren();
  }

  draw() {
    const width = this.root.clientWidth;
    const height = this.svg.clientHeight || 170;
    if (!this.data || width < 80) return;
    const { lines, duration, warmup, part } = this.data;
    const values = lines.flatMap((line) => line.values).filter(Number.isFinite);
    const most = Math.max(...values, 0) || 1;
    const [factor, unit] = readable(this.unit, most);
    const ticks = steps(most / factor, 3).map((tick) => tick * factor);
    const top = Math.max(most, ...ticks) * 1.04;
    const plot = { w: width - MARGIN.left - MARGIN.right, h: height - MARGIN.top - MARGIN.bottom };
    const x = (/** @type {number} */ t) => MARGIN.left + (plot.w * t) / duration;
    const y = (/** @type {number} */ v) => MARGIN.top + plot.h * (1 - v / top);
    this.caption.replaceChildren(
      Object.assign(document.createElement("h3"), { textContent: unit ? `${this.title}, ${unit}` : this.title }),
      ...lines.map((line, i) => {
        const key = document.createElement("span");
        key.className = `key run${i}`;
        key.textContent = line.name;
        return key;
      }),
    );
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren();
    /** @type {(from: number, until: number, name: string, text: string) => void} */
    const area = (from, until, name, text) => {
      const rect = svg("rect", { x: x(from), y: MARGIN.top, width: Math.max(0, x(until) - x(from)), height: plot.h, class: name });
      rect.append(svg("title", {}, text));
      this.svg.append(rect);
    };
    if (warmup > 0) {
      area(0, warmup, "warmup", "Warm-up: not measured");
      if (x(warmup) - x(0) > 60) {
        this.svg.append(svg("text", { x: x(0) + 5, y: MARGIN.top - 4, class: "scale" }, "warm-up"));
      }
    }
    if (part) {
      area(part[0], part[1], "part", "Part of the run that the film shows");
      const wide = x(part[1]) - x(part[0]) > 60;
      this.svg.append(svg("text", { x: wide ? x(part[0]) + 9 : x(part[1]) + 9, y: MARGIN.top - 4, class: "scale film" }, "film"));
    }
    for (const tick of ticks) {
      const level = y(tick);
      this.svg.append(
        svg("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: level, y2: level, class: "grid" }),
        svg("text", { x: MARGIN.left - 7, y: level + 4, class: "scale end" }, digits(tick / factor)),
      );
    }
    const [second, time] = readable("s", duration < 0.5 ? 1e-3 : 1);
    for (const tick of steps(duration / second, plot.w > 300 ? 5 : 3)) {
      this.svg.append(svg("text", { x: x(tick * second), y: MARGIN.top + plot.h + 15, class: "scale middle" }, digits(tick)));
    }
    this.svg.append(svg("text", { x: MARGIN.left + plot.w / 2, y: height - 4, class: "scale middle" }, `time, ${time}`));
    // The first line is above the others.
    this.svg.append(...lines.map((line, i) => svg("path", { d: path(line, x, y), class: `curve run${i}` })).reverse());
    if (this.seek) {
      this.rule = svg("g", { class: "position" });
      this.rule.append(
        svg("line", { y1: MARGIN.top - 4, y2: MARGIN.top + plot.h }),
        svg("circle", { cy: MARGIN.top - 6, r: 6 }),
      );
      this.svg.append(this.rule);
      this.move(this.at);
    } else {
      this.svg.setAttribute("aria-label", this.title);
    }
  }

  /**
   * Moves the position to a time in s.
   * @param {number} t
   */
  move(t) {
    this.at = t;
    if (!this.rule || !this.data) return;
    const { duration } = this.data;
    const width = this.root.clientWidth - MARGIN.left - MARGIN.right;
    this.rule.setAttribute("transform", `translate(${(MARGIN.left + (width * t) / duration).toFixed(1)} 0)`);
    for (const [name, value] of Object.entries({ min: 0, max: duration, now: t })) {
      this.svg.setAttribute(`aria-value${name}`, digits(value));
    }
    this.svg.setAttribute("aria-valuetext", `${digits(t)} s of ${digits(duration)} s`);
  }

  /** @param {PointerEvent} event */
  point(event) {
    if (!this.data) return;
    const box = this.svg.getBoundingClientRect();
    const share = (event.clientX - box.left - MARGIN.left) / (box.width - MARGIN.left - MARGIN.right);
    this.seek?.(Math.min(1, Math.max(0, share)) * this.data.duration);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (!this.data) return;
    const { duration } = this.data;
    /** @type {{ [key: string]: number }} */
    const positions = {
      ArrowLeft: this.at - STEP * duration,
      ArrowRight: this.at + STEP * duration,
      PageDown: this.at - 10 * STEP * duration,
      PageUp: this.at + 10 * STEP * duration,
      Home: 0,
      End: duration,
    };
    const to = positions[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.seek?.(Math.min(duration, Math.max(0, to)));
  }
}

/**
 * Returns the path of a line.
 * @param {Line} line
 * @param {(time: number) => number} x
 * @param {(value: number) => number} y
 */
function path({ times, values }, x, y) {
  let d = "";
  let pen = false;
  for (let i = 0; i < times.length; i++) {
    if (Number.isFinite(values[i])) d += `${pen ? "L" : "M"}${x(times[i]).toFixed(1)} ${y(values[i]).toFixed(1)}`;
    pen = Number.isFinite(values[i]);
  }
  return d;
}
