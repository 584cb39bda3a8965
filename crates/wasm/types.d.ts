/** Types of the engine's JSON, as far as scripts read it. `tests/play` checks them against real values. */

/** A resolved plan (`crates/plan`); the listed fields are those that scripts read. */
export interface Plan {
  /** Length and warm-up of a run, in ns. */
  duration: number;
  warmup: number;
  links: PlanLink[];
  groups: { name: string; count: number }[];
  observe: { bottleneck: { links: number[] } };
}

export interface PlanLink {
  /** Propagation delay in ns, and rate in bit/s; without a rate the link has a trace. */
  params: { delay: number; rate?: number };
}

/** Changes of a plan (`crates/plan/src/edits.rs`). */
export interface Edits {
  duration?: string;
  links: LinkEdit[];
  paths: { there: number; back: number; rtt: string }[];
  groups: { group: number; count: number }[];
}

export interface LinkEdit {
  link: number;
  rate?: string;
  queue?: string;
}

/** A number of a record; null stands for NaN. */
export type Value = number | string | boolean | null;

/** A column of a table: name, unit and values. */
export type Column = [name: string, unit: string, values: Value[]];

export interface Record {
  /** Sentences on what limited the run apart from the studied queue. */
  causes: string[];
  trace_hash: string;
  events: number;
  complete: boolean;
  /** Simulated time that the run reached, in ns. */
  reached: number;
  tables: { [table: string]: Column[] };
}

export type PacketEvent =
  | "offered"
  | "dropped"
  | "marked"
  | "departed"
  | "abandoned"
  | "lost"
  | "duplicated"
  | "corrupted"
  | "delivered";

/** Logged events of packets, as columns. Times are in ns; `direction` is twice the flow's number, plus 1 for replies. */
export interface Packets {
  at: number[];
  link: number[];
  packet: number[];
  direction: number[];
  length: number[];
  event: PacketEvent[];
}

/** A part of a run. */
export interface Advance {
  now: number;
  complete: boolean;
  events: number;
  packets: Packets;
}

/** The setting of a word: a text, or whether a flag is on. */
export type Setting = string | boolean;

/** A queue's description as read. */
export interface ReadQueue {
  name: string;
  words: [word: string, setting: Setting][];
  warnings: string[];
}

export type Dimension = "time" | "rate" | "size" | "packets" | "probability";

/** Kinds of words with a number in no dimension. */
export type NumberKind = "integer" | "signed" | "real";

/** The declaration of a word. */
export interface Word {
  name: string;
  kind: Dimension | NumberKind | "flag" | "switch" | "choice" | "named" | "list" | "one_of" | "numbers" | "name" | "rest";
  doc: string;
  default: string;
  /** The word that turns a switch off. */
  off?: string;
  /** The possible values. */
  of?: (string | { name: string; doc: string })[];
  min?: number;
  max?: number;
  /** Largest number of elements. */
  most?: number;
}

/** The declaration of a queue discipline. */
export interface QueueTable {
  name: string;
  summary: string;
  source: string;
  words: Word[];
}

/** A place in the plan, and what is wrong there. */
export type Problem = [place: string, message: string];

/** The functions that the WebAssembly module exports. Those that return a number write JSON to the output; 0 is success. */
export interface Exports {
  memory: WebAssembly.Memory;
  input(length: number): number;
  output(): number;
  output_length(): number;
  close(): void;
  run(): number;
  edit(): number;
  read_queue(): number;
  rewrite_queue(): number;
  read_quantity(): number;
  queues(): number;
  open(): number;
  log(): number;
  advance(until: bigint): number;
  record(): number;
}
