// The engine for pages and Node: a classic script, because pages from file:// cannot import modules.
//
//   const engine = await Engine.load(bytes);
//   const record = engine.run(plan, seed);
//
// Plans, edits and records are plain objects; crates/wasm/src/calls.rs and crates/plan/src/edits.rs
// describe them. An engine has one run open at a time. `module` is passed on to further engines,
// which then start without compiling.

/** A plan, an edit or a run that the engine refuses; `problems` are pairs of place and message. */
class EngineError extends Error {
  constructor({ message, problems }) {
    super(message);
    this.name = "EngineError";
    this.problems = problems;
  }
}

class Engine {
  #exports;

  /** An engine from the module's bytes, or from another engine's `module`. */
  static async load(source) {
    const module = source instanceof WebAssembly.Module ? source : await WebAssembly.compile(source);
    return new Engine(module, await WebAssembly.instantiate(module));
  }

  constructor(module, instance) {
    this.module = module;
    this.#exports = instance.exports;
  }

  /** The record of a run. */
  run(plan, seed) {
    return this.#call("run", { plan, seed });
  }

  /** Begins a run that goes on by `advance`. */
  open(plan, seed) {
    this.#call("open", { plan, seed });
  }

  /** Logs the packets of the links with these numbers from now on, and of no others. */
  log(links) {
    this.#call("log", links);
  }

  /** Runs all events before a time in ns; `packets` of the answer are columns of what was logged. */
  advance(until) {
    return this.#call("advance", undefined, BigInt(Math.round(until)));
  }

  /** Ends the open run: its record until now. */
  record() {
    return this.#call("record");
  }

  /** Ends the open run without a record. */
  close() {
    this.#exports.close();
  }

  /** The plan with changes: texts of rates, times and queues, read as in scenarios. */
  edit(plan, edits) {
    return this.#call("edit", { plan, edits });
  }

  /** Name, words as pairs, and warnings of a queue's text, on a link of this rate in bit/s. */
  readQueue(text, rate = null) {
    return this.#call("read_queue", { text, rate });
  }

  /** A queue's text with other words, given as pairs; null removes a word. */
  rewriteQueue(text, words) {
    return this.#call("rewrite_queue", { text, words });
  }

  /** A text as a number of ns, bit/s, bytes or packets; a dimension is time, rate, size, packets or probability. */
  readQuantity(dimension, text) {
    return this.#call("read_quantity", { dimension, text });
  }

  /** All queue disciplines with their words. */
  queues() {
    return this.#call("queues");
  }

  #call(name, argument, ...numbers) {
    const exports = this.#exports;
    if (argument !== undefined) {
      const bytes = new TextEncoder().encode(JSON.stringify(argument));
      const at = exports.input(bytes.length) >>> 0;
      new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
    }
    let status;
    try {
      status = exports[name](...numbers);
    } catch (trap) {
      throw new Error(`the engine stopped: ${this.#output() || trap.message}`, { cause: trap });
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
