// Controls. A control in use is not changed by the page; an error is shown next to the control that caused it.

import { TICKS, position, valueAt, written } from "./units.mjs";

/** @import { Dimension, Engine, QueueTable, ReadQueue, Setting, Word } from "./types.js" */
/** @import { Span } from "./units.mjs" */

/**
 * Called with the new value at every change by the user.
 * @template Value
 * @typedef {(value: Value, control: Control) => void} Tell
 */

/** Smallest and largest value of a slider for parameters of a queue, in base units. */
/** @type {{ [dimension in Dimension]: [low: number, high: number] }} */
const SPANS = {
  time: [10e3, 1e9],
  packets: [1, 20_000],
  size: [1514, 64 * 1024 ** 2],
  rate: [100e3, 10e9],
  probability: [1e-5, 1],
};
let ids = 0;

/**
 * Returns an element with these properties and attributes (names with a hyphen, and `role`).
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Partial<HTMLElementTagNameMap[Name]> & { [attribute: `${string}-${string}`]: string }} attributes
 * @param {(Node | string)[]} children
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.includes("-") || key === "role") made.setAttribute(key, String(value));
    else Object.assign(made, { [key]: value });
  }
  made.append(...children);
  return made;
}

/**
 * Returns the nodes of a text in which code is in backquotes.
 * @param {string} text
 */
export function ticked(text) {
  return text.split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part));
}

/** Base of all controls: it can show an error. */
export class Control {
  /** @param {string} className */
  constructor(className) {
    this.error = element("p", { className: "error", role: "alert", hidden: true });
    this.root = element("div", { className: `control ${className}` });
  }

  /** @param {string | null} message The error; null removes it. */
  fail(message) {
    this.error.replaceChildren(...ticked(message ?? ""));
    this.error.hidden = !message;
    this.root.classList.toggle("wrong", Boolean(message));
    if (message) this.error.scrollIntoView({ block: "nearest" });
  }
}

/** A slider with a text field. */
export class Slider extends Control {
  /**
   * @param {string} label
   * @param {string} help
   * @param {Tell<string>} tell
   */
  constructor(label, help, tell) {
    super("slider");
    const id = `sojourn-${++ids}`;
    /** @type {Span | null} */
    this.span = null;
    this.range = element("input", { type: "range", min: "0", max: String(TICKS), step: "1", "aria-label": label });
    this.text = element("input", { type: "text", id, spellcheck: false });
    const small = help ? element("small", {}, help) : "";
    this.root.append(element("label", { htmlFor: id }, label, " ", small), this.text, this.range, this.error);
    this.range.addEventListener("input", () => {
      if (!this.span) return;
      this.text.value = written(this.span.kind, valueAt(this.span, Number(this.range.value)));
      tell(this.text.value, this);
    });
    this.text.addEventListener("change", () => tell(this.text.value.trim(), this));
  }

  /**
   * @param {Span | null} span Null hides the slider.
   * @param {string} text
   * @param {string} placeholder
   */
  update(span, text, placeholder = "") {
    this.span = span;
    this.range.hidden = !span;
    const focused = document.activeElement;
    if (span && focused !== this.range) this.range.value = String(position(span, span.value));
    if (focused !== this.text) this.text.value = text;
    this.text.placeholder = placeholder;
    this.range.setAttribute("aria-valuetext", text || placeholder);
  }
}

/** A choice among several options. */
export class Choice extends Control {
  /**
   * @param {string} label
   * @param {Tell<string>} tell
   */
  constructor(label, tell) {
    super("choice");
    const id = `sojourn-${++ids}`;
    this.options = "";
    this.select = element("select", { id });
    this.label = element("label", { htmlFor: id }, label);
    this.help = element("small", { className: "help" });
    this.root.append(this.label, this.select, this.help, this.error);
    this.select.addEventListener("change", () => tell(this.select.value, this));
  }

  /**
   * @param {[value: string, label: string][]} options
   * @param {string} value
   * @param {string} help
   */
  update(options, value, help = "") {
    const key = options.map(([, text]) => text).join("\n");
    if (key !== this.options) {
      this.options = key;
      this.select.replaceChildren(...options.map(([name, text]) => element("option", { value: name }, text)));
    }
    this.select.value = value;
    this.help.textContent = help;
  }
}

