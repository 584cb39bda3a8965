//! Replay of recorded decisions of queue disciplines.
//!
//! [`replay`] reads one scenario in the format `aqm-vectors/1`: JSON lines with a header, one row
//! for each operation, and a row `end`. It applies the operations to the [`sojourn_queue::Queue`]
//! that the simulator uses. It compares everything that a row states: verdicts, drops and marks in
//! order, random draws and their widths, counters, and the backlog. It also compares the complete
//! internal state, including fields that a row does not change.
//!
//! The crate reads no files: a scenario is passed as a text.

#![allow(clippy::doc_markdown, reason = "CoDel and similar names are not code")]

mod classes;
mod dualpi2;
mod expect;
mod fq;
mod frame;
mod header;
mod known;
mod own;
mod play;
mod read;
mod red;
mod report;
mod sfq;
mod tbf;
mod tc;
mod units;

pub use own::Own;
pub use report::{Outcome, Report, Timers};

use read::Json;

/// Replays one scenario. `name` is the scenario's name in the report if the text has none.
///
/// Never panics: an invalid text gives [`Outcome::Malformed`].
pub fn replay(name: &str, text: &str) -> Report {
    replay_any(name, text, None)
}

/// Replays one scenario with an external policy in place of the project's discipline.
pub fn replay_own(name: &str, text: &str, own: &mut dyn Own) -> Report {
    replay_any(name, text, Some(own))
}

fn replay_any(name: &str, text: &str, own: Option<&mut dyn Own>) -> Report {
    let mut report = Report {
        scenario: name.to_owned(),
        discipline: String::new(),
        operations: 0,
        timers: Timers::default(),
        outcome: Outcome::Agrees,
    };
    report.outcome = match run(text, own, &mut report) {
        Ok(()) => Outcome::Agrees,
        Err(outcome) => outcome,
    };
    report
}

fn run(text: &str, own: Option<&mut dyn Own>, report: &mut Report) -> Result<(), Outcome> {
    // Empty lines at the end of the text are ignored.
    let mut lines = text.trim_end().lines().enumerate().map(|(index, line)| (index + 1, line));
    let (_, first) = lines.next().ok_or_else(|| Outcome::malformed(1, "the text is empty"))?;
    let head = read::object(1, first)?;
    if let Some(Json::String(scenario)) = head.get("scenario") {
        report.scenario.clone_from(scenario);
    }
    if let Some(Json::String(discipline)) = head.get("discipline") {
        report.discipline.clone_from(discipline);
    }
    let format = read::text(1, &head, "format")?;
    if format != "aqm-vectors/1" {
        return Err(Outcome::malformed(1, format!("unknown format `{format}`")));
    }
    if let Some(own) = own {
        return own::play(&head, lines, own, report);
    }
    match report.discipline.as_str() {
        "cobalt" => units::play(&head, lines, report),
        "fifo" | "red" | "choke" | "sfb" | "codel" | "fq_codel" | "pie" | "fq_pie"
        | "cobalt_queue" | "cake" | "dualpi2" | "sfq" | "fq" | "tbf" => {
            play::play(&head, lines, report)
        }
        name if classes::NAMES.contains(&name) => play::play(&head, lines, report),
        "" => Err(Outcome::malformed(1, "`discipline` is missing")),
        _ => Err(Outcome::UnknownDiscipline),
    }
}
