// Controls. A control that is in a hand is not moved under it.

import { position, valueAt, written } from "./units.js";

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made[key] = value;
  made.append(...children);
  return made;
}

/** A slider with a text beside it; `tell(text)` hears of every change. */
class Slider {
  constructor(id, label, help, tell) {
    this.range = element("input", { type: "range", min: 0, max: 1000, step: 1 });
    this.text = element("input", { type: "text", id, spellcheck: false });
    this.range.setAttribute("aria-label", label);
    const small = help ? element("small", {}, help) : "";
    this.root = element("div", { className: "control" },
      element("label", { htmlFor: id }, label, " ", small), this.text, this.range);
    this.range.addEventListener("input", () => {
      const value = valueAt(this.spec, Number(this.range.value));
      this.text.value = written(this.spec.kind, value);
      tell(this.text.value);
    });
    this.text.addEventListener("change", () => tell(this.text.value.trim()));
  }

  update(spec, text, placeholder = "") {
    this.spec = spec;
    this.range.hidden = !spec;
    if (spec && document.activeElement !== this.range) {
      this.range.value = position(spec, spec.value);
    }
    if (document.activeElement !== this.text) this.text.value = text;
    this.text.placeholder = placeholder;
    this.range.setAttribute("aria-valuetext", text || placeholder);
  }
}

/** What can be moved of link and traffic. */
export class Sliders {
  constructor(parent, tell) {
    this.parent = parent;
    this.tell = tell;
    this.shown = new Map();
  }

  update(specs) {
    const keys = specs.map((spec) => `${spec.key} ${spec.label}`);
    if (keys.join("\n") !== [...this.shown.keys()].join("\n")) {
      this.shown = new Map(specs.map((spec, i) => [keys[i], this.make(spec)]));
      this.parent.replaceChildren(...[...this.shown.values()].map((slider) => slider.root));
    }
    specs.forEach((spec, i) => this.shown.get(keys[i]).update(spec, written(spec.kind, spec.value)));
  }

  make(spec) {
    const count = spec.key.startsWith("counts.") ? spec.key.slice(7) : null;
    return new Slider(`slider-${spec.key}`, spec.label, spec.text, (text) => {
      if (count === null) this.tell({ [spec.key]: text });
      else if (/^[0-9]{1,7}$/.test(text)) this.tell({ counts: { [count]: Number(text) } });
    });
  }
}

/** The words of a queue. */
export class Words {
  constructor(parent, tell) {
    this.parent = parent;
    this.tell = tell;
    this.name = null;
    this.shown = new Map();
  }

  update(card) {
    if (card.name !== this.name) {
      this.name = card.name;
      this.shown = new Map(card.words.map((word) => [word.name, this.make(word)]));
      this.parent.replaceChildren(...[...this.shown.values()].map((control) => control.root));
    }
    for (const word of card.words) this.shown.get(word.name).update(word);
  }

  make(word) {
    const tell = (value) => this.tell({ words: { [word.name]: value } });
    const id = `word-${word.name}`;
    if ("on" in word) return tick(id, word, tell);
    if ("of" in word) return choice(id, word, tell);
    const slider = new Slider(id, word.name, "", (text) => tell(text || null));
    slider.root.title = word.doc;
    return {
      root: slider.root,
      update: (now) => slider.update(now.slider ?? null, now.given ?? "", now.default),
    };
  }
}

function tick(id, word, tell) {
  const box = element("input", { type: "checkbox", id });
  box.addEventListener("change", () => tell(box.checked));
  const label = element("label", { htmlFor: id }, box, " ", word.name);
  const root = element("div", { className: "control tick", title: word.doc }, label);
  return { root, update: (now) => { if (document.activeElement !== box || !box.matches(":active")) box.checked = now.on; } };
}

function choice(id, word, tell) {
  const select = element("select", { id });
  const usual = element("option", { value: "" }, word.default ? `${word.default} (default)` : "–");
  select.append(usual, ...word.of.map((name) => element("option", { value: name }, name)));
  select.addEventListener("change", () => tell(select.value || null));
  const root = element("div", { className: "control", title: word.doc },
    element("label", { htmlFor: id }, word.name), select);
  return { root, update: (now) => { select.value = now.given ?? ""; } };
}

export { element };
