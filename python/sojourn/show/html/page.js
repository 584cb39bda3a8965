"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const figures = read("data-figures");
  const palette = read("data-palette");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Colours are written as c0, c1, ...; f0, f1, ... are the same, see-through.
  const painted = (value, colours) => {
    if (typeof value === "string" && /^[cf]\d$/.test(value)) {
      const colour = colours[Number(value[1])];
      return value[0] === "c" ? colour : colour + "40";
    }
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

  const draw = (light) => {
    const colours = light ? palette.light : palette.dark;
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
          modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--line"), activecolor: css("--faint") },
          ...layout,
        },
        {
          responsive: true,
          displaylogo: false,
          displayModeBar: figure.bar,
          modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "sendDataToCloud"],
        },
      );
    }
  };

  const now = () => draw(!dark.matches);
  now();
  dark.addEventListener("change", now);
  window.addEventListener("beforeprint", () => draw(true));
  window.addEventListener("afterprint", now);
})();
