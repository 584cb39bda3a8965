// Quantities as text for scenarios and for readers, and their positions on sliders.

/** @typedef {[factor: number, unit: string][]} Units Units of one quantity, the largest first. */

/** @type {Units} */
const TIME = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
/** @type {Units} */
const RATE = [[1e9, "gbit"], [1e6, "mbit"], [1e3, "kbit"], [1, "bit"]];
/** @type {Units} */
const SIZE = [[2 ** 20, "mb"], [1024, "kb"], [1, "b"]];
/** @type {{ [unit: string]: Units }} */
const READ = {
  s: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]],
  "bit/s": [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]],
  B: [[1e6, "MB"], [1e3, "kB"], [1, "B"]],
};
/** Number of steps of a slider. */
export const TICKS = 150;
/** Metrics without a unit that are shown in percent. */
const SHARES = /(^|\.|_)(loss|utilisation|packet_loss|acknowledged|mark_share)$/;

/**
 * The range and the value of a slider, in base units.
 * @typedef {{ kind: string, low: number, high: number, log: boolean, value: number }} Span
 */

/**
 * Returns a number with at most `most` significant digits and without an exponent.
 * @param {number} value
 */
export function digits(value, most = 3) {
  if (value === 0) return "0";
  const rounded = Number(value.toPrecision(most));
  const size = Math.abs(rounded);
  if (size >= 1e-6 && size < 1e15) return String(rounded);
  return rounded.toFixed(Math.min(20, Math.max(0, most - 1 - Math.floor(Math.log10(size)))));
}

/**
 * Returns the largest unit that is not larger than a value, or the smallest one.
 * @param {Units} table
 * @param {number} value
 */
function fitting(table, value) {
  return table.find(([factor]) => value >= factor) ?? table[table.length - 1];
}

/**
 * @param {number} value
 * @param {Units} table
 */
function scaled(value, table) {
  const [factor, unit] = fitting(table, Math.abs(value));
  return `${digits(value / factor)}${unit}`;
}

/**
 * Returns a value in its base unit (ns, bit/s, bytes, packets) as text for a scenario.
 * @param {string} kind
 * @param {number} value
 */
export function written(kind, value) {
  switch (kind) {
    case "time": return scaled(value, TIME);
    case "rate": return scaled(value, RATE);
    case "size": return scaled(Math.round(value), SIZE);
    case "packets": return `${Math.round(value)}p`;
    case "integer":
    case "signed": return String(Math.round(value));
    default: return digits(value);
  }
}

/**
 * Returns the position of a value on a slider, from 0 to TICKS.
 * @param {Span} span
 * @param {number} value
 */
export function position({ low, high, log }, value) {
  const at = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return Math.round(TICKS * Math.min(1, Math.max(0, at)));
}

/**
 * Returns the value at a position of a slider, with two significant digits.
 * @param {Span} span
 * @param {number} place
 */
export function valueAt({ kind, low, high, log }, place) {
  const at = place / TICKS;
  const value = log ? low * (high / low) ** at : low + (high - low) * at;
  if (at === 0 || at === 1) return value;
  const whole = ["integer", "signed", "packets"].includes(kind);
  const rounded = Number(value.toPrecision(2));
  return Math.min(high, Math.max(low, whole ? Math.round(rounded) : rounded));
}

/**
 * Returns factor and name of the display unit for values up to `most`.
 * @param {string} unit
 * @param {number} most
 * @returns {[factor: number, unit: string]}
 */
export function readable(unit, most) {
  const table = READ[unit];
  if (!table) return [1, unit === "1" ? "" : unit];
  return fitting(table, most);
}

/**
 * Returns a measured value with its display unit, such as `12 ms` or `3 %`; a dash if it is missing.
 * @param {number | null} value
 * @param {string} unit
 * @param {string} metric
 */
export function spoken(value, unit, metric = "") {
  if (value === null || !Number.isFinite(value)) return "–";
  if (unit === "1" && SHARES.test(metric)) return `${digits(100 * value, 2)} %`;
  const [factor, name] = readable(unit, Math.abs(value));
  return `${digits(value / factor, 2)}${name ? ` ${name}` : ""}`;
}
