// Controls. A control in use is not changed by the page; an error is shown next to the control that caused it.

(function (S) {
  "use strict";

  /** Smallest and largest value of a slider for parameters of a queue, in base units. */
  const SPANS = {
    time: [10e3, 1e9],
    packets: [1, 20_000],
    size: [1514, 64 * 1024 ** 2],
    rate: [100e3, 10e9],
    probability: [1e-5, 1],
  };
  let ids = 0;

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.includes("-") || key === "role") made.setAttribute(key, value);
      else made[key] = value;
    }
    made.append(...children);
    return made;
  }

  /** Returns the nodes of a text in which code is in backquotes. */
  function ticked(text) {
    return text.split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part));
  }

  /** Base of all controls: it can show an error. */
  class Control {
    constructor(className) {
      this.error = element("p", { className: "error", role: "alert", hidden: true });
      this.root = element("div", { className: `control ${className}` });
    }

    fail(message) {
      this.error.replaceChildren(...ticked(message ?? ""));
      this.error.hidden = !message;
      this.root.classList.toggle("wrong", Boolean(message));
    }
  }

  /** A slider with a text field; `tell(text, control)` is called at every change. */
  class Slider extends Control {
    constructor(label, help, tell) {
      super("slider");
      const id = `sojourn-${++ids}`;
      this.range = element("input", { type: "range", min: 0, max: S.TICKS, step: 1, "aria-label": label });
      this.text = element("input", { type: "text", id, spellcheck: false });
      const small = help ? element("small", {}, help) : "";
      this.root.append(element("label", { htmlFor: id }, label, " ", small), this.text, this.range, this.error);
      this.range.addEventListener("input", () => {
        this.text.value = S.written(this.span.kind, S.valueAt(this.span, Number(this.range.value)));
        tell(this.text.value, this);
      });
      this.text.addEventListener("change", () => tell(this.text.value.trim(), this));
    }

    /** `span` is { kind, low, high, log, value }; null hides the slider. */
    update(span, text, placeholder = "") {
      this.span = span;
      this.range.hidden = !span;
      const held = [this.range, this.text].includes(document.activeElement);
      if (span && document.activeElement !== this.range) this.range.value = S.position(span, span.value);
      if (!held || document.activeElement === this.range) this.text.value = text;
      this.text.placeholder = placeholder;
      this.range.setAttribute("aria-valuetext", text || placeholder);
    }
  }

  /** A choice among several options, each [value, label, title]. */
  class Choice extends Control {
    constructor(label, tell) {
      super("choice");
      const id = `sojourn-${++ids}`;
      this.select = element("select", { id });
      this.label = element("label", { htmlFor: id }, label);
      this.help = element("small", { className: "help" });
      this.root.append(this.label, this.select, this.help, this.error);
      this.select.addEventListener("change", () => tell(this.select.value, this));
    }

    update(options, value, help = "") {
      const key = options.map(([name]) => name).join("\n");
      if (key !== this.key) {
        this.key = key;
        this.select.replaceChildren(...options.map(([name, text]) => element("option", { value: name }, text)));
      }
      this.select.value = value;
      this.help.textContent = help;
    }
  }

  /** A text field of one line. */
  class Field extends Control {
    constructor(label, tell) {
      super("field");
      const id = `sojourn-${++ids}`;
      this.input = element("input", { type: "text", id, spellcheck: false });
      this.root.append(element("label", { htmlFor: id }, label), this.input, this.error);
      this.input.addEventListener("change", () => tell(this.input.value.trim(), this));
    }

    update(text) {
      if (document.activeElement !== this.input) this.input.value = text;
    }
  }

  /** A checkbox. */
  class Tick extends Control {
    constructor(label, tell) {
      super("tick");
      const id = `sojourn-${++ids}`;
      this.box = element("input", { type: "checkbox", id });
      this.root.append(element("label", { htmlFor: id }, this.box, " ", label), this.error);
      this.box.addEventListener("change", () => tell(this.box.checked, this));
    }

    update(on) {
      this.box.checked = on;
    }
  }

  /** The parameters of a queue, each with a control of the kind that its declaration states. */
  class Words {
    /** `tell(word, value, control)` is called at changes; the value null means the default. */
    constructor(engine, tell) {
      Object.assign(this, { engine, tell });
      this.root = element("div", { className: "words" });
      this.name = null;
      this.controls = new Map();
    }

    /** Shows the parameters of a queue, from the result of `Engine.readQueue` and the table of their declarations. */
    update(read, table) {
      if (read.name !== this.name) {
        this.name = read.name;
        this.controls = new Map(table.words.map((word) => [word.name, this.make(word)]));
        this.root.replaceChildren(...[...this.controls.values()].map((control) => control.root));
      }
      const given = new Map(read.words);
      for (const word of table.words) this.fill(this.controls.get(word.name), word, given.get(word.name));
    }

    make(word) {
      const tell = (value, control) => this.tell(word.name, value === "" ? null : value, control);
      const made = ["flag", "switch"].includes(word.kind)
        ? new Tick(word.name, tell)
        : "of" in word
          ? new Choice(word.name, tell)
          : new Slider(word.name, "", tell);
      made.root.title = word.doc;
      return made;
    }

    fill(control, word, given) {
      if (control instanceof Tick) {
        control.update(given ?? (word.kind === "switch" && word.default === word.name));
      } else if (control instanceof Choice) {
        const names = word.of.map((meaning) => meaning.name ?? meaning);
        const usual = ["", word.default ? `${word.default} (default)` : "default"];
        control.update([usual, ...names.map((name) => [name, name])], given ?? "");
      } else {
        control.update(this.span(word, given ?? word.default), given ?? "", word.default);
      }
    }

    /** Returns the ends and the value of a slider; null if the value is no plain number. */
    span(word, text) {
      const value = this.value(word.kind, text);
      if (value === null) return null;
      let [low, high] = SPANS[word.kind] ?? [Number(word.min), Number(word.max)];
      if (word.kind === "integer") high = Math.min(high, Math.max(100, 16 * value));
      if (!Number.isFinite(low) || !Number.isFinite(high) || low >= high) return null;
      if (value > 0) [low, high] = [Math.min(low, value), Math.max(high, value)];
      return { kind: word.kind, low, high, value, log: low > 0 && high > 50 * low };
    }

    value(kind, text) {
      if (kind in SPANS) {
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

  Object.assign(S, { element, ticked, Slider, Choice, Field, Words });
})((globalThis.Sojourn ??= {}));
