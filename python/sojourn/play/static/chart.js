// A chart of two lines over time, with the position of the film, which can be moved.

(function (S) {
  "use strict";

  const NS = "http://www.w3.org/2000/svg";
  const MARGIN = { left: 52, right: 12, top: 16, bottom: 34 };
  /** Step of the position for each key, as a share of the length. */
  const STEP = 0.01;

  function svg(name, attributes = {}, text = undefined) {
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

  class Chart {
    /** `unit` is the unit of the values; `seek(seconds)` is called when the user moves the position; null forbids it. */
    constructor(title, unit, seek = null) {
      Object.assign(this, { title, unit, seek });
      this.data = null;
      this.at = 0;
      this.root = document.createElement("figure");
      this.root.className = "chart";
      this.caption = document.createElement("figcaption");
      this.svg = svg("svg", seek ? { role: "slider", tabindex: "0", "aria-label": "Position in the run" } : { role: "img" });
      this.root.append(this.caption, this.svg);
      if (seek) {
        const move = (event) => {
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

    /** Shows `lines`: { name, times, values }. Times, `duration`, warm-up and the part of the film are in s. */
    show(data) {
      this.data = data;
      this.draw();
    }

    draw() {
      const width = this.root.clientWidth;
      const height = this.svg.clientHeight || 170;
      if (!this.data || width < 80) return;
      const { lines, duration, warmup, part } = this.data;
      const values = lines.flatMap((line) => line.values).filter((v) => v !== null);
      const most = Math.max(...values, 0) || 1;
      const [factor, unit] = S.readable(this.unit, most);
      const ticks = steps(most / factor, 3).map((tick) => tick * factor);
      const top = Math.max(most, ticks.at(-1)) * 1.04;
      const plot = { w: width - MARGIN.left - MARGIN.right, h: height - MARGIN.top - MARGIN.bottom };
      this.x = (t) => MARGIN.left + (plot.w * t) / duration;
      this.y = (v) => MARGIN.top + plot.h * (1 - v / top);
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
      const area = (from, until, name, text) => {
        const rect = svg("rect", { x: this.x(from), y: MARGIN.top, width: Math.max(0, this.x(until) - this.x(from)), height: plot.h, class: name });
        rect.append(svg("title", {}, text));
        this.svg.append(rect);
      };
      if (warmup > 0) {
        area(0, warmup, "warmup", "Warm-up: not measured");
        if (this.x(warmup) - this.x(0) > 60) {
          this.svg.append(svg("text", { x: this.x(0) + 5, y: MARGIN.top + 12, class: "scale" }, "warm-up"));
        }
      }
      if (part) area(...part, "part", "Part of the run that the film shows");
      for (const tick of ticks) {
        const y = this.y(tick);
        this.svg.append(
          svg("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: y, y2: y, class: "grid" }),
          svg("text", { x: MARGIN.left - 7, y: y + 4, class: "scale end" }, S.digits(tick / factor)),
        );
      }
      const [second, time] = duration < 0.5 ? [1e-3, "ms"] : [1, "s"];
      for (const tick of steps(duration / second, plot.w > 300 ? 5 : 3)) {
        this.svg.append(svg("text", { x: this.x(tick * second), y: MARGIN.top + plot.h + 15, class: "scale middle" }, S.digits(tick)));
      }
      this.svg.append(svg("text", { x: MARGIN.left + plot.w / 2, y: height - 4, class: "scale middle" }, `time, ${time}`));
      lines.map((line, i) => [line, i]).reverse().forEach(([line, i]) => {
        this.svg.append(svg("path", { d: this.path(line), class: `curve run${i}` }));
      });
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

    path({ times, values }) {
      let d = "";
      let pen = false;
      for (let i = 0; i < times.length; i++) {
        if (values[i] === null) { pen = false; continue; }
        d += `${pen ? "L" : "M"}${this.x(times[i]).toFixed(1)} ${this.y(values[i]).toFixed(1)}`;
        pen = true;
      }
      return d;
    }

    /** Moves the position to a time in s. */
    move(t) {
      this.at = t;
      if (!this.rule) return;
      this.rule.setAttribute("transform", `translate(${this.x(t).toFixed(1)} 0)`);
      const { duration } = this.data;
      for (const [name, value] of [["min", 0], ["max", duration], ["now", t]]) {
        this.svg.setAttribute(`aria-value${name}`, S.digits(value));
      }
      this.svg.setAttribute("aria-valuetext", `${S.digits(t)} s of ${S.digits(duration)} s`);
    }

    point(event) {
      if (!this.data) return;
      const box = this.svg.getBoundingClientRect();
      const share = (event.clientX - box.left - MARGIN.left) / (box.width - MARGIN.left - MARGIN.right);
      this.seek(Math.min(1, Math.max(0, share)) * this.data.duration);
    }

    key(event) {
      if (!this.data) return;
      const { duration } = this.data;
      const to = {
        ArrowLeft: this.at - STEP * duration,
        ArrowRight: this.at + STEP * duration,
        PageDown: this.at - 10 * STEP * duration,
        PageUp: this.at + 10 * STEP * duration,
        Home: 0,
        End: duration,
      }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      this.seek(Math.min(duration, Math.max(0, to)));
    }
  }

  S.Chart = Chart;
})((globalThis.Sojourn ??= {}));
