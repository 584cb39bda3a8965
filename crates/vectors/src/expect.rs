//! Comparison of a complete queue with a recording after each operation.

use crate::frame::{Frame, Lost};
use crate::known::{self, Fields, Known};
use crate::read::{self, Json, Object};
use crate::report::Outcome;
use sojourn_queue::{Discipline, Params, Queue, Return, View, fq};
use sojourn_units::Nanos;
use std::collections::BTreeMap;

type Result<T> = std::result::Result<T, Outcome>;

/// Counters that `w` (changed counters) omits; the row `end` states them.
const PLAIN: &[&str] = &[
    "qlen",
    "backlog",
    "drops",
    "overlimits",
    "packets",
    "bytes",
    "packets_in",
    "packets_in_c",
    "packets_in_l",
    "dropped",
    "maxq",
    "tin_dropped",
    "way_directs",
    "direct_pkts",
    "overlimits_",
];

/// Values of counters by name.
pub type Counts = BTreeMap<&'static str, u64>;

/// Returns the queue's counters at this time.
pub fn counts(queue: &Queue<Frame>) -> Counts {
    let mut counts = Counts::new();
    queue.counters(&mut |name, value| _ = counts.insert(name, value));
    counts
}

fn state(queue: &Queue<Frame>) -> Fields<'static> {
    known::fields(|visit| queue.state(visit))
}

fn flow_state(queue: &Queue<Frame>, flow: usize) -> Fields<'static> {
    known::fields(|visit| queue.flow_state(flow, visit))
}

/// Returns the names of the scheduling lists that recordings of a discipline contain, in their
/// order.
fn lists(discipline: &str, params: &Params) -> Vec<String> {
    match params {
        Params::Drr(_) | Params::Ets(_) => vec!["active".to_owned()],
        Params::FqCodel(_) | Params::FqPie(_) => vec!["new".to_owned(), "old".to_owned()],
        Params::Sfq(_) => vec!["round".to_owned()],
        Params::Fq(_) => (0..fq::BANDS)
            .flat_map(|band| ["new", "old"].map(|list| format!("{list} of band {band}")))
            .collect(),
        Params::Cake(cake) if discipline == "cake" => (0..cake.diffserv.tins())
            .flat_map(|tin| ["new", "old", "decaying"].map(|list| format!("{list} of tin {tin}")))
            .collect(),
        _ => Vec::new(),
    }
}

/// Effects of an operation apart from the queue's state.
pub struct Done<'a> {
    /// Counters before the operation.
    pub before: &'a Counts,
    /// Packets that the operation dropped and marked.
    pub lost: &'a Lost,
    /// Time of the next dequeue that the discipline requested, in nanoseconds; `None` without a
    /// request.
    pub wake: Option<Nanos>,
}

/// The recorded state after the last compared row.
pub struct Expected {
    counters: Vec<String>,
    state: Known,
    flows: BTreeMap<usize, Known>,
    lists: Option<Vec<Vec<u64>>>,
}

impl Expected {
    /// Reads the header and compares the recorded state after creation with the queue's.
    pub fn new(
        head: &Object,
        discipline: &str,
        params: &Params,
        queue: &Queue<Frame>,
    ) -> Result<Self> {
        let names = read::names(1, head, "counters")?;
        let ours = counts(queue);
        if let Some(name) = names.iter().find(|name| !ours.contains_key(name.as_str())) {
            return Err(Outcome::malformed(1, format!("unknown counter `{name}`")));
        }
        if let Some(name) = ours.keys().find(|name| !names.iter().any(|c| c == *name)) {
            return Err(Outcome::malformed(1, format!("counter `{name}` is missing")));
        }
        let (state, flows) = (Known::new(), BTreeMap::new());
        let mut expected = Self { counters: names, state, flows, lists: None };
        expected.begin(head, &lists(discipline, params), queue)?;
        Ok(expected)
    }

