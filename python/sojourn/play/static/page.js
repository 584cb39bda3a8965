// The page: a gallery of scenarios above one live figure. The part of the address after `#` has the state.

(function (S) {
  "use strict";

  const { element } = S;
  const catalogue = globalThis.SOJOURN_CATALOGUE;
  const get = (id) => document.getElementById(id);
  let figure = null;
  let shown = null;

  function capital(text) {
    return text.charAt(0).toUpperCase() + text.slice(1);
  }

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

  async function choose(id, state) {
    const entry = catalogue.scenarios[id];
    shown = id;
    get("question").textContent = question(entry);
    get("description").textContent = entry.description || capital(entry.title);
    get("shortened").textContent = entry.duration_shortened
      ? `Simulated for ${S.digits(entry.plan.duration / 1e9)} s here; the scenario itself takes ${entry.duration_shortened}.` : "";
    document.title = `${question(entry)} · Sojourn`;
    for (const card of get("gallery").querySelectorAll(".card")) {
      const mine = card.dataset.scenario === id;
      card.setAttribute("aria-pressed", String(mine));
      if (mine) card.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    if (figure) {
      figure.show(entry, state);
      return;
    }
    S.shown = figure = await S.Figure.make(get("figure"), entry, state, {
      compact: false,
      metrics: catalogue.metrics,
      changed: (now) => history.replaceState(null, "", `#${S.fragment(shown, now, catalogue.scenarios[shown])}`),
    });
  }

  function follow() {
    const [id, state] = S.parse(location.hash);
    const known = id in catalogue.scenarios;
    if (id && !known) get("missing").textContent = `This page has no scenario ${id}, which its address names.`;
    get("missing").hidden = !id || known;
    return choose(known ? id : catalogue.first, known ? state : {});
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
    get("docs").href = catalogue.docs;
    get("docs").hidden = false;
  }
  addEventListener("hashchange", follow);
  addEventListener("keydown", (event) => {
    if (event.key === " " && event.target === document.body) {
      event.preventDefault();
      figure?.play(!figure.playing);
    }
  });

  if (!globalThis.SOJOURN_MODULE) {
    get("missing").textContent = "The file of the engine, module.js, is missing in the folder of this page.";
    get("missing").hidden = false;
  } else {
    gallery();
    follow();
  }
})(globalThis.Sojourn);
