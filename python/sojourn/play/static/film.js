// What happened to the packets of one link: columns of the engine's log, made ready to be drawn at any time.

(function (S) {
  "use strict";

  /** The first index at which `wanted(index)` holds, where it holds from some index on. */
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

  class Film {
    /** `groupOf(direction)` is the number of a packet's group of flows. */
    constructor(groupOf) {
      this.groupOf = groupOf;
      /** Per packet, in the order of arrival: times in ns, group, length in bytes, and its fate. */
      this.offered = [];
      this.left = [];
      this.group = [];
      this.length = [];
      this.marked = [];
      /** Packets in the order in which they left for the wire, and in which they were dropped. */
      this.departures = [];
      this.drops = [];
      /** Packets that were refused on arrival. */
      this.refused = new Set();
      /** The longest time in the queue, and the most packets in it. */
      this.longest = 0;
      this.most = 0;
      /** Until when everything is known. */
      this.until = 0;
      this.open = new Map();
      this.waiting = 0;
    }

    /** Adds what `Engine.advance` tells. */
    add({ now, packets }) {
      const { at, packet, direction, length, event } = packets;
      for (let i = 0; i < at.length; i++) {
        const slot = packet[i];
        if (event[i] === "offered") {
          this.open.set(slot, this.offered.length);
          this.offered.push(at[i]);
          this.left.push(Infinity);
          this.group.push(this.groupOf(direction[i]));
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
        if (event[i] === "departed") this.departures.push(index);
        else this.drops.push(index);
        if (event[i] === "dropped" && at[i] === this.offered[index]) this.refused.add(index);
      }
      this.until = now;
    }

    /** Packets in the queue at a time, the next to leave first. */
    queued(t) {
      const { offered, left } = this;
      // What has not left yet may have come long ago.
      const longest = Math.max(this.longest, this.until - (this.oldest() ?? this.until));
      const begin = first(offered.length, (i) => offered[i] >= t - longest);
      const found = [];
      for (let i = begin; i < offered.length && offered[i] <= t; i++) {
        if (left[i] > t) found.push(i);
      }
      return found.sort((a, b) => left[a] - left[b] || a - b);
    }

    oldest() {
      for (const index of this.open.values()) return this.offered[index];
      return undefined;
    }

    /** Packets that come to the queue within a span after a time. */
    coming(t, span) {
      const { offered } = this;
      const found = [];
      for (let i = first(offered.length, (n) => offered[n] > t); i < offered.length && offered[i] <= t + span; i++) found.push(i);
      return found;
    }

    /** Packets of a list (`departures` or `drops`) that left within a span before a time. */
    gone(list, t, span) {
      const { left } = this;
      const found = [];
      for (let i = first(list.length, (n) => left[list[n]] > t - span); i < list.length && left[list[i]] <= t; i++) found.push(list[i]);
      return found;
    }

    /** The last packet, of a group if one is given, that left for the wire until a time. */
    last(t, group = null) {
      const { departures, left } = this;
      let i = first(departures.length, (n) => left[departures[n]] > t) - 1;
      for (let tries = 0; i >= 0 && tries < 5000; i--, tries++) {
        if (group === null || this.group[departures[i]] === group) return departures[i];
      }
      return null;
    }

    /** When the next packet comes after a time, or null. */
    next(t) {
      const { offered } = this;
      const i = first(offered.length, (n) => offered[n] > t);
      return i < offered.length ? offered[i] : null;
    }

    /** When the next packet leaves after a time, and when the last one left before it. */
    around(t) {
      const { departures, left } = this;
      const i = first(departures.length, (n) => left[departures[n]] > t);
      return [i > 0 ? left[departures[i - 1]] : null, i < departures.length ? left[departures[i]] : null];
    }
  }

  S.Film = Film;
})((globalThis.Sojourn ??= {}));
