//! Functions of the module. Each takes JSON and returns JSON; errors are JSON too.

use crate::outcome;
use self_cell::self_cell;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sojourn_plan::{Edits, Plan, PlanError};
use sojourn_queue::{Device, Params};
use sojourn_sim::{Control, Stepwise};
use sojourn_units::dimension::{Dimension, Quantity};
use sojourn_units::words::WordError;
use sojourn_units::written::Setting;
use sojourn_units::{Nanos, Rate};

/// A run; `None` after the call that took its record.
type Running<'a> = Option<Stepwise<'a>>;

self_cell!(
    struct Started {
        owner: Plan,
        #[covariant]
        dependent: Running,
    }
);

/// A run that the caller advances step by step.
pub struct Session(Started);

/// Input that starts a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Start {
    plan: Plan,
    seed: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    plan: Plan,
    edits: Edits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueueText {
    text: String,
    #[serde(default)]
    rate: Option<Rate>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rewriting {
    text: String,
    words: Vec<(String, Option<Setting>)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    dimension: String,
    text: String,
}

fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, Value> {
    serde_json::from_slice(text).map_err(|e| outcome::error(&format!("cannot be read: {e}")))
}

fn read_start(text: &[u8]) -> Result<Start, Value> {
    let start: Start = read(text)?;
    if !start.plan.sources.is_empty() {
        return Err(outcome::error(
            "policies written in Python cannot run in this module, since it contains no Python",
        ));
    }
    Ok(start)
}

/// Runs `{"plan", "seed"}` to the end, and returns the record.
///
/// # Errors
/// If the plan is invalid.
pub fn run(text: &[u8]) -> Result<Value, Value> {
    let Start { plan, seed } = read_start(text)?;
    let record = sojourn_sim::run(&plan, seed, &mut |_| Control::Continue);
    record.map(|record| outcome::record(&plan, &record)).map_err(|e| outcome::run_error(&e))
}

/// Returns the description of a queue, which may be a part of a line of `tc`.
fn description(text: &str) -> Result<String, WordError> {
    Ok(sojourn_tc::queue(text, &Device::default())?.text)
}

/// Applies the edits of `{"plan", "edits"}`, and returns the changed plan after validation.
///
/// # Errors
/// If the edits or the resulting plan are invalid.
pub fn edit(text: &[u8]) -> Result<Value, Value> {
    let Change { mut plan, mut edits } = read(text)?;
    for (i, link) in edits.links.iter_mut().enumerate() {
        let Some(queue) = link.queue.as_mut() else { continue };
        let at = sojourn_plan::at!["links", i, "queue"];
        let fault = |e: WordError| PlanError::new(at, e.to_string()).into();
        *queue = description(queue).map_err(|e| outcome::plan_errors(&fault(e)))?;
    }
    plan.edit(&edits).and_then(|()| plan.validate()).map_err(|e| outcome::plan_errors(&e))?;
    Ok(json!(plan))
}

/// Returns name and words of the queue description `text`, and warnings about its use on a link of
/// the given `rate`. The input is `{"text", "rate"}`.
///
/// # Errors
/// If the text does not describe a queue.
pub fn read_queue(text: &[u8]) -> Result<Value, Value> {
    let QueueText { text, rate } = read(text)?;
    let device = Device { rate, ..Device::default() };
    let queue = sojourn_tc::queue(&text, &device);
    let written = queue.and_then(|queue| Ok((Params::written(&queue.text)?, queue.notices)));
    let (written, warnings) = written.map_err(|e| outcome::error(&e.to_string()))?;
    Ok(json!({ "name": written.name, "words": written.words, "warnings": warnings }))
}

/// Returns the queue description `text` with changed words. The input is `{"text", "words"}`; each
/// element of `words` is a pair of a word and its new setting. The setting null removes the word.
///
/// # Errors
/// If the text does not describe a queue, or the queue lacks one of the words.
pub fn rewrite_queue(text: &[u8]) -> Result<Value, Value> {
    let Rewriting { text, words } = read(text)?;
    let written = description(&text).and_then(|text| Params::written(&text));
    let mut written = written.map_err(|e| outcome::error(&e.to_string()))?;
    for (word, setting) in words {
        written.set(&word, setting).map_err(|e| outcome::error(&e))?;
    }
    Ok(Value::from(written.to_string()))
}

/// Returns the quantity `text` as a number in the base unit of its dimension: ns, bit/s, bytes,
/// packets, or 1 for a probability. The input is `{"dimension", "text"}`.
///
/// # Errors
/// If the dimension is unknown, or the text is not a quantity of this dimension.
pub fn read_quantity(text: &[u8]) -> Result<Value, Value> {
    let Written { dimension, text } = read(text)?;
    let Some(dimension) = Dimension::named(&dimension) else {
        return Err(outcome::error(&format!("there is no dimension `{dimension}`")));
    };
    match dimension.read(text.trim()).map_err(|e| outcome::error(&e.message))? {
        Quantity::Whole(value) => Ok(Value::from(value)),
        Quantity::Part(value) => Ok(Value::from(value)),
    }
}

/// Returns all queue disciplines with their words, from the tables of parameters.
pub fn queues() -> Value {
    json!(sojourn_queue::tables())
}

impl Session {
    /// Starts a run of `{"plan", "seed"}` without executing events.
    ///
    /// # Errors
    /// If the plan is invalid.
    pub fn open(text: &[u8]) -> Result<Self, Value> {
        let Start { plan, seed } = read_start(text)?;
        let started = Started::try_new(plan, |plan| Stepwise::new(plan, seed).map(Some));
        started.map(Self).map_err(|e| outcome::run_error(&e))
    }

    /// Selects the links whose packets are logged from now on. The input is the array of their
    /// numbers.
    ///
    /// # Errors
    /// If the plan does not have one of the links, or the run has ended.
    pub fn log(&mut self, text: &[u8]) -> Result<Value, Value> {
        let links: Vec<usize> = read(text)?;
        let known = self.0.borrow_owner().links.len();
        if let Some(link) = links.iter().find(|&&link| link >= known) {
            return Err(outcome::error(&format!("the plan has no link {link}")));
        }
        self.0.with_dependent_mut(|_, run| {
            run.as_mut().ok_or_else(over)?.log(&links);
            Ok(Value::Null)
        })
    }

    /// Executes all events before `until`, in nanoseconds of simulated time, and returns the packet
    /// events logged since the last call.
    ///
    /// # Errors
    /// If the run has ended, or the simulator detects an inconsistency.
    pub fn advance(&mut self, until: Nanos) -> Result<Value, Value> {
        self.0.with_dependent_mut(|_, run| {
            let run = run.as_mut().ok_or_else(over)?;
            run.advance(until).map_err(|e| outcome::run_error(&e))?;
            Ok(json!({
                "now": run.now(),
                "complete": run.is_complete(),
                "events": run.events(),
                "packets": outcome::packets(&run.take_log()),
            }))
        })
    }

    /// Ends the run and returns the record of its measurements so far.
    ///
    /// # Errors
    /// If the run has already ended.
    pub fn record(&mut self) -> Result<Value, Value> {
        self.0.with_dependent_mut(|plan, run| {
            let run = run.take().ok_or_else(over)?;
            Ok(outcome::record(plan, &run.into_record()))
        })
    }
}

fn over() -> Value {
    outcome::error("the run has ended")
}
