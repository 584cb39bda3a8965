//! Prints the JSON schema of plans and their flows, from which `python -m tests.project.plan_types`
//! makes the Python types.

use sojourn_plan::{Plan, PlannedFlow};
use sojourn_units::schemars::schema_for;

fn main() {
    let schema = schema_for!((Plan, Vec<PlannedFlow>));
    println!("{}", serde_json::to_string_pretty(&schema).expect("a schema is JSON"));
}
