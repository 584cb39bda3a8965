//! Conversion of results to JSON.

use serde_json::{Value, json};
use sojourn_link::Event;
use sojourn_measure::{Table, Values};
use sojourn_plan::{Plan, PlanErrors};
use sojourn_sim::{PacketEvent, Record, RunError};

/// Returns a table as a list of columns, each with name, unit and values. NaN becomes null.
fn columns(table: &Table) -> Value {
    let column = |column: &sojourn_measure::Column| {
        let values = match &column.values {
            Values::Real(values) => json!(values),
            Values::Integer(values) => json!(values),
            Values::Text(values) => json!(values),
            Values::Bool(values) => json!(values),
        };
        json!([column.name, column.unit, values])
    };
    table.columns.iter().map(column).collect()
}

/// Returns the record of a run of `plan` as an object, with the sentences on what limited the run.
pub fn record(plan: &Plan, record: &Record) -> Value {
    let causes = sojourn_sim::causes::of_record(plan, record);
    json!({
        "causes": causes.into_iter().map(|cause| cause.text).collect::<Vec<_>>(),
        "trace_hash": format!("{:032x}", record.trace_hash),
        "events": record.events,
        "complete": record.complete,
        "reached": record.reached,
        "tables": {
            "summary": columns(&record.summary),
            "flows": columns(&record.flows),
            "queues": columns(&record.queues),
            "series": columns(&record.series),
            "distributions": columns(&record.distributions),
            "flow_series": columns(&record.flow_series),
        },
    })
}

fn name(event: Event) -> &'static str {
    match event {
        Event::Offered => "offered",
        Event::Dropped { .. } => "dropped",
        Event::Marked(_) => "marked",
        Event::Departed => "departed",
        Event::Abandoned => "abandoned",
        Event::Lost => "lost",
        Event::Duplicated => "duplicated",
        Event::Corrupted(_) => "corrupted",
        Event::Delivered => "delivered",
    }
}

/// Returns packet events as an object of columns.
pub fn packets(events: &[PacketEvent]) -> Value {
    let column = |get: fn(&PacketEvent) -> Value| events.iter().map(get).collect::<Value>();
    json!({
        "at": column(|e| e.at.into()),
        "link": column(|e| e.link.into()),
        "packet": column(|e| e.packet.into()),
        "direction": column(|e| e.direction.into()),
        "length": column(|e| e.length.into()),
        "event": column(|e| name(e.event).into()),
    })
}

/// Returns an error with a message and no list of problems.
pub fn error(message: &str) -> Value {
    json!({ "message": message, "problems": [] })
}

/// Returns the error for an invalid plan or invalid edits: the message, and each problem with its
/// place in the plan.
pub fn plan_errors(errors: &PlanErrors) -> Value {
    let problem = |e: &sojourn_plan::PlanError| json!([e.at.to_string(), e.message]);
    let problems: Value = errors.0.iter().map(problem).collect();
    json!({ "message": errors.to_string(), "problems": problems })
}

/// Returns the error that ended a run.
pub fn run_error(found: &RunError) -> Value {
    match found {
        RunError::Plan(errors) => plan_errors(errors),
        other => error(&other.to_string()),
    }
}
