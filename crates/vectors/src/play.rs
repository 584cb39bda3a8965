//! Replaying a scenario of a whole queue.

use crate::header;
use crate::read::{self, Json, Object, Recorded};
use crate::report::{Outcome, Report};
use sojourn_queue::{
    Dequeue, Device, Discipline, DropReason, Ecn, MarkReason, Packet, Params, Queue, Return, Sink,
    View,
};
use sojourn_units::Nanos;
use std::collections::BTreeMap;

type Result<T> = std::result::Result<T, Outcome>;

/// A recorded packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frame {
    /// Its number in the recording.
    pub id: u64,
    /// Bytes.
    pub len: u32,
    /// Memory charged for it.
    pub truesize: u32,
    /// The flow's hash.
    pub hash: u32,
    /// Source and destination host.
    pub hosts: (u32, u32),
    /// Code point.
    pub dscp: u8,
    /// ECN field.
    pub ecn: Ecn,
}

impl Packet for Frame {
    fn len(&self) -> u32 {
        self.len
    }

    fn truesize(&self) -> u32 {
        self.truesize
    }

    fn flow_hash(&self) -> u32 {
        self.hash
    }

    fn hosts(&self) -> (u32, u32) {
        self.hosts
    }

    fn dscp(&self) -> u8 {
        self.dscp
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ce(&mut self) -> bool {
        if self.ecn == Ecn::NotEct {
            return false;
        }
        self.ecn = Ecn::Ce;
        true
    }
}

/// What an operation dropped and marked.
#[derive(Debug, Default)]
struct Lost {
    dropped: Vec<u64>,
    marked: Vec<u64>,
}

impl Sink<Frame> for Lost {
    fn dropped(&mut self, packet: Frame, _reason: DropReason, _queued: bool) {
        self.dropped.push(packet.id);
    }

    fn marked(&mut self, packet: &Frame, _reason: MarkReason) {
        self.marked.push(packet.id);
    }
}

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
];
const OPERATIONS: &[&str] = &["e", "d", "u", "c"];
const ROW: &[&str] =
    &["e", "d", "u", "c", "tc", "params", "v", "ret", "x", "m", "r", "w", "wd", "q", "s", "f", "L"];
const COLUMNS: &[&str] =
    &["t", "id", "len", "flow", "ecn", "truesize", "hash", "src", "dst", "dscp"];
/// Counters that `w` leaves out.
const PLAIN: &[&str] = &[
    "qlen",
    "backlog",
    "drops",
    "overlimits",
    "packets",
    "bytes",
    "packets_in",
    "dropped",
    "maxq",
    "tin_dropped",
];

type Fields<'a> = BTreeMap<&'a str, i128>;
type Known = BTreeMap<String, i128>;

