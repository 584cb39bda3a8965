//! Replay of a scenario of a complete queue.

use crate::expect::{self, Done, Expected, compare_return};
use crate::frame::{Columns, Frame, Lost};
use crate::header;
use crate::read::{self, Json, Object, Recorded};
use crate::report::{Outcome, Report};
use crate::{classes, tbf, tc};
use sojourn_queue::{Call, Dequeue, Device, Discipline, Linux, Params, Queue, Return};
use sojourn_units::{Nanos, jiffies};

type Result<T> = std::result::Result<T, Outcome>;

const HEADER: &[&str] = &[
    "format",
    "discipline",
    "scenario",
    "description",
    "kernel",
    "time_unit",
    "t0",
    "tc",
    "params",
    "psched_mtu",
    "hz",
    "e_cols",
    "state",
    "flow_state",
    "watched",
    "counters",
    "draws",
    "init",
    "classes",
    "tc_classes",
];
/// Keys of the operations, of which each row has one: enqueue, dequeue, timer, change.
pub(crate) const OPERATIONS: &[&str] = &["e", "d", "u", "c"];
const ROW: &[&str] = &[
    "e", "d", "u", "c", "tc", "params", "p", "v", "ret", "x", "m", "r", "h", "w", "wd", "q", "s",
    "f", "L", "class", "gc",
];

/// Keys that only a row of the operation `c` may have.
const CHANGE: &[&str] = &["tc", "params", "p", "class"];

struct Player {
    queue: Queue<Frame>,
    params: Params,
    device: Device,
    discipline: String,
    columns: Columns,
    expected: Expected,
    now: Nanos,
    /// Whether each change states the resulting parameters. Recordings of older versions of Linux
    /// state only the command.
    states_changes: bool,
    /// Time of the last update by the periodic task, in nanoseconds. `None` before the first, which
    /// in a recording follows the queue's installation, and in a run the start.
    armed: Option<Nanos>,
}

/// Replays the rows of a scenario.
pub fn play<'a>(
    head: &Object,
    lines: impl Iterator<Item = (usize, &'a str)>,
    report: &mut Report,
) -> Result<()> {
    let mut player = Player::new(head, &report.discipline)?;
    let mut draws = Recorded::default();
    let mut lost = Lost::default();
    let mut ended = false;
    let mut last = 1;
    for (line, text) in lines {
        last = line;
        let row = read::object(line, text)?;
        if ended {
            return Err(Outcome::malformed(line, "the row `end` must be the last one"));
        }
        if let Some(end) = row.get("end") {
            read::only(line, "the last row", &row, &["end"])?;
            player.expected.end(line, end, &player.queue)?;
            ended = true;
            continue;
        }
        lost.clear();
        player.row(line, &row, &mut draws, &mut lost, report)?;
        report.operations += 1;
    }
    if ended { Ok(()) } else { Err(Outcome::malformed(last, "the row `end` is missing")) }
}

impl Player {
    fn new(head: &Object, discipline: &str) -> Result<Self> {
        read::only(1, "the header", head, HEADER)?;
        let t0 = header::clock(head)?;
        let device = header::device(head)?;
        let header::Made { params, queue } = header::make(head, discipline, &device, t0)?;
        let columns = Columns::read(head, &params)?;
        let expected = Expected::new(head, discipline, &params, &queue)?;
        Ok(Self {
            queue,
            params,
            device,
            discipline: discipline.to_owned(),
            columns,
            expected,
            now: t0,
            states_changes: header::linux(head, discipline)? >= Some(Linux::V7_3),
            armed: None,
        })
    }

    fn advance(&mut self, line: usize, time: Nanos) -> Result<()> {
        if time < self.now {
            let why = format!("the time must not go back; it goes from {} to {time}", self.now);
            return Err(Outcome::malformed(line, why));
        }
        self.now = time;
        Ok(())
    }

