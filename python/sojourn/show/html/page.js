"use strict";
(async () => {
  const unpacked = (text) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  for (const image of document.querySelectorAll("img[data-packed]")) {
    const svg = await unpacked(image.dataset.packed);
    image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  }
  for (const folded of document.querySelectorAll("details[data-packed]")) {
    const unfold = async () => folded.insertAdjacentHTML("beforeend", await unpacked(folded.dataset.packed));
    folded.addEventListener("toggle", unfold, { once: true });
  }
  const element = (id) => document.getElementById(id);
  if (!element("packed-library")) return;
  const library = document.createElement("script");
  library.textContent = await unpacked(element("packed-library").textContent);
  document.head.append(library);
  const { figures, light, dark } = JSON.parse(await unpacked(element("packed-data").textContent));
  // Moving a finger over a figure scrolls the page.
  const touch = window.matchMedia("(pointer: coarse)").matches;
  const darkness = window.matchMedia("(prefers-color-scheme: dark)");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Colours in the data are c0, c1, ..., numbers of the palette.
  const painted = (value, colours) => {
    if (typeof value === "string" && /^c\d$/.test(value)) return colours[Number(value[1])];
    if (Array.isArray(value)) return value.map((v) => painted(v, colours));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, painted(v, colours)]));
    }
    return value;
  };

  const axis = (own) => ({
    gridcolor: css("--line"),
    linecolor: css("--faint"),
    zerolinecolor: css("--line"),
    ticks: "outside",
    tickcolor: css("--line"),
    automargin: true,
    ...own,
  });

  const draw = (colours) => {
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
