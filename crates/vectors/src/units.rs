//! Replay of `cobalt`: direct calls of the three functions of COBALT's algorithm.

use crate::frame::{self, Frame};
use crate::known::{self, Known};
use crate::read::{self, Object, Recorded};
use crate::report::{Outcome, Report};
use sojourn_queue::Aqm;
use sojourn_queue::cobalt::{Constants, State};

const HEADER: &[&str] = &[
    "format",
    "discipline",
    "scenario",
    "description",
    "kernel",
    "time_unit",
    "t0",
    "params",
    "state",
    "draws",
    "init",
];
const ROW: &[&str] = &["full", "empty", "deq", "v", "r", "s"];

/// Replays the calls of a recording.
pub fn play<'a>(
    head: &Object,
    lines: impl Iterator<Item = (usize, &'a str)>,
    report: &mut Report,
) -> Result<(), Outcome> {
    read::only(1, "the header", head, HEADER)?;
    crate::header::clock(head)?;
    let params = read::map(1, "params", read::field(1, head, "params")?)?;
    read::only(1, "params", params, &["interval", "target", "mtu_time", "p_inc", "p_dec"])?;
    // A duration above one day has no use, and could cause an overflow.
    let span = |key| read::number(1, params, key, 86_400_000_000_000);
    let step = |key| read::number(1, params, key, u64::from(u32::MAX)).map(|v| v as u32);
    let constants = Constants {
        interval: span("interval")?,
        target: span("target")?,
        mtu_time: span("mtu_time")?,
        p_inc: step("p_inc")?,
        p_dec: step("p_dec")?,
        linux: crate::header::linux(head, "cobalt")?.unwrap_or(Constants::default().linux),
        ..Constants::default()
    };
    let names = read::names(1, head, "state")?;
    let mut state = State::default();
    let mut known = Known::new();
    let now_is = |state: &State| known::fields(|visit| state.visit(visit));
    let init = read::map(1, "init", read::field(1, head, "init")?)?;
    read::only(1, "init", init, &["s"])?;
    let fields = read::map(1, "init", read::field(1, init, "s")?)?;
    known::begin(1, "state", &names, fields, &now_is(&state), &mut known)?;

    let mut draws = Recorded::default();
    for (line, text) in lines {
        let row = read::object(line, text)?;
        read::only(line, "a row", &row, ROW)?;
        draws.read(line, &row)?;
        let (op, value) = read::operation(line, &row, &["full", "empty", "deq"])?;
        let time = |v| read::unsigned(line, op, v, i64::MAX as u64);
        let verdict = match op {
            "full" => state.queue_full(&constants, time(value)?),
            "empty" => state.queue_empty(&constants, time(value)?),
            _ => {
                let [now, at, ecn, bulk] = read::array(line, op, value)? else {
                    return Err(Outcome::malformed(
                        line,
                        "`deq` must be [now, enqueue time, ecn, bulk flows]",
                    ));
                };
                let mut frame = Frame { ecn: frame::ecn(line, ecn)?, ..Frame::default() };
                let bulk = read::unsigned(line, "bulk flows", bulk, 65_535)? as u32;
                state.should_drop(&constants, time(now)?, time(at)?, &mut frame, bulk, &mut draws)
            }
        };
        draws.finish(line)?;
        let recorded = read::number(line, &row, "v", 1)?;
        if recorded != u64::from(verdict) {
            return Err(Outcome::differs(line, "verdict", recorded, u64::from(verdict)));
        }
        known::compare(line, "state", row.get("s"), &now_is(&state), &mut known)?;
        report.operations += 1;
    }
    if report.operations == 0 {
        return Err(Outcome::malformed(2, "no operations"));
    }
    Ok(())
}
