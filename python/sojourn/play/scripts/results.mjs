// The results of the two runs: the verdict, the charts, the table of measurements, and the commands for many runs.

import { called, deciding } from "./animation.mjs";
import { Chart } from "./chart.mjs";
import { element, ticked } from "./controls.mjs";
import { spoken } from "./units.mjs";
import { verdict } from "./verdict.mjs";

/** @import { Run } from "./runs.mjs" */
/** @import { Entry, Metrics, View } from "./types.js" */

/** Time series of the bottleneck: name, title and unit. */
const SERIES = [
  ["last_sojourn", "Time in the queue", "s"],
  ["queue", "Packets in the queue", "1"],
  ["throughput", "Throughput", "bit/s"],
];

export class Results {
  verdict = element("p", { className: "verdict", "aria-live": "polite" });
  reasons = element("p", { className: "reasons" });

  /**
   * @param {Metrics | null} metrics Metrics of the table; null without a table.
   * @param {(seconds: number) => void} seek Called when the user moves the position in the first chart.
   */
  constructor(metrics, seek) {
    this.charts = SERIES.slice(0, metrics ? 3 : 1).map(([, title, unit], i) => new Chart(title, unit, i === 0 ? seek : null));
    this.numbers = metrics && new Numbers(metrics, this.charts.slice(1));
  }

  /** Removes the results of another scenario. */
  clear() {
    this.verdict.textContent = "";
    this.reasons.textContent = "";
    this.charts.forEach((chart) => chart.clear());
    this.numbers?.clear();
  }

  /**
   * Shows the results of complete runs.
   * @param {Run[]} runs
   * @param {Entry} entry
   * @param {string[]} names Names of the two queues.
   * @param {boolean} own Whether the queues are the scenario's, to which its reasons apply.
   * @param {boolean} same Whether nothing was changed, so that the reasons are all that needs to be said.
   */
  show(runs, entry, names, own, same) {
    const subject = deciding(entry);
    const group = subject === null ? null : entry.groups[subject];
    const wait = group ? `${group.name}.delay_mean` : "sojourn_mean";
    const outcomes = runs.map((run, i) => ({ name: names[i], value: run.value(entry.by.metric), wait: run.value(wait) }));
    const of = !group ? "the flows" : group.name === group.app ? `the ${group.label}` : `the ${group.name}`;
    const causes = same ? [] : runs.flatMap((run) => run.causes);
    this.verdict.replaceChildren(...ticked([verdict(entry.by, outcomes, of), ...new Set(causes)].join(" ")));
    const said = own ? entry.reasons : null;
    this.reasons.replaceChildren(...(said ? [...ticked(said.why), " ", element("em", {}, ...ticked(said.try_))] : []));
    const [{ plan, from }] = runs;
    const until = Math.min(...runs.map((run) => run.until));
    /** @type {[number, number] | null} */
    const part = until - from < plan.duration ? [from / 1e9, until / 1e9] : null;
    this.charts.forEach((chart, n) => {
      const name = `${entry.bottleneck.name}.${SERIES[n][0]}`;
      const lines = runs.map((run, i) => ({ name: names[i], times: run.series("time"), values: run.series(name) }));
      chart.show({ lines, duration: plan.duration / 1e9, warmup: plan.warmup / 1e9, part });
    });
    this.numbers?.show(runs, entry, names);
  }
}

/** All measurements, in a table and in charts. */
class Numbers {
  table = element("table");
  cost = element("p", { className: "note" });

  /**
   * @param {Metrics} metrics
   * @param {Chart[]} charts
   */
  constructor(metrics, charts) {
    this.metrics = metrics;
    this.root = element("details", { className: "numbers" }, element("summary", {}, "All numbers"),
      element("div", { className: "panels" }, ...charts.map((chart) => chart.root)),
      element("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Measured" }, this.table), this.cost);
    this.root.addEventListener("toggle", () => charts.forEach((chart) => chart.draw()));
  }

  clear() {
    this.table.replaceChildren();
    this.cost.textContent = "";
  }

  /**
   * @param {Run[]} runs
   * @param {Entry} entry
   * @param {string[]} names
   */
  show(runs, entry, names) {
    const body = this.section(runs, "", `Link ${entry.bottleneck.name}`, "live.link");
    for (const group of entry.groups) body.push(...this.section(runs, `${group.name}.`, called(group), "live.flow"));
    if (entry.store) body.push(...this.section(runs, `${entry.store}.`, "store", "live.store"));
    const head = element("tr", {}, element("th", {}, "Measured"), ...names.map((name, i) => element("th", { className: `run${i}`, scope: "col" }, name)));
    this.table.replaceChildren(element("thead", {}, head), element("tbody", {}, ...body));
    this.cost.textContent = `${runs.map((run, i) => `${names[i]}: ${run.record?.events} events in ${(1000 * run.seconds).toFixed(0)} ms`).join("; ")}. Bold is better.`;
  }

  /**
   * Returns the rows of the metrics that were measured at one place, below a title.
   * @param {Run[]} runs
   * @param {string} prefix Prefix of the metrics' names.
   * @param {string} title
   * @param {View} view
   */
  section(runs, prefix, title, view) {
    const rows = this.metrics[view].flatMap(([name, label, unit, better]) => {
      const values = runs.map((run) => run.value(prefix + name));
      if (!values.some(Number.isFinite)) return [];
      const best = better && values.every(Number.isFinite) && values[0] !== values[1]
        ? (better === "lower") === (values[0] < values[1]) ? 0 : 1 : null;
      return [element("tr", {}, element("th", { scope: "row" }, label),
        ...values.map((value, i) => element("td", { className: i === best ? "better" : "" }, spoken(value, unit, name))))];
    });
    const place = element("th", { className: "place", colSpan: 3, scope: "rowgroup" }, title);
    return rows.length ? [element("tr", {}, place), ...rows] : [];
  }
}

/** The commands that repeat the comparison with many seeds. */
export class Commands {
  text = element("pre", { tabIndex: 0 });

  constructor() {
    const copy = element("button", { type: "button" }, "Copy");
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(this.text.textContent ?? "");
        copy.textContent = "Copied";
      } catch {
        getSelection()?.selectAllChildren(this.text);
        copy.textContent = "Selected: press Ctrl-C";
      }
      setTimeout(() => { copy.textContent = "Copy"; }, 2000);
    });
    this.root = element("details", { className: "commands" }, element("summary", {}, "Is that certain? Use it on your own network"),
      element("p", {}, "This page shows one run. The first command compares the two queues over many runs and states how certain the difference is; the second prints the commands for a Linux interface."),
      this.text, copy);
  }
}
