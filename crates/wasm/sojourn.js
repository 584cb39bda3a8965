// The engine for pages and Node: a classic script, because pages from file:// cannot import modules.
//
//   const engine = await Engine.load(bytes);
//   const record = engine.run(plan, seed);
//
// Plans, edits and records are plain objects; types.d.ts describes them. An engine has one run open
// at a time. `module` is passed on to further engines, which then start without compiling.

/** @import { Advance, Dimension, Edits, Exports, Plan, Problem, QueueTable, ReadQueue, Record, Setting } from "./types.js" */

/** A plan, an edit or a run that the engine refuses; `problems` are pairs of place and message. */
class EngineError extends Error {
  /** @param {{ message: string, problems: Problem[] }} answer */
  constructor({ message, problems }) {
    super(message);
    this.name = "EngineError";
    this.problems = problems;
  }
}

class Engine {
  /** @type {Exports} */
  #exports;

  /**
   * Returns an engine from the module's bytes, or from another engine's `module`.
   * @param {BufferSource | WebAssembly.Module} source
   */
  static async load(source) {
    const module = source instanceof WebAssembly.Module ? source : await WebAssembly.compile(source);
    return new Engine(module, await WebAssembly.instantiate(module));
  }

  /**
   * @param {WebAssembly.Module} module
   * @param {WebAssembly.Instance} instance
   */
  constructor(module, instance) {
    this.module = module;
    this.#exports = /** @type {Exports} */ (/** @type {unknown} */ (instance.exports));
  }

  /**
   * Returns the record of a run.
   * @param {Plan} plan
   * @param {number} seed
   * @returns {Record}
   */
  run(plan, seed) {
    return this.#call("run", { plan, seed });
  }

  /**
   * Begins a run that continues by `advance`.
   * @param {Plan} plan
   * @param {number} seed
   */
  open(plan, seed) {
    this.#call("open", { plan, seed });
  }

  /**
   * Logs the packets of the links with these numbers from now on, and of no others.
   * @param {number[]} links
   */
  log(links) {
    this.#call("log", links);
  }

  /**
   * Executes all events before a time in ns, and returns the packets that were logged.
   * @param {number} until
   * @returns {Advance}
   */
  advance(until) {
    return this.#call("advance", undefined, BigInt(Math.round(until)));
  }

  /**
   * Ends the open run, and returns its record until now.
   * @returns {Record}
   */
  record() {
    return this.#call("record");
  }

  /** Ends the open run without a record. */
  close() {
    this.#exports.close();
  }

  /**
   * Returns the plan with changes, whose texts are parsed as in scenarios.
   * @param {Plan} plan
   * @param {Edits} edits
   * @returns {Plan}
   */
  edit(plan, edits) {
    return this.#call("edit", { plan, edits });
  }

  /**
   * Returns name, words as pairs, and warnings of a queue's text, on a link of this rate in bit/s.
   * @param {string} text
   * @param {number | null} rate
   * @returns {ReadQueue}
   */
  readQueue(text, rate = null) {
    return this.#call("read_queue", { text, rate });
  }

  /**
   * Returns a queue's text with other words, given as pairs; null removes a word.
   * @param {string} text
   * @param {[word: string, setting: Setting | null][]} words
   * @returns {string}
   */
  rewriteQueue(text, words) {
    return this.#call("rewrite_queue", { text, words });
  }

  /**
   * Returns a text as a number of ns, bit/s, bytes or packets, or as a probability.
   * @param {Dimension} dimension
   * @param {string} text
   * @returns {number}
   */
  readQuantity(dimension, text) {
    return this.#call("read_quantity", { dimension, text });
  }

  /**
   * Returns all queue disciplines with their words.
   * @returns {QueueTable[]}
   */
  queues() {
    return this.#call("queues");
  }

  /**
   * @param {"run" | "open" | "log" | "advance" | "record" | "edit" | "read_queue" | "rewrite_queue" | "read_quantity" | "queues"} name
   * @param {unknown} argument Data for JSON; undefined for a function without input.
   * @param {bigint} until
   * @returns {any} What the function returns as JSON.
   */
  #call(name, argument = undefined, until = 0n) {
    const exports = this.#exports;
    if (argument !== undefined) {
      const bytes = new TextEncoder().encode(JSON.stringify(argument));
      const at = exports.input(bytes.length) >>> 0;
      new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
    }
    let status;
    try {
      status = name === "advance" ? exports.advance(until) : exports[name]();
    } catch (trap) {
      const message = trap instanceof Error ? trap.message : String(trap);
      throw new Error(`the engine stopped: ${this.#output() || message}`, { cause: trap });
    }
    const answer = JSON.parse(this.#output());
    if (status !== 0) throw new EngineError(answer);
    return answer;
  }

  #output() {
    const exports = this.#exports;
    const bytes = new Uint8Array(exports.memory.buffer, exports.output() >>> 0, exports.output_length());
    return new TextDecoder().decode(bytes);
  }
}

if (typeof module !== "undefined") module.exports = { Engine, EngineError };
