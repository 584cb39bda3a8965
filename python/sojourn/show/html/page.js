"use strict";

/**
 * A figure of the report: data for Plotly, whose colours are names of a palette.
 * @typedef {{ traces: unknown, layout: { [key: string]: object }, height: number, bar: boolean }} Figure
 */

(async () => {
  /** @type {(text: string | null | undefined) => Promise<string>} */
  const unpacked = (text) => {
    const bytes = Uint8Array.from(atob(text ?? ""), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  /** @type {NodeListOf<HTMLImageElement>} */
  const images = document.querySelectorAll("img[data-packed]");
  for (const image of images) {
    const svg = await unpacked(image.dataset.packed);
    image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  }
  /** @type {NodeListOf<HTMLElement>} */
  const details = document.querySelectorAll("details[data-packed]");
  for (const folded of details) {
    const unfold = async () => folded.insertAdjacentHTML("beforeend", await unpacked(folded.dataset.packed));
    folded.addEventListener("toggle", unfold, { once: true });
  }
  // Figures in a folded part get their width when it is opened.
  for (const more of document.querySelectorAll("details.more")) {
    more.addEventListener("toggle", () => window.dispatchEvent(new Event("resize")));
  }
  const packed = (/** @type {string} */ id) => document.getElementById(id)?.textContent;
  if (!packed("packed-library")) return;
  const library = document.createElement("script");
  library.textContent = await unpacked(packed("packed-library"));
  document.head.append(library);
  /** @type {{ figures: { [id: string]: Figure }, light: string[], dark: string[] }} */
  const { figures, light, dark } = JSON.parse(await unpacked(packed("packed-data")));
  // Moving a finger over a figure scrolls the page.
  const touch = window.matchMedia("(pointer: coarse)").matches;
  const darkness = window.matchMedia("(prefers-color-scheme: dark)");
  const css = (/** @type {string} */ name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Colours in the data are c0, c1, ..., numbers of the palette.
  /** @type {(value: unknown, colours: string[]) => any} */
  const painted = (value, colours) => {
    if (typeof value === "string" && /^c\d$/.test(value)) return colours[Number(value[1])];
    if (Array.isArray(value)) return value.map((v) => painted(v, colours));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, painted(v, colours)]));
    }
    return value;
  };

  const axis = (/** @type {object} */ own) => ({
    gridcolor: css("--line"),
    linecolor: css("--faint"),
    zerolinecolor: css("--line"),
    ticks: "outside",
    tickcolor: css("--line"),
    automargin: true,
    ...own,
  });

  const draw = (/** @type {string[]} */ colours) => {
    for (const [id, figure] of Object.entries(figures)) {
      const layout = painted(figure.layout, colours);
      const axes = Object.keys(layout).filter((k) => /^[xy]axis\d*$/.test(k));
      for (const name of new Set([...axes, "xaxis", "yaxis"])) layout[name] = axis(layout[name]);
      Plotly.react(
        id,
        painted(figure.traces, colours),
        {
          font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: css("--ink") },
          paper_bgcolor: "rgba(0,0,0,0)",
          plot_bgcolor: "rgba(0,0,0,0)",
          margin: { l: 60, r: 16, t: 8, b: 48 },
          hoverlabel: { bgcolor: css("--soft"), bordercolor: css("--line"), font: { color: css("--ink") } },
          height: figure.height,
          dragmode: touch ? false : "zoom",
          modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--line"), activecolor: css("--faint") },
          ...layout,
        },
        {
          responsive: true,
          displaylogo: false,
          displayModeBar: figure.bar ? "hover" : false,
          modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
          // Both settings prevent a button that sends the figure to Plotly.
          showSendToCloud: false,
          plotlyServerURL: "",
        },
      );
    }
  };

  const now = () => draw(darkness.matches ? dark : light);
  now();
  darkness.addEventListener("change", now);
  window.addEventListener("beforeprint", () => draw(light));
  window.addEventListener("afterprint", now);
})();