/** A text field of one line. */
export class Field extends Control {
  /**
   * @param {string} label Code is in backquotes.
   * @param {Tell<string>} tell
   */
  constructor(label, tell) {
    super("field");
    const id = `sojourn-${++ids}`;
    this.input = element("input", { type: "text", id, spellcheck: false });
    this.root.append(element("label", { htmlFor: id }, ...ticked(label)), this.input, this.error);
    this.input.addEventListener("change", () => tell(this.input.value.trim(), this));
  }

  /** @param {string} text */
  update(text) {
    if (document.activeElement !== this.input) this.input.value = text;
  }
}

/** A checkbox. */
class Tick extends Control {
  /**
   * @param {string} label
   * @param {Tell<boolean>} tell
   */
  constructor(label, tell) {
    super("tick");
    const id = `sojourn-${++ids}`;
    this.box = element("input", { type: "checkbox", id });
    this.root.append(element("label", { htmlFor: id }, this.box, " ", label), this.error);
    this.box.addEventListener("change", () => tell(this.box.checked, this));
  }

  /** @param {boolean} on */
  update(on) {
    this.box.checked = on;
  }
}

/** The parameters of a queue, each with a control of the kind that its declaration states. */
export class Words {
  /**
   * @param {Engine} engine
   * @param {(word: string, value: Setting | null, control: Control) => void} tell Called at changes; the value null means the default.
   */
  constructor(engine, tell) {
    this.engine = engine;
    this.tell = tell;
    this.root = element("div", { className: "words" });
    this.name = "";
    /** @type {Map<string, Tick | Choice | Slider>} */
    this.controls = new Map();
  }

  /**
   * Shows the parameters of a queue.
   * @param {ReadQueue} read
   * @param {QueueTable} table Declarations of the parameters.
   */
  update(read, table) {
    if (read.name !== this.name) {
      this.name = read.name;
      this.controls = new Map(table.words.map((word) => [word.name, this.make(word)]));
      this.root.replaceChildren(...[...this.controls.values()].map((control) => control.root));
    }
    const given = new Map(read.words);
    for (const word of table.words) this.fill(word, given.get(word.name));
  }

  /** @param {Word} word */
  make(word) {
    const tell = (/** @type {Setting} */ value, /** @type {Control} */ control) =>
      this.tell(word.name, value === "" ? null : value, control);
    const made = ["flag", "switch"].includes(word.kind)
      ? new Tick(word.name, tell)
      : word.of
        ? new Choice(word.name, tell)
        : new Slider(word.name, "", tell);
    made.root.title = word.doc;
    return made;
  }

  /**
   * @param {Word} word
   * @param {Setting | undefined} given
   */
  fill(word, given) {
    const control = this.controls.get(word.name);
    const text = String(given ?? "");
    if (control instanceof Tick) {
      control.update(Boolean(given ?? (word.kind === "switch" && word.default === word.name)));
    } else if (control instanceof Choice) {
      const names = (word.of ?? []).map((meaning) => (typeof meaning === "string" ? meaning : meaning.name));
      /** @type {[string, string][]} */
      const options = names.map((name) => [name, name]);
      control.update([["", word.default ? `${word.default} (default)` : "default"], ...options], text);
    } else {
      control?.update(this.span(word, text || word.default), text, word.default);
    }
  }

  /**
   * Returns the range and the value of a slider; null if the value is no plain number.
   * @param {Word} word
   * @param {string} text
   * @returns {Span | null}
   */
  span(word, text) {
    const value = this.value(word.kind, text);
    if (value === null) return null;
    let [low, high] = isDimension(word.kind) ? SPANS[word.kind] : [Number(word.min), Number(word.max)];
    if (word.kind === "integer") high = Math.min(high, Math.max(100, 16 * value));
    if (!Number.isFinite(low) || !Number.isFinite(high) || low >= high) return null;
    if (value > 0) [low, high] = [Math.min(low, value), Math.max(high, value)];
    return { kind: word.kind, low, high, value, log: low > 0 && high > 50 * low };
  }

  /**
   * @param {Word["kind"]} kind
   * @param {string} text
   */
  value(kind, text) {
    if (isDimension(kind)) {
      try {
        return this.engine.readQuantity(kind, text);
      } catch {
        return null;
      }
    }
    const value = ["integer", "signed", "real"].includes(kind) && text !== "" ? Number(text) : NaN;
    return Number.isFinite(value) ? value : null;
  }
}

/**
 * @param {string} kind
 * @returns {kind is Dimension}
 */
function isDimension(kind) {
  return kind in SPANS;
}
