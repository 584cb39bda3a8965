// The scenario's shape: places, lines between them, and the queue at its place.

import { svg } from "./chart.js";

const COLUMN = { least: 104, most: 300 };
const SIDE = 92;
const ROW = 62;
const LABELLED = 8;

function short(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** Draws into `parent`; `queues` are the names of the queues that are compared. */
export function draw(parent, shape, queues) {
  parent.replaceChildren();
  if (!shape.places.length) {
    const note = document.createElement("p");
    note.className = "note";
    note.textContent = `Too large to draw: ${shape.note}.`;
    parent.append(note);
    return;
  }
  const xs = shape.places.map((p) => p.x);
  const ys = shape.places.map((p) => p.y);
  const columns = Math.max(...xs) - Math.min(...xs);
  const rows = Math.max(...ys) - Math.min(...ys);
  const flows = Math.max(1, ...shape.places.map((_, n) => sent(shape, n).length));
  const room = (parent.clientWidth - 2 * SIDE - 30) / Math.max(1, columns);
  const column = Math.min(COLUMN.most, Math.max(COLUMN.least, room));
  const width = columns * column + 2 * SIDE;
  const top = 48;
  const height = top + rows * ROW + 42 + 17 * flows;
  const x = (p) => SIDE + (p.x - Math.min(...xs)) * column;
  const y = (p) => top + (p.y - Math.min(...ys)) * ROW;
  const image = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said(shape),
  });
  image.style.maxWidth = `${width}px`;
  for (const line of shape.lines) {
    const a = shape.places[line.from];
    const b = shape.places[line.to];
    const subject = line.queue !== null;
    const drawn = svg("line", {
      x1: x(a), y1: y(a), x2: x(b), y2: y(b), class: subject ? "link subject" : "link",
    });
    drawn.append(svg("title", {}, `${line.name}: ${line.label}`));
    image.append(drawn);
    // Of many links only the one that matters has its label in sight.
    if (shape.lines.length > LABELLED && !subject) continue;
    const middle = [(x(a) + x(b)) / 2, (y(a) + y(b)) / 2];
    const label = svg("text", { x: middle[0], y: middle[1] - (subject ? 32 : 20), class: "linklabel" });
    label.append(svg("tspan", { class: "linkname" }, short(line.name, 18)));
    label.append(svg("tspan", { x: middle[0], dy: 14 }, line.label));
    image.append(label);
    if (subject) queue(image, line, shape, x, y, queues);
  }
  shape.places.forEach((place, n) => {
    const at = [x(place), y(place)];
    if (place.count > 1) {
      image.append(svg("circle", { cx: at[0] + 5, cy: at[1] - 5, r: 14, class: "place behind" }));
    }
    const icon = place.kind === "host"
      ? svg("circle", { cx: at[0], cy: at[1], r: 14, class: "place" })
      : svg("rect", { x: at[0] - 13, y: at[1] - 13, width: 26, height: 26, rx: 6, class: `place ${place.kind}` });
    icon.append(svg("title", {}, place.name));
    image.append(icon, svg("text", { x: at[0], y: at[1] + 30, class: "placename" }, short(place.name, 18)));
    sent(shape, n).forEach((text, i) => {
      image.append(svg("text", { x: at[0], y: at[1] + 47 + 16 * i, class: "flow" }, short(text, 26)));
    });
  });
  parent.append(image);
}

function queue(image, line, shape, x, y, names) {
  const start = shape.places[line.queue];
  const end = shape.places[line.queue === line.from ? line.to : line.from];
  const dx = x(end) - x(start);
  const dy = y(end) - y(start);
  const length = Math.hypot(dx, dy) || 1;
  // A quarter of the way, clear of the place's own circle.
  const at = Math.min(0.3, 44 / length);
  const group = svg("g", { transform: `translate(${x(start) + dx * at} ${y(start) + dy * at})` });
  group.append(svg("rect", { x: -17, y: -11, width: 34, height: 22, rx: 3, class: "buffer" }));
  for (let i = 0; i < 4; i++) {
    group.append(svg("rect", { x: 8 - 7 * i, y: -7, width: 4.5, height: 14, rx: 1, class: "slot", opacity: 1 - 0.2 * i }));
  }
  image.append(group);
  const label = svg("text", { x: (x(start) + x(end)) / 2, y: (y(start) + y(end)) / 2 + 26, class: "queues" });
  names.forEach((name, i) => {
    if (i) label.append(svg("tspan", { class: "versus" }, "  or  "));
    label.append(svg("tspan", { class: `run${i}` }, short(name, 16)));
  });
  image.append(label);
}

function sent(shape, place) {
  const ends = shape.places.length;
  return shape.flows
    .filter((flow) => flow.from.includes(place))
    .map((flow) => {
      const to = flow.to.length === 1 && ends > 2 ? ` → ${shape.places[flow.to[0]].name}` : " →";
      return `${flow.count > 1 ? `${flow.count} × ` : ""}${flow.name}${to}`;
    });
}

function said(shape) {
  const links = shape.lines.map((line) => {
    const ends = [shape.places[line.from].name, shape.places[line.to].name];
    return `${ends.join(" to ")}, ${line.label}${line.queue !== null ? ", the bottleneck" : ""}`;
  });
  return `Links: ${links.join("; ")}.`;
}
