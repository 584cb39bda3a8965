//! Replay of a scenario with an external policy. It compares verdicts, drops, marks, draws, the
//! backlog, and those state fields that the policy exposes under a recorded name.

use crate::frame::{Columns, Frame, Lost};
use crate::header;
use crate::known::{Fields, Known};
use crate::play::OPERATIONS;
use crate::read::{self, Json, Object, Recorded};
use crate::report::{Outcome, Report};
use crate::{expect, tc};
use sojourn_queue::external::{self, Draws, External, Fault, Policy};
use sojourn_queue::{Call, Configured, Dequeue, Discipline, View};
use sojourn_units::Nanos;
use sojourn_units::external::Code;
use std::sync::{Arc, Mutex, PoisonError};

type Result<T> = std::result::Result<T, Outcome>;

/// Provider of the external policy for a replay.
pub trait Own {
    /// Returns the policy's parameters for a text of `tc` without the discipline's name. The first
    /// call creates the policy; further calls are changes. `mtu` is the device's MTU in bytes.
    ///
    /// # Errors
    /// If a word of the text is invalid.
    fn params(&mut self, words: &str, mtu: u32) -> std::result::Result<external::Params, String>;

    /// Returns the error of the policy's code since the last call; `None` without an error.
    fn fault(&mut self) -> Option<String>;
}

/// A factory of policies whose random draws are the recorded ones.
struct Recording {
    inner: Arc<dyn external::Factory>,
    draws: Arc<Mutex<Recorded>>,
}

impl external::Factory for Recording {
    fn create(
        &self,
        params: &external::Params,
        now: Nanos,
        _draws: Draws,
    ) -> std::result::Result<Box<dyn Policy>, Fault> {
        self.inner.create(params, now, Draws::given(self.draws.clone()))
    }

    fn on_fault(&self, now: Nanos, fault: &Fault) {
        self.inner.on_fault(now, fault);
    }
}

struct Player<'a> {
    own: &'a mut dyn Own,
    queue: External<Frame>,
    draws: Arc<Mutex<Recorded>>,
    columns: Columns,
    state: Known,
    now: Nanos,
    mtu: u32,
}

/// Replays the rows of a scenario.
pub(crate) fn play<'a>(
    head: &Object,
    lines: impl Iterator<Item = (usize, &'a str)>,
    own: &mut dyn Own,
    report: &mut Report,
) -> Result<()> {
    let mut player = Player::new(head, &report.discipline, own)?;
    let mut last = 1;
    for (line, text) in lines {
        last = line;
        let row = read::object(line, text)?;
        if row.contains_key("end") {
            return Ok(());
        }
        player.row(line, &row)?;
        report.operations += 1;
    }
    Err(Outcome::malformed(last, "the row `end` is missing"))
}

/// Returns the text without the discipline's name.
fn words(text: &str) -> String {
    text.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

impl<'a> Player<'a> {
    fn new(head: &Object, discipline: &str, own: &'a mut dyn Own) -> Result<Self> {
        let t0 = header::clock(head)?;
        let device = header::device(head)?;
        let header::Made { params, .. } = header::make(head, discipline, &device, t0)?;
        let columns = Columns::read(head, &params)?;
        let text = tc::description(read::text(1, head, "tc")?);
        let mtu = device.psched_mtu;
        let mut params =
            own.params(&words(&text), mtu).map_err(|why| Outcome::malformed(1, why))?;
        let draws = Arc::new(Mutex::new(Recorded::default()));
        if let Some(inner) = params.code.get().cloned() {
            params.code = Code::new(Arc::new(Recording { inner, draws: draws.clone() }));
        }
        let mut state = Known::new();
        let init = read::map(1, "init", read::field(1, head, "init")?)?;
        if let Some(fields) = init.get("s") {
            for (name, value) in read::map(1, "init", fields)? {
                state.insert(name.clone(), read::integer(1, name, value)?);
            }
        }
        Ok(Self { own, queue: External::new(params, t0), draws, columns, state, now: t0, mtu })
    }

    fn row(&mut self, line: usize, row: &Object) -> Result<()> {
        let (op, value) = read::operation(line, row, OPERATIONS)?;
        self.draws().read(line, row)?;
        let mut lost = Lost::default();
        let mut verdict = None;
        if op == "e" {
            let (time, frame) = self.columns.frame(line, value)?;
            self.now = time;
            let mut unused = Recorded::default();
            let mut call = Call { now: time, draws: &mut unused, sink: &mut lost };
            self.queue.enqueue(frame, &mut call);
            let queued = u64::from(!lost.dropped.contains(&frame.id));
            verdict = Some(("verdict", Json::from(queued)));
        } else {
            self.now = read::unsigned(line, op, value, i64::MAX as u64)?;
        }
        match op {
            "d" => {
                let mut unused = Recorded::default();
                let mut call = Call { now: self.now, draws: &mut unused, sink: &mut lost };
                let left = match self.queue.dequeue(&mut call) {
                    Dequeue::Packet(frame) => Json::from(frame.id),
                    Dequeue::Empty | Dequeue::NotBefore(_) => Json::Null,
                };
                verdict = Some(("packet delivered", left));
            }
            "u" => self.queue.on_timer(self.now),
            "c" => {
                let text = read::text(line, row, "tc")?;
                let params = self.own.params(&words(text), self.mtu);
                let params = params.map_err(|why| Outcome::malformed(line, why))?;
                self.queue.change(params, self.now, &mut lost);
            }
            _ => {}
        }
        if let Some(fault) = self.own.fault() {
            return Err(Outcome::differs(line, "policy", "a decision", fault));
        }
        if let Some((what, found)) = verdict {
            let recorded = read::field(line, row, "v")?;
            if *recorded != found {
                return Err(Outcome::differs(line, what, recorded, found));
            }
        }
        self.draws().finish(line)?;
        expect::compare_lost(line, row, &lost)?;
        expect::compare_backlog(line, row, self.queue.packets() as u64, self.queue.bytes())?;
        self.compare_state(line, row)
    }

    fn draws(&self) -> std::sync::MutexGuard<'_, Recorded> {
        self.draws.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares the policy's exposed state with the recorded fields of the same names.
    fn compare_state(&mut self, line: usize, row: &Object) -> Result<()> {
        if let Some(changed) = row.get("s") {
            for (name, value) in read::map(line, "s", changed)? {
                self.state.insert(name.clone(), read::integer(line, name, value)?);
            }
        }
        let mut exposed: Vec<(String, i128)> = Vec::new();
        self.queue.policy_state(&mut |name, value| exposed.push((name.to_owned(), value)));
        let exposed: Fields<'_> =
            exposed.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        for (name, found) in exposed {
            match self.state.get(name) {
                Some(recorded) if *recorded != found => {
                    return Err(Outcome::differs(line, format!("state `{name}`"), recorded, found));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
