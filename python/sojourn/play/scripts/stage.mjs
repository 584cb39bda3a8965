// The animation of a queue: packets arrive, wait, are dropped or leave at the simulated times.

/** @import { Film } from "./film.mjs" */

/**
 * Shape and colour of a group; the colour is a variable of the style sheet.
 * @typedef {{ shape: string, colour: string }} Look
 * @typedef {CanvasRenderingContext2D} Context
 * @typedef {{ x: number, y: number, w: number, h: number }} Box
 */

/** Number of packets that pass in a second at full rate; it determines how much a film is slowed down. */
const PASSING = 45;
/** Seconds for the path to the queue and for the fall of a dropped packet; speed on the wire in pixels per second. */
const WAY = 0.45;
const FALL = 0.8;
const WIRE = 260;
/** Possible side lengths of a packet in the queue, in pixels. */
const CELLS = [2.4, 15];
/** Largest number of packets in a queue of which single ones can be emphasised. */
const FEW = 60;
/** Largest number of lanes in a box, and space between them in pixels. */
const LANES = 8;
const SHAPES = ["square", "diamond", "triangle", "hexagon"];

/**
 * Returns the number of simulated seconds that are shown in one second.
 * @param {number} rate
 */
export function speed(rate) {
  return Math.min(1, (PASSING * 1514 * 8) / rate);
}

/**
 * Returns shapes and colours of groups: a circle in its own colour for the flows of the deciding metric, other shapes for others.
 * @param {number} count
 * @param {number | null} subject Number of the deciding group.
 * @returns {Look[]}
 */
export function groupLooks(count, subject) {
  let next = 0;
  return Array.from({ length: count + 1 }, (_, group) =>
    group === subject
      ? { shape: "circle", colour: "--subject" }
      : { shape: SHAPES[next % SHAPES.length], colour: `--group${next++ % SHAPES.length}` });
}

/**
 * @param {Context} context
 * @param {string} shape
 * @param {number} x
 * @param {number} y
 * @param {number} size
 */
function trace(context, shape, x, y, size) {
  const r = size / 2;
  context.beginPath();
  if (shape === "circle") context.arc(x, y, r, 0, 7);
  else if (shape === "square") context.rect(x - r * 0.9, y - r * 0.9, 1.8 * r, 1.8 * r);
  else {
    const corners = shape === "diamond" ? 4 : shape === "triangle" ? 3 : 6;
    const turn = shape === "hexagon" ? 0 : -Math.PI / 2;
    for (let i = 0; i < corners; i++) {
      const angle = turn + (2 * Math.PI * i) / corners;
      context.lineTo(x + r * 1.15 * Math.cos(angle), y + r * 1.15 * Math.sin(angle));
    }
    context.closePath();
  }
}

/** The symbol of a group, for the legend. */
export class Mark {
  /** @param {Look} look */
  constructor(look) {
    this.look = look;
    this.canvas = document.createElement("canvas");
    this.canvas.width = this.canvas.height = 28;
    this.canvas.className = "mark";
    this.canvas.setAttribute("aria-hidden", "true");
  }

  /** Draws the symbol in the colours of the current theme. */
  draw() {
    const context = drawing(this.canvas);
    context.clearRect(0, 0, 28, 28);
    context.fillStyle = colour(this.canvas, this.look.colour);
    trace(context, this.look.shape, 14, 14, 20);
    context.fill();
  }
}

/** @param {HTMLCanvasElement} canvas */
function drawing(canvas) {
  return /** @type {Context} */ (canvas.getContext("2d"));
}

/**
 * @param {Element} element
 * @param {string} name
 */
function colour(element, name) {
  return getComputedStyle(element).getPropertyValue(name).trim() || "#888";
}

/**
 * Returns the rows of a queue that does not send in the order of arrival: a row for each flow, or for each group if there
 * are many flows; null for one row.
 * @param {Film} film
 * @param {number | null} subject Number of the deciding group, whose rows come first.
 */
