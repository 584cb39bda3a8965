// The film of a run: arrival, waiting and fate of each packet of one link, for display at any simulated time.

/** @import { Advance } from "./types.js" */

/**
 * Returns the first index at which `wanted(index)` holds; it must also hold at all later indices.
 * @param {number} length
 * @param {(index: number) => boolean} wanted
 */
function first(length, wanted) {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (wanted(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

export class Film {
  /** @param {(direction: number) => number} groupOf Returns the number of the group of flows in a direction. */
  constructor(groupOf) {
    this.groupOf = groupOf;
    // For each packet, in the order of arrival:
    /** @type {number[]} Time of the arrival, in ns. */
    this.offered = [];
    /** @type {number[]} Time at which the packet leaves the queue, in ns; infinite while it waits. */
    this.left = [];
    /** @type {number[]} Number of the group. */
    this.group = [];
    /** @type {number[]} Number of the flow, in both directions. */
    this.flow = [];
    /** @type {number[]} Length in bytes. */
    this.length = [];
    /** @type {boolean[]} */
    this.marked = [];
    /** @type {number[]} Indices of packets in the order of their transmission. */
    this.departures = [];
    /** @type {number[]} Indices of packets in the order of their drop. */
    this.drops = [];
    /** @type {Map<number, number>} Groups of the flows seen, by their number. */
    this.flows = new Map();
    /** @type {Set<number>} Indices of the packets that were dropped on arrival. */
    this.refused = new Set();
    /** @type {Set<number>} Indices of the packets that were dropped from the queue when another one arrived. */
    this.evicted = new Set();
    /** Whether a packet overtook one of another flow: the queue does not send in the order of arrival. */
    this.overtakes = false;
    /** The latest of the packets that departed, and the time of the latest arrival. */
    this.newest = -1;
    this.arrived = -1;
    /** Longest time of a packet in the queue in ns, and largest number of packets in the queue. */
    this.longest = 0;
    this.most = 0;
    /** Simulated time up to which the film is complete, in ns. */
    this.until = 0;
    /** @type {Map<number, number>} Indices of the packets in the queue, by the engine's number. */
    this.open = new Map();
    this.waiting = 0;
  }

  /**
   * Adds the time and the packet events that `Engine.advance` returns.
   * @param {Advance} part
   */
  add({ now, packets }) {
    const { at, packet, direction, length, event } = packets;
    for (let i = 0; i < at.length; i++) {
      const slot = packet[i];
      if (event[i] === "offered") {
        this.open.set(slot, this.offered.length);
        this.offered.push(at[i]);
        this.left.push(Infinity);
        this.group.push(this.groupOf(direction[i]));
        this.flow.push(direction[i]);
        if (!this.flows.has(direction[i])) this.flows.set(direction[i], this.groupOf(direction[i]));
        this.arrived = at[i];
        this.length.push(length[i]);
        this.marked.push(false);
        this.most = Math.max(this.most, ++this.waiting);
        continue;
      }
      const index = this.open.get(slot);
      if (index === undefined) continue;
      if (event[i] === "marked") this.marked[index] = true;
      if (event[i] !== "departed" && event[i] !== "dropped") continue;
      this.open.delete(slot);
      this.left[index] = at[i];
      this.waiting--;
      this.longest = Math.max(this.longest, at[i] - this.offered[index]);
      if (event[i] === "departed") {
        this.overtakes ||= index < this.newest && this.flow[index] !== this.flow[this.newest];
        this.newest = Math.max(this.newest, index);
        this.departures.push(index);
        continue;
      }
      this.drops.push(index);
      if (at[i] === this.offered[index]) this.refused.add(index);
      else if (at[i] === this.arrived) this.evicted.add(index);
    }
    this.until = now;
  }

  /**
   * Returns the packets in the queue at time `t`, in the order in which they leave.
   * @param {number} t
   */
  queued(t) {
    const { offered, left } = this;
    // A packet that is still in the queue may have waited longer than any packet that has left.
    const longest = Math.max(this.longest, this.until - (this.oldest() ?? this.until));
    const begin = first(offered.length, (i) => offered[i] >= t - longest);
    /** @type {number[]} */
    const found = [];
    for (let i = begin; i < offered.length && offered[i] <= t; i++) {
      if (left[i] > t) found.push(i);
    }
    return found.sort((a, b) => left[a] - left[b] || a - b);
  }

  /**
   * Returns the reason of a packet's drop in words.
   * @param {number} index
   * @param {boolean} plain Whether the queue drops only when it is full.
   */
  reason(index, plain) {
    if (plain || this.evicted.has(index)) return "queue full";
    return this.refused.has(index) ? "refused on arrival" : "dropped early, as a signal";
  }

  /** Returns the arrival of the oldest packet that is still in the queue. */
  oldest() {
    for (const index of this.open.values()) return this.offered[index];
    return undefined;
  }

  /**
   * Returns the packets that arrive within `span` after time `t`.
   * @param {number} t
   * @param {number} span
   */
  coming(t, span) {
    const { offered } = this;
    /** @type {number[]} */
    const found = [];
    for (let i = first(offered.length, (n) => offered[n] > t); i < offered.length && offered[i] <= t + span; i++) found.push(i);
    return found;
  }

  /**
   * Returns the packets of a list (`departures` or `drops`) that left within `span` before time `t`.
   * @param {number[]} list
   * @param {number} t
   * @param {number} span
   */
  gone(list, t, span) {
    const { left } = this;
    /** @type {number[]} */
    const found = [];
    for (let i = first(list.length, (n) => left[list[n]] > t - span); i < list.length && left[list[i]] <= t; i++) found.push(list[i]);
    return found;
  }

  /**
   * Returns the last packet that was transmitted until time `t`, of `group` if it is given; null without one.
   * @param {number} t
   * @param {number | null} group
   */
  last(t, group = null) {
    const { departures, left } = this;
    let i = first(departures.length, (n) => left[departures[n]] > t) - 1;
    for (let tries = 0; i >= 0 && tries < 5000; i--, tries++) {
      if (group === null || this.group[departures[i]] === group) return departures[i];
    }
    return null;
  }

  /**
   * Returns the time of the next arrival after time `t`; null without one.
   * @param {number} t
   */
  next(t) {
    const { offered } = this;
    const i = first(offered.length, (n) => offered[n] > t);
    return i < offered.length ? offered[i] : null;
  }

  /**
   * Returns the times of the last departure until time `t` and of the next one; null without one.
   * @param {number} t
   */
  around(t) {
    const { departures, left } = this;
    const i = first(departures.length, (n) => left[departures[n]] > t);
    return [i > 0 ? left[departures[i - 1]] : null, i < departures.length ? left[departures[i]] : null];
  }
}