    fn begin(&mut self, head: &Object, lists: &[String], queue: &Queue<Frame>) -> Result<()> {
        let empty = Json::Object(Object::new());
        let init = read::map(1, "init", read::field(1, head, "init")?)?;
        read::only(1, "init", init, &["s", "f", "L"])?;
        let names = read::names(1, head, "state")?;
        let fields = read::map(1, "init", init.get("s").unwrap_or(&empty))?;
        let mut known = Known::new();
        known::begin(1, "state", &names, fields, &state(queue), &mut known)?;
        self.state = known;

        let watched = match head.get("watched") {
            None => 0,
            Some(value) => read::unsigned(1, "watched", value, 65_536)? as usize,
        };
        let names = match head.get("flow_state") {
            None => Vec::new(),
            Some(_) => read::names(1, head, "flow_state")?,
        };
        // Without `f`, the first buckets are watched, and all their fields are 0.
        let zeros = names.iter().map(|name| (name.clone(), Json::from(0))).collect();
        let flows = match init.get("f") {
            None => (0..watched).map(|flow| Ok((flow, &zeros))).collect::<Result<Vec<_>>>()?,
            Some(flows) => read::map(1, "init", flows)?
                .iter()
                .map(|(key, fields)| Ok((bucket(1, key)?, read::map(1, key, fields)?)))
                .collect::<Result<_>>()?,
        };
        if watched != flows.len() {
            return Err(Outcome::differs(1, "flows watched", watched, flows.len()));
        }
        for (flow, fields) in flows {
            let mut known = Known::new();
            let now = flow_state(queue, flow);
            known::begin(1, format_args!("flow {flow}"), &names, fields, &now, &mut known)?;
            self.flows.insert(flow, known);
        }
        match init.get("L") {
            None if lists.is_empty() => {}
            None => {
                return Err(Outcome::malformed(
                    1,
                    "`L` is missing in `init`, but the discipline has scheduling lists",
                ));
            }
            Some(recorded) => {
                let recorded = read_lists(1, recorded)?;
                if recorded.len() != lists.len() {
                    return Err(Outcome::malformed(1, format!("`L` is [{}]", lists.join(", "))));
                }
                self.lists = Some(recorded);
                self.compare_lists(1, queue)?;
            }
        }
        Ok(())
    }

    /// Stops watching a class that the row deletes, unless the row states the class's remaining
    /// state.
    pub fn forget(&mut self, row: &Object) {
        let Some(class) = row.get("class").and_then(Json::as_u64) else { return };
        if row.get("f").and_then(|flows| flows.get(class.to_string())).is_none() {
            self.flows.remove(&(class as usize));
        }
    }

    /// Compares the results that a row of any operation can state.
    pub fn row(
        &mut self,
        line: usize,
        row: &Object,
        queue: &Queue<Frame>,
        done: &Done<'_>,
    ) -> Result<()> {
        compare_lost(line, row, done.lost)?;
        let recorded = match row.get("wd") {
            None => None,
            Some(value) => Some(read::unsigned(line, "wd", value, u64::MAX)?),
        };
        if recorded != done.wake {
            let (recorded, wake) = (format!("{recorded:?}"), format!("{:?}", done.wake));
            return Err(Outcome::differs(line, "wake-up asked for", recorded, wake));
        }
        self.compare_moved(line, row, queue, done.before)?;
        compare_backlog(line, row, queue.packets() as u64, queue.bytes())?;
        known::compare(line, "state", row.get("s"), &state(queue), &mut self.state)?;
        self.compare_flows(line, row.get("f"), queue)?;
        if let Some(lists) = row.get("L") {
            let Some(before) = &self.lists else {
                return Err(Outcome::malformed(line, "`L` without lists in `init`"));
            };
            let stated = read_lists(line, lists)?;
            if stated.len() != before.len() {
                let why = format!("`L` has {} lists, not {}", stated.len(), before.len());
                return Err(Outcome::malformed(line, why));
            }
            if stated == *before {
                return Err(Outcome::differs(line, "lists", "a change", "as before"));
            }
            self.lists = Some(stated);
        }
        self.compare_lists(line, queue)
    }

    fn compare_moved(
        &self,
        line: usize,
        row: &Object,
        queue: &Queue<Frame>,
        before: &Counts,
    ) -> Result<()> {
        let mut recorded: Vec<&str> = Vec::new();
        for item in read::results(line, row, "w")? {
            match item.as_str() {
                Some(name) if self.counters.iter().any(|c| c == name) => recorded.push(name),
                _ => return Err(Outcome::malformed(line, format!("unknown counter {item}"))),
            }
        }
        let after = counts(queue);
        let mut moved: Vec<&str> = after
            .iter()
            .filter(|(name, value)| !PLAIN.contains(name) && before.get(*name) != Some(*value))
            .map(|(name, _)| *name)
            .collect();
        recorded.sort_unstable();
        moved.sort_unstable();
        if recorded != moved {
            let (recorded, moved) = (format!("{recorded:?}"), format!("{moved:?}"));
            return Err(Outcome::differs(line, "counters that moved", recorded, moved));
        }
        Ok(())
    }