    fn row(
        &mut self,
        line: usize,
        row: &Object,
        draws: &mut Recorded,
        lost: &mut Lost,
        report: &mut Report,
    ) -> Result<()> {
        read::only(line, "a row", row, ROW)?;
        let (op, value) = read::operation(line, row, OPERATIONS)?;
        if op != "c" && CHANGE.iter().any(|key| row.contains_key(*key)) {
            return Err(Outcome::malformed(
                line,
                "`tc`, `params`, `p` and `class` are allowed only in rows of `c`",
            ));
        }
        draws.read(line, row)?;
        let before = expect::counts(&self.queue);
        match op {
            "e" => {
                let (time, frame) = self.columns.frame(line, value)?;
                self.advance(line, time)?;
                lost.arrives(&frame);
                let given = self.queue.enqueue(frame, &mut Call { now: time, draws, sink: lost });
                draws.finish(line)?;
                let queued = u64::from(!lost.dropped.contains(&frame.id));
                let recorded = read::number(line, row, "v", 1)?;
                if recorded != queued {
                    return Err(Outcome::differs(line, "verdict", recorded, queued));
                }
                compare_return(line, row, given, queued == 1)?;
            }
            "d" => {
                self.advance(line, read::unsigned(line, "d", value, i64::MAX as u64)?)?;
                let given = match self.queue.dequeue(&mut Call { now: self.now, draws, sink: lost })
                {
                    Dequeue::Packet(frame) => Json::from(frame.id),
                    Dequeue::Empty | Dequeue::NotBefore(_) => Json::Null,
                };
                draws.finish(line)?;
                let recorded = read::field(line, row, "v")?;
                if *recorded != given {
                    return Err(Outcome::differs(line, "packet delivered", recorded, given));
                }
            }
            "u" => {
                self.advance(line, read::unsigned(line, "u", value, i64::MAX as u64)?)?;
                self.timer(line, report)?;
            }
            _ => {
                self.advance(line, read::unsigned(line, "c", value, i64::MAX as u64)?)?;
                self.change(line, row, lost)?;
            }
        }
        draws.finish(line)?;
        if !matches!(op, "e" | "d") && row.get("v").is_some_and(|v| !v.is_null()) {
            return Err(Outcome::malformed(line, format!("a row of `{op}` must not have `v`")));
        }
        if op != "e" {
            compare_return(line, row, Return::Success, true)?;
        }
        let wake = if matches!(op, "e" | "d") { self.queue.wake_up() } else { None };
        let done = Done { before: &before, lost, wake };
        self.expected.row(line, row, &self.queue, &done)
    }

    fn timer(&mut self, line: usize, report: &mut Report) -> Result<()> {
        let Some(due) = self.queue.next_timer() else {
            let why = format!(
                "a row of `u` is not allowed, since this `{}` has no periodic task",
                self.discipline
            );
            return Err(Outcome::malformed(line, why));
        };
        if let Some(armed) = self.armed {
            // The recording tool fires timers at the requested tick. The kernel's timer wheel fires
            // them later.
            let tick = jiffies::at(self.now, self.device.hz);
            let span = tick.saturating_sub(jiffies::at(armed, self.device.hz));
            let fires = jiffies::start(jiffies::fires(tick, span), self.device.hz);
            let is_exact = self.now == due; // a high-resolution timer fires at its due time
            match if is_exact { std::cmp::Ordering::Equal } else { fires.cmp(&due) } {
                std::cmp::Ordering::Less => report.timers.early += 1,
                std::cmp::Ordering::Equal => report.timers.on_time += 1,
                std::cmp::Ordering::Greater => report.timers.late += 1,
            }
        }
        self.queue.on_timer(self.now);
        self.armed = Some(self.now);
        Ok(())
    }

    fn change(&mut self, line: usize, row: &Object, lost: &mut Lost) -> Result<()> {
        let given = read::text(line, row, "tc")?;
        let has_classes = classes::NAMES.contains(&self.params.name());
        let text = if has_classes {
            classes::change(self.params.name(), given)
        } else {
            tc::change(given, self.params.name())
        };
        let params = self
            .params
            .change(&text, &self.device)
            .map_err(|error| Outcome::malformed(line, format!("`tc`: {error}")))?;
        let numbers = match (&mut self.queue, &params) {
            (Queue::Tbf(queue), Params::Tbf(params)) if given.contains('#') => {
                tbf::change_by_times(queue, params, self.now, lost)
            }
            (queue, params) => {
                queue
                    .change(params, self.now, lost)
                    .map_err(|error| Outcome::malformed(line, error.to_string()))?;
                header::numbers(params)
            }
        };
        if row.contains_key("class") {
            classes::compare_class(line, row, &params)?;
            if row["p"].is_null() {
                self.expected.forget(row);
            }
        } else {
            let numbers = if has_classes { classes::without_leaves(&numbers) } else { numbers };
            let key = if row.contains_key("params") { "params" } else { "p" };
            if self.states_changes || row.contains_key(key) {
                let recorded = read::map(line, key, read::field(line, row, key)?)?;
                header::same(line, recorded, &numbers)?;
            }
        }
        self.params = params;
        Ok(())
    }
}
