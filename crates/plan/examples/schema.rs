//! Prints the JSON schema of plans, from which `python -m tests.project.plan_types` makes the
//! Python types.

use sojourn_plan::Plan;
use sojourn_units::schemars::schema_for;

fn main() {
    println!("{}", serde_json::to_string_pretty(&schema_for!(Plan)).expect("a schema is JSON"));
}
