//! The calls of the module: JSON input, JSON output, errors as JSON.

use crate::outcome;
use self_cell::self_cell;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sojourn_plan::{Edits, Plan};
use sojourn_queue::{Device, Params};
use sojourn_sim::{Control, Stepwise};
use sojourn_units::dimension::{Dimension, Quantity};
use sojourn_units::written::Setting;
use sojourn_units::{Nanos, Rate};

/// A run; `None` after its record has been taken.
type Running<'a> = Option<Stepwise<'a>>;

self_cell!(
    struct Started {
        owner: Plan,
        #[covariant]
        dependent: Running,
    }
);

/// A run that the caller advances.
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
        return Err(outcome::error("a policy of your own needs Python, which this module has not"));
    }
    Ok(start)
}

/// Runs `{"plan", "seed"}` to the end, and returns the record.
///
/// # Errors
/// A plan that is not valid.
pub fn run(text: &[u8]) -> Result<Value, Value> {
    let Start { plan, seed } = read_start(text)?;
    let record = sojourn_sim::run(&plan, seed, &mut |_| Control::Continue);
    record.map(|record| outcome::record(&record)).map_err(|e| outcome::run_error(&e))
}

/// Applies the edits of `{"plan", "edits"}`, and returns the changed plan after validation.
///
/// # Errors
/// Edits that are not valid, or an invalid resulting plan.
pub fn edit(text: &[u8]) -> Result<Value, Value> {
    let Change { mut plan, edits } = read(text)?;
    plan.edit(&edits).and_then(|()| plan.validate()).map_err(|e| outcome::plan_errors(&e))?;
    Ok(json!(plan))
}

/// Returns the name and the words of the queue `{"text", "rate"}`, and warnings about its use on a
/// link of this rate.
///
/// # Errors
/// A text that is not a valid queue.
pub fn read_queue(text: &[u8]) -> Result<Value, Value> {
    let QueueText { text, rate } = read(text)?;
    let device = Device { rate, ..Device::default() };
    let written = Params::parse(&text, &device).and_then(|_| Params::written(&text));
    let written = written.map_err(|e| outcome::error(&e.to_string()))?;
    let warnings = Params::warnings(&text, &device);
    Ok(json!({ "name": written.name, "words": written.words, "warnings": warnings }))
}

/// Returns the text of the queue `{"text", "words"}` with changed words. Each element of `words` is
/// a pair of a word and its new setting; null removes the word.
///
/// # Errors
/// A text that is not a valid queue, or a word that the queue does not have.
pub fn rewrite_queue(text: &[u8]) -> Result<Value, Value> {
    let Rewriting { text, words } = read(text)?;
    let mut written = Params::written(&text).map_err(|e| outcome::error(&e.to_string()))?;
    for (word, setting) in words {
        written.set(&word, setting).map_err(|e| outcome::error(&e))?;
    }
    Ok(Value::from(written.to_string()))
}

/// Returns the quantity `{"dimension", "text"}` as a number in its base unit: ns, bit/s, bytes,
/// packets.
///
/// # Errors
/// A text that is no such quantity.
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

/// Returns the disciplines with their words, from the tables of parameters.
pub fn queues() -> Value {
    json!(sojourn_queue::tables())
}

impl Session {
    /// Starts a session for `{"plan", "seed"}`.
    ///
    /// # Errors
    /// A plan that is not valid.
    pub fn open(text: &[u8]) -> Result<Self, Value> {
        let Start { plan, seed } = read_start(text)?;
        let started = Started::try_new(plan, |plan| Stepwise::new(plan, seed).map(Some));
        started.map(Self).map_err(|e| outcome::run_error(&e))
    }

    /// Logs the packets of only the links with the numbers `[...]` from now on.
    ///
    /// # Errors
    /// A link that the plan does not have, or a run that has ended.
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

    /// Runs all events before `until`, in nanoseconds, and returns the packets logged in this time.
    ///
    /// # Errors
    /// An inconsistency that the simulator detects.
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

    /// Ends the run, and returns the record of the measurements so far.
    ///
    /// # Errors
    /// A run that has ended.
    pub fn record(&mut self) -> Result<Value, Value> {
        let run = self.0.with_dependent_mut(|_, run| run.take()).ok_or_else(over)?;
        Ok(outcome::record(&run.into_record()))
    }
}

fn over() -> Value {
    outcome::error("the run has ended")
}
