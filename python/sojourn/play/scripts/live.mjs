// The live figures in other pages: `<div class="sojourn-live" data-scenario="home" data-queue="codel"
// data-against="pfifo limit 1000p">` becomes a figure when it is scrolled near to the
// visible part, and `data-step="0"` the first step of "A queue in one minute".

import { Figure } from "./figure.mjs";
import { show } from "./step.mjs";

/** @import { State } from "./changes.mjs" */
/** @import { Entry } from "./types.js" */

/** Address of the page with all scenarios, in the folder of this script. */
const PLAYGROUND = new URL("index.html", /** @type {HTMLScriptElement} */ (document.currentScript).src).href;

/** Creates the figures of the page. */
function begin() {
  for (const place of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".sojourn-live"))) {
    const { scenario = "", queue, against } = place.dataset;
    const step = globalThis.SOJOURN_CATALOGUE?.minute[Number(place.dataset.step ?? -1)];
    const entry = globalThis.SOJOURN_CATALOGUE?.scenarios[scenario];
    if (!(entry || step) || !globalThis.SOJOURN_MODULE) continue;
    const near = new IntersectionObserver(async ([{ isIntersecting }]) => {
      if (!isIntersecting) return;
      near.disconnect();
      /** @type {Partial<State>} */
      const state = { ...(queue ? { queue } : {}), ...(against ? { against } : {}) };
      const root = document.createElement("div");
      const animation = step
        ? await show(root, step)
        : (await Figure.make(root, /** @type {Entry} */ (entry), state, { playground: PLAYGROUND, id: scenario })).animation;
      place.replaceChildren(root);
      animation.restyle();
    }, { rootMargin: "300px" });
    near.observe(place);
  }
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
else begin();