export function rowsOf(film, subject) {
  if (!film.overtakes) return null;
  const of = film.flows.size <= LANES ? film.flow : film.group;
  const groups = new Map(of === film.flow ? film.flows : [...film.flows.values()].map((group) => [group, group]));
  if (groups.size < 2 || groups.size > LANES) return null;
  const keys = [...groups.keys()].sort((a, b) => Number(groups.get(b) === subject) - Number(groups.get(a) === subject) || a - b);
  return { of, rows: new Map(keys.map((key, i) => [key, i])), each: of === film.flow ? "a lane for each flow" : "a lane for each kind of flow" };
}

/** The animation of one queue. */
export class Lane {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** @type {[index: number, x: number, y: number][]} Packets of the current picture. */
    this.drawn = [];
    /** @type {Map<string, string>} */
    this.colours = new Map();
  }

  /** Forgets the colours of the old theme: the next drawing reads them again from the style sheet. */
  restyle() {
    this.colours.clear();
  }

  /** @param {string} name */
  paint(name) {
    let value = this.colours.get(name);
    if (value === undefined) this.colours.set(name, (value = colour(this.canvas, name)));
    return value;
  }

  /**
   * Sets the size of the canvas to that of its element.
   * @returns {[context: Context, width: number, height: number]}
   */
  fit() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = Math.min(2, globalThis.devicePixelRatio || 1);
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== w || this.canvas.height !== h) {
      this.canvas.width = w;
      this.canvas.height = h;
    }
    const context = drawing(this.canvas);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return [context, width, height];
  }

  /**
   * Draws the moment `t` of the film, in simulated ns.
   * @param {Film} film
   * @param {number} t
   * @param {object} view
   * @param {number} view.pace Simulated ns per second of the viewer.
   * @param {number} view.most Number of packets for which the box is scaled.
   * @param {Look[]} view.looks Shape and colour of each group.
   * @param {number | null} view.subject Number of the deciding group.
   * @param {string} view.rate Text at the link.
   * @param {boolean} view.plain Whether the queue drops only when it is full.
   */
  draw(film, t, { pace, most, looks, subject, rate, plain }) {
    const [context, width, height] = this.fit();
    this.drawn = [];
    if (width < 40) return;
    const narrow = width < 560;
    const way = narrow ? 34 : Math.min(150, width * 0.16);
    const wire = narrow ? width * 0.3 : Math.min(380, width * 0.33);
    const floor = 18;
    const box = { x: way, y: 6, w: width - way - wire, h: height - 6 - floor };
    const middle = box.y + box.h / 2;
    const exit = box.x + box.w;
    this.frame(context, box, exit, width, middle, rate);

    const side = Math.min(CELLS[1], Math.max(CELLS[0], Math.sqrt((box.w * box.h) / Math.max(most, 12)) * 0.97));
    const columns = Math.max(1, Math.floor((box.w - 4) / side));
    // A short queue is drawn as one line, a long one in columns with alternating direction.
    const fitting = Math.max(1, Math.floor((box.h - 4) / side));
    const rows = Math.min(fitting, Math.ceil(film.most / columns) || 1);
    const top = middle - (rows * side) / 2;
    // Returns the centre of a position in the queue, which may be between two places; the direction alternates by column.
    const place = (/** @type {number} */ position) => {
      const at = Math.max(0, Math.min(position, rows * columns - 1));
      const low = Math.floor(at);
      const centre = (/** @type {number} */ k) => {
        const column = Math.floor(k / rows);
        const line = column % 2 ? rows - 1 - (k % rows) : k % rows;
        return [exit - 3 - (column + 0.5) * side, top + (line + 0.5) * side];
      };
      const [x0, y0] = centre(low);
      const [x1, y1] = centre(low + 1);
      return [x0 + (x1 - x0) * (at - low), y0 + (y1 - y0) * (at - low)];
    };

    const lanes = rowsOf(film, subject);
    const high = lanes ? (box.h - 4) / lanes.rows.size : 0;
    const row = (/** @type {number} */ index) => (lanes ? lanes.rows.get(lanes.of[index]) ?? 0 : 0);
    const level = (/** @type {number} */ index) => (lanes ? box.y + 2 + (row(index) + 0.5) * high : middle);
    const cell = Math.min(CELLS[1], high * 0.86);
    if (lanes) this.lines(context, box, high, lanes);

    const queued = film.queued(t);
    /** Packets before one in its row. @type {number[]} */
    const ahead = [];
    const lengths = new Array(lanes?.rows.size ?? 1).fill(0);
    for (const index of queued) ahead.push(lengths[row(index)]++);
    const spot = (/** @type {number} */ index, /** @type {number} */ k) =>
      [exit - 3 - (k + 0.5) * Math.min(cell, (box.w - 12) / Math.max(1, lengths[row(index)])), level(index)];
    // The packets move up while the first one is transmitted.
    const [before, next] = film.around(t);
    const shift = before !== null && next !== null && next > before ? (t - before) / (next - before) : 0;
    const few = queued.filter((index) => film.group[index] === subject).length <= FEW;
    /** @type {(index: number, x: number, y: number, wide: number, alpha?: number) => void} */
    const paint = (index, x, y, wide, alpha = 1) => {
      const group = film.group[index];
      const look = looks[Math.min(group, looks.length - 1)];
      context.globalAlpha = alpha;
      context.fillStyle = this.paint(look.colour);
      // A few packets of the deciding flows are emphasised among many others.
      const special = group === subject && few;
      const large = special ? Math.max(wide, 9) : wide;
      trace(context, wide < 5 && !special ? "square" : look.shape, x, y, large);
      context.fill();
      if (special) {
        context.lineWidth = 1.5;
        context.strokeStyle = this.paint("--ink");
        context.stroke();
      }
      if (film.marked[index]) {
        context.lineWidth = 1.2;
        context.strokeStyle = this.paint("--bad");
        trace(context, "circle", x, y, large + 3);
        context.stroke();
      }
      this.drawn.push([index, x, y]);
    };

    const size = (lanes ? cell : side) - 0.8;
    /** @type {[index: number, x: number, y: number][]} */
    const own = [];
    queued.forEach((index, k) => {
      const [x, y] = lanes ? spot(index, ahead[k]) : place(k + (before !== null ? 1 - shift : 0));
      // The deciding flows are drawn last, on top of others.
      if (film.group[index] === subject) own.push([index, x, y]);
      else paint(index, x, y, size);
    });
    own.forEach(([index, x, y]) => paint(index, x, y, size));

    const fly = Math.max(6, Math.min(side, 11));
    const tail = queued.length;
    for (const index of film.coming(t, WAY * pace)) {
      const share = 1 - (film.offered[index] - t) / (WAY * pace);
      const [x, y] = lanes ? spot(index, lengths[row(index)]) : place(tail);
      const lane = lanes ? y : middle + (((film.group[index] * 37) % 5) - 2) * (box.h / 7);
      paint(index, x * share, lane + (y - lane) * share, fly);
    }
    const seconds = (wire - 8) / WIRE;
    for (const index of film.gone(film.departures, t, seconds * pace)) {
      const share = (t - film.left[index]) / (seconds * pace);
      const bend = Math.max(0, 1 - share * 8);
      paint(index, exit + share * (wire - 8), middle + (level(index) - middle) * bend, fly, share > 0.9 ? (1 - share) * 10 : 1);
    }
    /** @type {[text: string, x: number, y: number] | null} */
    let why = null;
    for (const index of film.gone(film.drops, t, FALL * pace)) {
      const share = (t - film.left[index]) / (FALL * pace);
      const end = lanes ? spot(index, lengths[row(index)])[0] : place(tail)[0];
      const x0 = film.refused.has(index) ? Math.max(box.x + 6, end) : exit - 6;
      const y = level(index) + share * share * (height - level(index) - 6);
      if (index === film.drops[film.drops.length - 1] || share < 0.5) why = [film.reason(index, plain), x0, y];
      paint(index, x0, y, fly, 1 - share);
      context.strokeStyle = this.paint("--bad");
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(x0 - 5, y - 5);
      context.lineTo(x0 + 5, y + 5);
      context.moveTo(x0 + 5, y - 5);
      context.lineTo(x0 - 5, y + 5);
      context.stroke();
    }
    context.globalAlpha = 1;
    if (!why) return;
    context.fillStyle = this.paint("--bad");
    context.font = "12px system-ui, sans-serif";
    // At the head of the queue the text is below the link, beside what the lanes are.
    const tailed = why[1] < width / 2;
    context.textAlign = tailed ? "left" : "right";
    context.fillText(why[0], tailed ? why[1] + 10 : width - 4, height - 4);
  }

  /** Clears the picture. */
  clear() {
    this.fit();
    this.drawn = [];
  }

  /**
   * Draws the lines between the rows of a box, and what the rows are.
   * @param {Context} context
   * @param {Box} box
   * @param {number} high Height of a row.
   * @param {NonNullable<ReturnType<typeof rowsOf>>} lanes
   */
  lines(context, box, high, { rows, each }) {
    context.globalAlpha = 1;
    context.strokeStyle = this.paint("--line");
    context.lineWidth = 1;
    context.beginPath();
    for (let i = 1; i < rows.size; i++) {
      context.moveTo(box.x + 2, box.y + 2 + i * high);
      context.lineTo(box.x + box.w - 2, box.y + 2 + i * high);
    }
    context.stroke();
    context.fillStyle = this.paint("--faint");
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "left";
    context.fillText(each, box.x + 2, box.y + box.h + 14);
  }

  /**
   * Draws the box and the link.
   * @param {Context} context
   * @param {Box} box
   * @param {number} exit
   * @param {number} width
   * @param {number} middle
   * @param {string} rate
   */
  frame(context, box, exit, width, middle, rate) {
    context.globalAlpha = 1;
    context.strokeStyle = this.paint("--line");
    context.lineWidth = 14;
    context.lineCap = "butt";
    context.beginPath();
    context.moveTo(exit, middle);
    context.lineTo(width - 4, middle);
    context.stroke();
    context.strokeStyle = this.paint("--card");
    context.lineWidth = 11;
    context.beginPath();
    context.moveTo(exit, middle);
    context.lineTo(width - 4, middle);
    context.stroke();
    context.lineWidth = 1.5;
    context.strokeStyle = this.paint("--faint");
    context.strokeRect(box.x, box.y, box.w, box.h);
    context.fillStyle = this.paint("--faint");
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "right";
    context.fillText(rate, width - 4, middle + 24);
    // The side at which packets arrive is open.
    context.strokeStyle = this.paint("--card");
    context.lineWidth = 3;
    context.beginPath();
    context.moveTo(box.x, box.y + 4);
    context.lineTo(box.x, box.y + box.h - 4);
    context.stroke();
  }

  /**
   * Returns the packet nearest to a point of the canvas, within the size of a finger; null without one.
   * @param {number} x
   * @param {number} y
   */
  near(x, y) {
    let found = null;
    let least = 18 * 18;
    for (const [index, px, py] of this.drawn) {
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) [found, least] = [index, distance];
    }
    return found;
  }
}

/**
 * Returns for how long a lane shows no packet from a time on, in simulated ns; 0 if it shows one.
 * @param {Film} film
 * @param {number} t
 * @param {number} pace
 */
export function idle(film, t, pace) {
  const seen = 2 * pace;
  if (film.gone(film.departures, t, seen).length || film.gone(film.drops, t, seen).length || film.queued(t).length) return 0;
  const next = film.next(t);
  return next === null ? Infinity : Math.max(0, next - t - WAY * pace);
}