    fn compare_flows(
        &mut self,
        line: usize,
        changed: Option<&Json>,
        queue: &Queue<Frame>,
    ) -> Result<()> {
        if let Some(changed) = changed {
            for key in read::map(line, "f", changed)?.keys() {
                if !self.flows.contains_key(&bucket(line, key)?) {
                    return Err(Outcome::malformed(line, format!("flow `{key}` is not watched")));
                }
            }
        }
        for (flow, known) in &mut self.flows {
            let changed = changed.and_then(|c| c.get(flow.to_string()));
            let now = flow_state(queue, *flow);
            known::compare(line, format_args!("flow {flow}"), changed, &now, known)?;
        }
        Ok(())
    }

    fn compare_lists(&self, line: usize, queue: &Queue<Frame>) -> Result<()> {
        let Some(expected) = &self.lists else { return Ok(()) };
        let mut found = vec![Vec::new(); expected.len()];
        let mut beyond = false;
        queue.lists(&mut |list, flow| match found.get_mut(list) {
            Some(list) => list.push(flow as u64),
            None => beyond = true,
        });
        if beyond || *expected != found {
            let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
            return Err(Outcome::differs(line, "lists", expected, found));
        }
        Ok(())
    }

    /// Compares the recorded counters of the row `end` with the queue's.
    pub fn end(&self, line: usize, end: &Json, queue: &Queue<Frame>) -> Result<()> {
        let recorded = read::map(line, "end", end)?;
        let found = counts(queue);
        for (name, value) in recorded {
            if !self.counters.contains(name) {
                return Err(Outcome::malformed(line, format!("unknown counter `{name}`")));
            }
            let value = read::unsigned(line, name, value, u64::MAX)?;
            let found = found.get(name.as_str()).copied().unwrap_or_default();
            if value != found {
                return Err(Outcome::differs(line, format!("counter `{name}`"), value, found));
            }
        }
        match self.counters.iter().find(|name| !recorded.contains_key(*name)) {
            Some(name) => Err(Outcome::malformed(line, format!("counter `{name}` is missing"))),
            None => Ok(()),
        }
    }
}

/// Compares an operation's dropped packets and marked packets with the recorded ones.
pub fn compare_lost(line: usize, row: &Object, lost: &Lost) -> Result<()> {
    for (key, what, found) in
        [("x", "packets dropped", &lost.dropped), ("m", "packets marked", &lost.marked)]
    {
        let recorded = ids(line, row, key)?;
        if recorded != *found {
            let (recorded, found) = (format!("{recorded:?}"), format!("{found:?}"));
            return Err(Outcome::differs(line, what, recorded, found));
        }
    }
    Ok(())
}

/// Compares the recorded backlog after an operation with the given one.
pub fn compare_backlog(line: usize, row: &Object, packets: u64, bytes: u64) -> Result<()> {
    let q = read::array(line, "q", read::field(line, row, "q")?)?;
    let [recorded_packets, recorded_bytes] = q else {
        return Err(Outcome::malformed(line, "`q` is [packets, bytes]"));
    };
    let recorded = (
        read::unsigned(line, "q", recorded_packets, u64::MAX)?,
        read::unsigned(line, "q", recorded_bytes, u64::MAX)?,
    );
    if recorded != (packets, bytes) {
        let (recorded, found) = (format!("{recorded:?}"), format!("{:?}", (packets, bytes)));
        return Err(Outcome::differs(line, "backlog", recorded, found));
    }
    Ok(())
}

/// Recorded return code of a packet that the queue dropped but reported to the sending host as
/// sent.
const BYPASS: u64 = 0x2_0000;

/// Compares the recorded return code of an operation with the given one. `queued` states whether
/// the packet was accepted.
pub fn compare_return(line: usize, row: &Object, given: Return, queued: bool) -> Result<()> {
    let recorded = match row.get("ret") {
        None => 0,
        Some(value) => read::unsigned(line, "ret", value, BYPASS)?,
    };
    let given = match given {
        Return::Success if !queued => BYPASS,
        given => (given as u8).into(),
    };
    if recorded != given {
        return Err(Outcome::differs(line, "return code", recorded, given));
    }
    Ok(())
}

fn ids(line: usize, row: &Object, key: &str) -> Result<Vec<u64>> {
    read::results(line, row, key)?
        .iter()
        .map(|item| read::unsigned(line, key, item, u64::MAX))
        .collect()
}

fn bucket(line: usize, key: &str) -> Result<usize> {
    key.parse::<usize>()
        .ok()
        .filter(|flow| flow.to_string() == key)
        .ok_or_else(|| Outcome::malformed(line, format!("`{key}` is not the number of a bucket")))
}

fn read_lists(line: usize, value: &Json) -> Result<Vec<Vec<u64>>> {
    read::array(line, "L", value)?
        .iter()
        .map(|list| {
            read::array(line, "L", list)?
                .iter()
                .map(|flow| read::unsigned(line, "L", flow, u64::from(u32::MAX)))
                .collect()
        })
        .collect()
}
