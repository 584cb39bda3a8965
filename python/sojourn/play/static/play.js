// The page: what is asked of the server, and where its answers go.
//
// The state is the fragment of the address. It is read by the server alone; here it is a text. What a
// hand changes gathers in `pending` until an answer has it; a newer request ends the older.

import { Chart } from "./chart.js";
import { draw } from "./drawing.js";
import { Sliders, Words, element } from "./form.js";

const get = (id) => document.getElementById(id);
const root = document.documentElement;
const PAGE = [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("");
const PAUSE = 30;
const RETRIES = 20;

let token = null;
let base = null;
let pending = {};
let number = 0;
let timer = null;
let flight = null;
let answer = null;

const charts = [];
for (const options of [
  { title: "Queueing delay", unit: "s", lines: [["delay", ""]], log: true },
  { title: "Packets queued", unit: "", lines: [["queue", ""]], log: true },
  { title: "Throughput", unit: "bit/s", lines: [["throughput", ""]] },
  { title: "Drops a second (marks dotted)", unit: "", lines: [["drops", ""], ["marks", "marks"]], steps: true },
]) {
  charts.push(new Chart(get("charts"), options, charts));
}
const sliders = new Sliders(get("sliders"), change);
const words = new Words(get("words"), change);

function takeFragment() {
  const parts = location.hash.slice(1).split("&").filter(Boolean);
  const given = parts.find((part) => part.startsWith("token="));
  try {
    if (given) sessionStorage.setItem("token", given.slice(6));
    token = given ? given.slice(6) : sessionStorage.getItem("token");
  } catch {
    token = given ? given.slice(6) : token;
  }
  base = parts.find((part) => !part.startsWith("token=")) ?? null;
  if (given) remember();
}

function remember() {
  history.replaceState(null, "", base ? `#${base}` : location.pathname);
}

function change(patch) {
  if ("discipline" in patch || "queue" in patch) {
    delete pending.discipline;
    delete pending.queue;
    delete pending.words;
  }
  if ("pinned" in patch) delete pending.unpin;
  if ("unpin" in patch) delete pending.pinned;
  for (const [key, value] of Object.entries(patch)) {
    const table = key === "counts" || key === "words";
    pending[key] = table ? { ...pending[key], ...value } : value;
  }
  soon();
}

function soon(pause = PAUSE) {
  timer ??= setTimeout(() => { timer = null; ask(); }, pause);
}

async function ask(tries = 0) {
  const mine = ++number;
  flight?.abort();
  flight = new AbortController();
  root.dataset.state = "busy";
  let response, found;
  try {
    response = await fetch("/simulate", {
      method: "POST",
      mode: "same-origin",
      credentials: "omit",
      signal: flight.signal,
      headers: { "Content-Type": "application/json", "X-Sojourn-Token": token ?? "" },
      body: JSON.stringify({ page: PAGE, number: mine, fragment: base, changes: pending }),
    });
    found = await response.json();
  } catch (error) {
    if (error.name !== "AbortError" && mine === number) {
      fail("There is no answer: the command `sojourn play` has ended, or this page has been left behind.");
    }
    return;
  }
  if (mine !== number) return;
  if (response.status === 503 && tries < RETRIES) {
    setTimeout(() => { if (mine === number) ask(tries + 1); }, 250);
    return;
  }
  if (!response.ok) {
    // What costs too much to simulate can be seen and changed all the same.
    if (found.fragment) { describe(found); settle(found); }
    fail(found.error);
    return;
  }
  get("error").hidden = true;
  show(found, mine);
}

function fail(message) {
  const error = get("error");
  error.textContent = message;
  error.hidden = false;
  root.dataset.state = "error";
}

function describe(found) {
  answer = found;
  get("name").textContent = found.name;
  get("description").textContent = found.description;
  document.title = `${found.name} · Sojourn`;
  found.colours.forEach((colour, i) => root.style.setProperty(`--run${i}`, `var(--c${colour})`));
  draw(get("drawing"), found.shape, [...new Set(cards(found).map((card) => card.name))]);
  deployment(found);
  get("notes").replaceChildren(...found.notes.map((note) => element("li", {}, ...ticked(note))));
}

/** From here on changes go from this state, unless a hand has moved on meanwhile. */
function settle(found) {
  if (timer !== null) return;
  base = found.fragment;
  pending = {};
  remember();
  fill(found.controls);
}

function show(found, mine) {
  const labels = titles(cards(found));
  found.runs.forEach((run, i) => { run.label = labels[i]; });
  describe(found);
  for (const chart of charts) chart.show(found);
  tiles(found);
  table(found, labels);
  get("cost").textContent = found.runs
    .map((run) => `${run.label}: ${run.events.toLocaleString("en-GB").replaceAll(",", " ")} events in ${(1000 * run.seconds).toFixed(0)} ms`)
    .join(" · ");
  settle(found);
  root.dataset.number = mine;
  root.dataset.state = "ready";
}

function cards(found) {
  return [found.controls.queue, found.controls.pinned].filter(Boolean);
}

/** Names for the queues: disciplines, or whole texts where those are equal. */
function titles(queues) {
  const names = queues.map((queue) => queue.name);
  return new Set(names).size === names.length ? names : queues.map((queue) => queue.text);
}

function fill(controls) {
  sliders.update(controls.sliders);
  words.update(controls.queue);
  put(get("seed"), String(controls.seed));
  const select = get("discipline");
  const names = Object.keys(controls.disciplines);
  if (select.options.length !== names.length) {
    select.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  }
  select.value = controls.queue.name;
  get("summary").textContent = controls.queue.summary;
  put(get("text"), controls.queue.text);
  get("warnings").textContent = controls.queue.warnings.join(" ");
  const pinned = controls.pinned;
  get("unpinned").hidden = pinned !== null;
  get("pinned").hidden = pinned === null;
  get("pinbuttons").hidden = pinned === null;
  put(get("pinned"), pinned?.text ?? "");
}

function put(field, value) {
  if (document.activeElement !== field) field.value = value;
}

function values(found, place, name) {
  return found.runs.map((run) => run.rows.find((row) => row.place === place && row.name === name));
}

function tiles(found) {
  const link = found.bottleneck;
  const wanted = [
    [link, "queueing delay, 95 %"], [link, "utilisation"], [link, "loss"],
    ...found.runs[0].rows.filter((row) => ["MOS", "page load, mean", "completion, mean", "latency, 99 %"].includes(row.name))
      .map((row) => [row.place, row.name]),
  ].slice(0, 4);
  get("tiles").replaceChildren(...wanted.flatMap(([place, name]) => {
    const rows = values(found, place, name);
    if (!rows.some(Boolean)) return [];
    const numbers = rows.map((row, i) => element("span", { className: `run${i}` }, row?.text ?? "–"));
    const title = element("p", {}, place === link ? name : `${place}: ${name}`);
    return [element("div", { className: "tile" }, title, element("p", { className: "numbers" }, ...numbers))];
  }));
}

function table(found, labels) {
  const heads = labels.map((label, i) => element("th", { className: `number run${i}` }, label));
  heads.forEach((head) => { head.scope = "col"; });
  const head = element("tr", {}, element("td"), ...heads);
  const keys = new Map();
  for (const run of found.runs) for (const row of run.rows) keys.set(`${row.place}\n${row.name}`, row);
  let before = null;
  const rows = [...keys.values()].flatMap((row) => {
    const cells = values(found, row.place, row.name)
      .map((value) => element("td", { className: "number" }, value?.text ?? "–"));
    const made = [];
    if (row.place !== before) {
      const title = element("th", { colSpan: 1 + labels.length, className: "place" }, row.place);
      made.push(element("tr", {}, title));
      before = row.place;
    }
    made.push(element("tr", {}, element("th", { scope: "row" }, row.name), ...cells));
    return made;
  });
  get("table").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
}

function deployment(found) {
  const { text = "", none = "" } = found.tc;
  get("tcnote").replaceChildren(...ticked(none));
  get("tc").textContent = text;
  get("tc").hidden = !text;
  get("copytc").hidden = !text;
}

/** A text in parts: what stands in backquotes is code. */
function ticked(text) {
  return text.split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part));
}

