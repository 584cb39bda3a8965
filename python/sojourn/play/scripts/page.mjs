// The page: a gallery of scenarios above one live figure. The part of the address after `#` has the state.

import { fragment, parse } from "./changes.mjs";
import { element } from "./controls.mjs";
import { Figure } from "./figure.mjs";
import { digits } from "./units.mjs";
import { capital } from "./verdict.mjs";

/** @import { State } from "./changes.mjs" */
/** @import { Catalogue, Entry } from "./types.js" */

const catalogue = /** @type {Catalogue} */ (globalThis.SOJOURN_CATALOGUE);
const get = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
/** @type {Figure | null} */
let figure = null;
/** Name of the scenario that is shown. */
let shown = catalogue.first;

/** @param {Entry} entry */
function question(entry) {
  return entry.question ?? capital(entry.title);
}

function gallery() {
  const cards = Object.entries(catalogue.scenarios).map(([id, entry]) => {
    const card = element("button", { type: "button", className: "card" }, question(entry));
    card.title = entry.title;
    card.dataset.scenario = id;
    card.addEventListener("click", () => choose(id, {}));
    return element("li", {}, card);
  });
  get("gallery").replaceChildren(...cards);
}

/**
 * Shows a scenario.
 * @param {string} id
 * @param {Partial<State>} state
 */
async function choose(id, state) {
  const entry = catalogue.scenarios[id];
  shown = id;
  get("question").textContent = question(entry);
  get("description").textContent = entry.description || capital(entry.title);
  get("shortened").textContent = entry.duration_shortened
    ? `Simulated for ${digits(entry.plan.duration / 1e9)} s here; the scenario itself takes ${entry.duration_shortened.replace(/[a-z]+$/, " $&")}.` : "";
  document.title = `${question(entry)} · Sojourn`;
  for (const card of /** @type {NodeListOf<HTMLElement>} */ (get("gallery").querySelectorAll(".card"))) {
    const mine = card.dataset.scenario === id;
    card.setAttribute("aria-pressed", String(mine));
    if (mine) card.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  if (figure) {
    figure.show(entry, state);
    return;
  }
  figure = await Figure.make(get("figure"), entry, state, {
    metrics: catalogue.metrics,
    changed: (now) => history.replaceState(null, "", `#${fragment(shown, now, catalogue.scenarios[shown])}`),
  });
}

function follow() {
  const [id, state] = parse(location.hash);
  const known = id !== null && id in catalogue.scenarios;
  if (id && !known) get("missing").textContent = `This page has no scenario ${id}, which its address names.`;
  get("missing").hidden = !id || known;
  return known ? choose(id, state) : choose(catalogue.first, {});
}

get("reset").addEventListener("click", () => choose(shown, {}));
get("copy").addEventListener("click", async () => {
  const button = get("copy");
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = "Address copied";
  } catch {
    button.textContent = "Copy the address from the address bar";
  }
  setTimeout(() => { button.textContent = "Copy address"; }, 2500);
});
if (catalogue.docs) {
  get("docs").setAttribute("href", catalogue.docs);
  get("docs").hidden = false;
}
addEventListener("hashchange", follow);
addEventListener("keydown", (event) => {
  if (event.key === " " && event.target === document.body) {
    event.preventDefault();
    figure?.animation.play(!figure.animation.playing);
  }
});

if (!globalThis.SOJOURN_MODULE) {
  get("missing").textContent = "The file of the engine, module.js, is missing in the folder of this page.";
  get("missing").hidden = false;
} else {
  gallery();
  follow();
}
