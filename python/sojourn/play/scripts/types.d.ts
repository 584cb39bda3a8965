/** Types of the catalogue (`catalogue.py`, whose classes describe the fields), and the global variables of a page. */

import type { Engine as EngineClass } from "../../../../crates/wasm/sojourn.js";
import type { Plan } from "../../../../crates/wasm/types.js";

export type { Advance, Column, Dimension, Edits, LinkEdit, NumberKind, PacketEvent, Plan, Problem, QueueTable, ReadQueue, Setting, Value, Word } from "../../../../crates/wasm/types.js";
export type Engine = EngineClass;

export interface Group {
  name: string;
  label: string;
  app: string;
  protocol: string;
  count: number;
}

/** The metric that ranks the queues. */
export interface Decides {
  metric: string;
  label: string;
  unit: string;
  better: string;
}

export interface Bottleneck {
  name: string;
  links: number[];
  rate: number;
  trace: boolean;
}

export interface Keys {
  rate: string[];
  rtt: string[];
  duration: string[];
  queue: string[];
  counts: string[][];
}

/** A scenario. */
export interface Entry {
  title: string;
  /** Why the two queues differ or do not, and what to try; null for scenarios that are not templates. */
  reasons: { why: string; try_: string } | null;
  question: string | null;
  description: string;
  file: string;
  settings: string[];
  template: string | null;
  plan: Plan;
  duration_shortened: string | null;
  bottleneck: Bottleneck;
  paths: [there: number, back: number][];
  netem: [link: number, text: string][];
  affected: { rate: [link: number, queue: string][]; queue: number[] };
  by: Decides;
  queues: string[];
  names: { [description: string]: string };
  queue: string;
  against: string;
  usual: { [discipline: string]: string };
  groups: Group[];
  keys: Keys;
  store: string | null;
}

/** A step of an explanation: a scenario, and the queues that are shown. */
export interface Step {
  title: string;
  text: string;
  entry: Entry;
  queues: string[];
}

/** Name, label, unit and better direction of a metric. */
export type Metric = [name: string, label: string, unit: string, better: string | null];
export type View = "live.link" | "live.flow" | "live.store";
export type Metrics = { [view in View]: Metric[] };

export interface Catalogue {
  version: number;
  first: string;
  docs: string | null;
  quality: [least: number, word: string][];
  metrics: Metrics;
  minute: Step[];
  scenarios: { [name: string]: Entry };
}

declare global {
  const Engine: typeof EngineClass;
  /** The engine's WebAssembly module, as gzip in base64; missing if the page has no engine. */
  var SOJOURN_MODULE: string | undefined;
  var SOJOURN_CATALOGUE: Catalogue | undefined;
}