async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed here";
  }
  setTimeout(() => { button.textContent = before; }, 1500);
}

function save() {
  if (!answer) return;
  const url = URL.createObjectURL(new Blob([answer.toml], { type: "application/toml" }));
  const link = element("a", { href: url, download: answer.file });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

get("form").addEventListener("submit", (event) => event.preventDefault());
get("discipline").addEventListener("change", (event) => change({ discipline: event.target.value }));
get("text").addEventListener("change", (event) => change({ queue: event.target.value.trim() }));
get("pinned").addEventListener("change", (event) => change({ pinned: event.target.value.trim() }));
for (const id of ["text", "pinned"]) {
  get(id).addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); event.target.blur(); }
  });
}
get("seed").addEventListener("change", (event) => {
  if (/^[0-9]{1,15}$/.test(event.target.value.trim())) change({ seed: Number(event.target.value) });
});
get("again").addEventListener("click", () => answer && change({ seed: answer.controls.seed + 1 }));
get("pin").addEventListener("click", () => answer && change({ pinned: answer.controls.queue.text }));
get("swap").addEventListener("click", () => {
  const pinned = answer?.controls.pinned;
  if (pinned) change({ queue: pinned.text, pinned: answer.controls.queue.text });
});
get("unpin").addEventListener("click", () => change({ unpin: true }));
get("reset").addEventListener("click", () => { base = null; pending = {}; ask(); });
get("save").addEventListener("click", save);
get("copy").addEventListener("click", (event) => copy(location.href, event.target));
get("copytc").addEventListener("click", (event) => copy(get("tc").textContent, event.target));
addEventListener("hashchange", () => { pending = {}; takeFragment(); ask(); });

takeFragment();
ask();