/// The one of `known` that `row` has.
pub fn operation<'a, 'k>(
    line: usize,
    row: &'a Object,
    known: &[&'k str],
) -> Result<(&'k str, &'a Json)> {
    let mut found = known.iter().filter_map(|&key| row.get(key).map(|value| (key, value)));
    match (found.next(), found.next()) {
        (Some(operation), None) => Ok(operation),
        (None, _) => {
            Err(Outcome::malformed(line, format!("none of {} in a row", known.join(", "))))
        }
        (Some((a, _)), Some((b, _))) => {
            Err(Outcome::malformed(line, format!("both `{a}` and `{b}` in a row")))
        }
    }
}

/// The ECN field.
pub fn ecn(line: usize, value: &Json) -> Result<Ecn> {
    Ok(match read::unsigned(line, "ecn", value, 3)? {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    })
}

/// Compares the state after creation; `known` is what is known from then on.
pub fn begin(
    line: usize,
    what: &str,
    names: &[String],
    recorded: &Object,
    now: &Fields<'_>,
    known: &mut Known,
) -> Result<()> {
    for name in names {
        if !now.contains_key(name.as_str()) {
            return Err(Outcome::malformed(line, format!("unknown field `{name}` of {what}")));
        }
        let value = recorded.get(name).ok_or_else(|| {
            Outcome::malformed(line, format!("`{name}` of {what} is missing in `init`"))
        })?;
        known.insert(name.clone(), read::integer(line, name, value)?);
    }
    compare(line, what, Some(&Json::Object(recorded.clone())), now, known)
}

/// Brings `known` up to date by the fields that changed, and compares all of it.
pub fn compare(
    line: usize,
    what: &str,
    changed: Option<&Json>,
    now: &Fields<'_>,
    known: &mut Known,
) -> Result<()> {
    if let Some(changed) = changed {
        for (name, value) in read::map(line, what, changed)? {
            let Some(field) = known.get_mut(name) else {
                return Err(Outcome::malformed(line, format!("unknown field `{name}` of {what}")));
            };
            *field = read::integer(line, name, value)?;
        }
    }
    for (name, expected) in known {
        let found = now.get(name.as_str()).copied().unwrap_or_default();
        if *expected != found {
            return Err(Outcome::differs(line, format!("{what} `{name}`"), expected, found));
        }
    }
    Ok(())
}

fn ids(line: usize, row: &Object, key: &str) -> Result<Vec<u64>> {
    read::results(line, row, key)?
        .iter()
        .map(|item| read::unsigned(line, key, item, u64::MAX))
        .collect()
}

struct Player {
    queue: Queue<Frame>,
    params: Params,
    device: Device,
    discipline: String,
    columns: Vec<String>,
    counters: Vec<String>,
    state: Known,
    flows: BTreeMap<usize, Known>,
    lists: Option<Vec<Vec<u64>>>,
    now: Nanos,
    last_id: Option<u64>,
}

/// Replays the rows.
pub fn play<'a>(
    head: &Object,
    lines: impl Iterator<Item = (usize, &'a str)>,
    report: &mut Report,
) -> Result<()> {
    let mut player = Player::new(head, &report.discipline)?;
    let mut draws = Recorded::default();
    let mut ended = false;
    let mut last = 1;
    for (line, text) in lines {
        last = line;
        let row = read::object(line, text)?;
        if ended {
            return Err(Outcome::malformed(line, "a row after `end`"));
        }
        if let Some(end) = row.get("end") {
            read::only(line, "the last row", &row, &["end"])?;
            player.end(line, end)?;
            ended = true;
            continue;
        }
        player.row(line, &row, &mut draws, report)?;
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
        let columns = read::names(1, head, "e_cols")?;
        if let Some(column) = columns.iter().find(|c| !COLUMNS.contains(&c.as_str())) {
            return Err(Outcome::malformed(1, format!("unknown column `{column}`")));
        }
        let needed: &[&str] = match &params {
            Params::FqCodel(_) | Params::Cobalt(_) => {
                &["t", "id", "len", "flow", "ecn", "truesize"]
            }
            _ => &["t", "id", "len", "flow", "ecn"],
        };
        if let Some(column) = needed.iter().find(|c| !columns.iter().any(|have| have == *c)) {
            return Err(Outcome::malformed(1, format!("column `{column}` is missing")));
        }
        let mut player = Self {
            queue,
            params,
            device,
            discipline: discipline.to_owned(),
            columns,
            counters: read::names(1, head, "counters")?,
            state: Known::new(),
            flows: BTreeMap::new(),
            lists: None,
            now: t0,
            last_id: None,
        };
        let ours = player.counts();
        if let Some(name) = player.counters.iter().find(|name| !ours.contains_key(name.as_str())) {
            return Err(Outcome::malformed(1, format!("unknown counter `{name}`")));
        }
        if let Some(name) = ours.keys().find(|name| !player.counters.iter().any(|c| c == *name)) {
            return Err(Outcome::malformed(1, format!("counter `{name}` is missing")));
        }
        player.begin(head)?;
        Ok(player)
    }

    /// Compares the state after creation.
    fn begin(&mut self, head: &Object) -> Result<()> {
        let empty = Json::Object(Object::new());
        let init = read::map(1, "init", read::field(1, head, "init")?)?;
        read::only(1, "init", init, &["s", "f", "L"])?;
        let names = read::names(1, head, "state")?;
        let fields = read::map(1, "init", init.get("s").unwrap_or(&empty))?;
        let mut known = Known::new();
        begin(1, "state", &names, fields, &self.state(), &mut known)?;
        self.state = known;

        let flows = read::map(1, "init", init.get("f").unwrap_or(&empty))?;
        let watched = match head.get("watched") {
            None => 0,
            Some(value) => read::unsigned(1, "watched", value, 65_536)?,
        };
        if watched != flows.len() as u64 {
            return Err(Outcome::differs(1, "flows watched", watched, flows.len()));
        }
        let names = match head.get("flow_state") {
            None => Vec::new(),
            Some(_) => read::names(1, head, "flow_state")?,
        };
        for (key, fields) in flows {
            let flow = bucket(1, key)?;
            let fields = read::map(1, key, fields)?;
            let mut known = Known::new();
            begin(1, &format!("flow {flow}"), &names, fields, &self.flow(flow), &mut known)?;
            self.flows.insert(flow, known);
        }
        if let Some(lists) = init.get("L") {
            self.lists = Some(read_lists(1, lists)?);
            self.compare_lists(1)?;
        } else if matches!(self.params, Params::FqCodel(_)) {
            return Err(Outcome::malformed(1, "`L` is missing in `init`"));
        }
        Ok(())
    }

    fn state(&self) -> Fields<'static> {
        let mut fields = Fields::new();
        self.queue.state(&mut |name, value| {
            fields.insert(name, value);
        });
        fields
    }

    fn flow(&self, flow: usize) -> Fields<'static> {
        let mut fields = Fields::new();
        self.queue.flow_state(flow, &mut |name, value| {
            fields.insert(name, value);
        });
        fields
    }

    fn counts(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        self.queue.counters(&mut |name, value| {
            counts.insert(name, value);
        });
        counts
    }

    fn compare_lists(&self, line: usize) -> Result<()> {
        let Some(expected) = &self.lists else { return Ok(()) };
        let mut found = vec![Vec::new(); expected.len()];
        let mut beyond = false;
        self.queue.lists(&mut |list, flow| match found.get_mut(list) {
            Some(list) => list.push(flow as u64),
            None => beyond = true,
        });
        if beyond || *expected != found {
            let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
            return Err(Outcome::differs(line, "lists", expected, found));
        }
        Ok(())
    }

    fn packet(&mut self, line: usize, value: &Json) -> Result<(Nanos, Frame)> {
        let cells = read::array(line, "e", value)?;
        if cells.len() != self.columns.len() {
            let why = format!("`e` has {} cells, not {}", cells.len(), self.columns.len());
            return Err(Outcome::malformed(line, why));
        }
        let mut frame = Frame::default();
        let mut time = 0;
        let mut flow = 0;
        let mut hashed = false;
        let mut charged = false;
        for (column, cell) in self.columns.iter().zip(cells) {
            let number = |max: u64| read::unsigned(line, column, cell, max);
            match column.as_str() {
                "t" => time = number(i64::MAX as u64)?,
                "id" => frame.id = number(u64::MAX)?,
                "len" => frame.len = number(1 << 24)? as u32,
                "flow" => flow = number(u64::from(u32::MAX))?,
                "ecn" => frame.ecn = ecn(line, cell)?,
                "truesize" => {
                    frame.truesize = number(1 << 24)? as u32;
                    charged = true;
                }
                "hash" => {
                    frame.hash = number(u64::from(u32::MAX))? as u32;
                    hashed = true;
                }
                "src" => frame.hosts.0 = number(u64::from(u32::MAX))? as u32,
                "dst" => frame.hosts.1 = number(u64::from(u32::MAX))? as u32,
                _ => frame.dscp = number(63)? as u8,
            }
        }
        if self.last_id.is_some_and(|last| frame.id <= last) {
            return Err(Outcome::malformed(line, format!("id {} does not grow", frame.id)));
        }
        self.last_id = Some(frame.id);
        if !charged {
            frame.truesize = frame.len;
        }
        if let Params::FqCodel(params) = &self.params {
            // `flow` is the bucket itself: a hash that falls into it.
            let flows = u64::from(params.flows);
            if flow >= flows {
                let why = format!("flow {flow} of {flows} buckets");
                return Err(Outcome::malformed(line, why));
            }
            frame.hash = (flow << 32).div_ceil(flows) as u32;
        } else if !hashed {
            frame.hash = flow as u32;
        }
        Ok((time, frame))
    }

    fn advance(&mut self, line: usize, time: Nanos) -> Result<()> {
        if time < self.now {
            let why = format!("time goes back from {} to {time}", self.now);
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
        report: &mut Report,
    ) -> Result<()> {
        read::only(line, "a row", row, ROW)?;
        let (op, value) = operation(line, row, OPERATIONS)?;
        if op != "c" && (row.contains_key("tc") || row.contains_key("params")) {
            return Err(Outcome::malformed(line, "`tc` and `params` belong to `c`"));
        }
        draws.read(line, row)?;
        let before = self.counts();
        let mut lost = Lost::default();
        let mut wake = None;
        match op {
            "e" => {
                let (time, frame) = self.packet(line, value)?;
                self.advance(line, time)?;
                let given = self.queue.enqueue(time, frame, draws, &mut lost);
                draws.finish(line)?;
                let queued = u64::from(!lost.dropped.contains(&frame.id));
                let recorded = read::number(line, row, "v", 1)?;
                if recorded != queued {
                    return Err(Outcome::differs(line, "verdict", recorded, queued));
                }
                compare_return(line, row, given)?;
            }
            "d" => {
                self.advance(line, read::unsigned(line, "d", value, i64::MAX as u64)?)?;
                let given = match self.queue.dequeue(self.now, draws, &mut lost) {
                    Dequeue::Packet(frame) => Json::from(frame.id),
                    Dequeue::Empty => Json::Null,
                    Dequeue::NotBefore(time) => {
                        wake = Some(time);
                        Json::Null
                    }
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
                self.change(line, row, &mut lost)?;
            }
        }
        draws.finish(line)?;
        if !matches!(op, "e" | "d") && row.get("v").is_some_and(|v| !v.is_null()) {
            return Err(Outcome::malformed(line, format!("`v` in a row of `{op}`")));
        }
        if op != "e" {
            compare_return(line, row, Return::Success)?;
        }
        self.results(line, row, &before, &lost, wake)
    }

    /// What every operation may result in.
    fn results(
        &mut self,
        line: usize,
        row: &Object,
        before: &BTreeMap<&'static str, u64>,
        lost: &Lost,
        wake: Option<Nanos>,
    ) -> Result<()> {
        for (key, what, found) in
            [("x", "packets dropped", &lost.dropped), ("m", "packets marked", &lost.marked)]
        {
            let recorded = ids(line, row, key)?;
            if recorded != *found {
                let (recorded, found) = (format!("{recorded:?}"), format!("{found:?}"));
                return Err(Outcome::differs(line, what, recorded, found));
            }
        }
        let recorded = match row.get("wd") {
            None => None,
            Some(value) => Some(read::unsigned(line, "wd", value, u64::MAX)?),
        };
        if recorded != wake {
            let (recorded, wake) = (format!("{recorded:?}"), format!("{wake:?}"));
            return Err(Outcome::differs(line, "wake-up asked for", recorded, wake));
        }
        self.compare_moved(line, row, before)?;
        let q = read::array(line, "q", read::field(line, row, "q")?)?;
        let [packets, bytes] = q else {
            return Err(Outcome::malformed(line, "`q` is [packets, bytes]"));
        };
        let recorded = (
            read::unsigned(line, "q", packets, u64::MAX)?,
            read::unsigned(line, "q", bytes, u64::MAX)?,
        );
        let found = (self.queue.packets() as u64, self.queue.bytes());
        if recorded != found {
            let (recorded, found) = (format!("{recorded:?}"), format!("{found:?}"));
            return Err(Outcome::differs(line, "backlog", recorded, found));
        }
        let now = self.state();
        compare(line, "state", row.get("s"), &now, &mut self.state)?;
        self.compare_flows(line, row.get("f"))?;
        if let Some(lists) = row.get("L") {
            if self.lists.is_none() {
                return Err(Outcome::malformed(line, "`L` without lists in `init`"));
            }
            self.lists = Some(read_lists(line, lists)?);
        }
        self.compare_lists(line)
    }

    fn compare_moved(
        &self,
        line: usize,
        row: &Object,
        before: &BTreeMap<&'static str, u64>,
    ) -> Result<()> {
        let mut recorded: Vec<&str> = Vec::new();
        for item in read::results(line, row, "w")? {
            match item.as_str() {
                Some(name) if self.counters.iter().any(|c| c == name) => recorded.push(name),
                _ => return Err(Outcome::malformed(line, format!("unknown counter {item}"))),
            }
        }
        let after = self.counts();
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

    fn compare_flows(&mut self, line: usize, changed: Option<&Json>) -> Result<()> {
        if let Some(changed) = changed {
            for key in read::map(line, "f", changed)?.keys() {
                if !self.flows.contains_key(&bucket(line, key)?) {
                    return Err(Outcome::malformed(line, format!("flow `{key}` is not watched")));
                }
            }
        }
        let mut flows = std::mem::take(&mut self.flows);
        for (flow, known) in &mut flows {
            let changed = changed.and_then(|c| c.get(flow.to_string()));
            compare(line, &format!("flow {flow}"), changed, &self.flow(*flow), known)?;
        }
        self.flows = flows;
        Ok(())
    }

    fn timer(&mut self, line: usize, report: &mut Report) -> Result<()> {
        let Some(due) = self.queue.next_timer() else {
            let why = format!("`u`, but this `{}` has no periodic task", self.discipline);
            return Err(Outcome::malformed(line, why));
        };
        match self.now.cmp(&due) {
            std::cmp::Ordering::Less => report.timers.early += 1,
            std::cmp::Ordering::Equal => report.timers.on_time += 1,
            std::cmp::Ordering::Greater => report.timers.late += 1,
        }
        self.queue.on_timer(self.now);
        Ok(())
    }

    fn change(&mut self, line: usize, row: &Object, lost: &mut Lost) -> Result<()> {
        let text = read::text(line, row, "tc")?;
        if text.contains('#') {
            return Err(Outcome::malformed(line, "a change whose options were altered by hand"));
        }
        let name = self.params.name();
        let first = text.split_whitespace().next().unwrap_or("");
        let named = first == name || first == "cake";
        let text = match &self.params {
            _ if named => text.to_owned(),
            Params::Cobalt(_) => format!("cake {text}"),
            _ => format!("{name} {text}"),
        };
        let params = self
            .params
            .change(&text, &self.device)
            .map_err(|error| Outcome::malformed(line, format!("`tc`: {error}")))?;
        if let Some(recorded) = row.get("params") {
            let recorded = read::map(line, "params", recorded)?;
            header::same(line, recorded, &header::numbers(&params))?;
        }
        self.queue
            .change(&params, self.now, lost)
            .map_err(|error| Outcome::malformed(line, error.to_string()))?;
        self.params = params;
        Ok(())
    }

    fn end(&self, line: usize, end: &Json) -> Result<()> {
        let recorded = read::map(line, "end", end)?;
        let found = self.counts();
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

fn compare_return(line: usize, row: &Object, given: Return) -> Result<()> {
    let recorded = match row.get("ret") {
        None => 0,
        Some(value) => read::unsigned(line, "ret", value, 2)?,
    };
    let given = given as u8;
    if recorded != u64::from(given) {
        return Err(Outcome::differs(line, "return code", recorded, given));
    }
    Ok(())
}

fn bucket(line: usize, key: &str) -> Result<usize> {
    key.parse::<usize>()
        .ok()
        .filter(|flow| flow.to_string() == key)
        .ok_or_else(|| Outcome::malformed(line, format!("`{key}` is no bucket")))
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
