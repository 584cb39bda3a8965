//! Recorded packets, and a sink that collects the numbers of dropped and marked packets.

use crate::fq;
use crate::read::{self, Json, Object};
use crate::report::Outcome;
use sojourn_queue::{
    DropReason, Ecn, Headers, MarkReason, Packet, Params, SackBlocks, Sender, Sink, Socket,
    SocketKind, TcpView,
};
use sojourn_units::Nanos;
use std::collections::BTreeMap;

type Result<T> = std::result::Result<T, Outcome>;

/// A recorded packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frame {
    /// Number of the packet in the recording.
    pub id: u64,
    /// Length in bytes.
    pub len: u32,
    /// Memory that the kernel charges for the packet, in bytes.
    pub truesize: u32,
    /// Hash of the flow.
    pub hash: u32,
    /// Numbers of source and destination host.
    pub hosts: (u32, u32),
    /// Minor number of the class that the packet selects; 0 for the discipline itself, `None` for
    /// no selection.
    pub class: Option<u16>,
    /// Priority (`skb->priority`).
    pub priority: u32,
    /// Socket, and earliest departure time in nanoseconds.
    pub sender: Sender,
    /// DSCP.
    pub dscp: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// TCP header; `None` if the recording states none.
    pub tcp: Option<TcpView>,
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

    fn class(&self) -> Option<u16> {
        self.class
    }

    fn priority(&self) -> u32 {
        self.priority
    }

    fn dscp(&self) -> u8 {
        self.dscp
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_dscp(&mut self, dscp: u8) {
        self.dscp = dscp;
    }

    fn set_ce(&mut self) -> bool {
        self.ecn.mark()
    }
}

/// Packets that an operation dropped, packets that it marked, and pacing rates of sockets.
#[derive(Debug, Default)]
pub struct Lost {
    /// Numbers of the dropped packets, in the order of the drops.
    pub dropped: Vec<u64>,
    /// Numbers of the marked packets, in the order of the marks.
    pub marked: Vec<u64>,
    /// Pacing rate of each socket, which is that of its latest packet.
    rates: BTreeMap<u32, Option<u64>>,
}

impl Lost {
    /// Clears the lists of dropped and marked packets.
    pub fn clear(&mut self) {
        self.dropped.clear();
        self.marked.clear();
    }

    /// Stores the pacing rate of an arriving packet's socket.
    pub fn arrives(&mut self, frame: &Frame) {
        if let Some(socket) = frame.sender.socket {
            self.rates.insert(socket.number, socket.rate);
        }
    }
}

impl Sink<Frame> for Lost {
    fn dropped(&mut self, packet: Frame, _reason: DropReason, _queued: bool) {
        self.dropped.push(packet.id);
    }

    fn marked(&mut self, packet: &Frame, _reason: MarkReason) {
        self.marked.push(packet.id);
    }

    fn tcp(&self, packet: &Frame) -> Option<TcpView> {
        packet.tcp
    }

    fn headers(&self, packet: &Frame) -> Headers {
        match &packet.tcp {
            Some(tcp) => Headers { protocol: Headers::TCP, ports: tcp.ports, mark: 0 },
            None => Headers::default(),
        }
    }

    fn sender(&self, packet: &Frame) -> Sender {
        let mut sender = packet.sender;
        if let Some(socket) = &mut sender.socket
            && let Some(rate) = self.rates.get(&socket.number)
        {
            socket.rate = *rate;
        }
        sender
    }
}

/// Parses the recorded ECN field.
pub fn ecn(line: usize, value: &Json) -> Result<Ecn> {
    Ok(Ecn::from_bits(read::unsigned(line, "ecn", value, 3)? as u8))
}

/// Parses the class that a packet selects: its minor number, -1 for the discipline itself, or 0 for
/// no selection.
fn class(line: usize, value: &Json) -> Result<Option<u16>> {
    Ok(match read::integer(line, "class", value)? {
        -1 => Some(0),
        0 => None,
        number => match u16::try_from(number) {
            Ok(minor) => Some(minor),
            Err(_) => {
                return Err(Outcome::malformed(
                    line,
                    format!("`class` must be -1 to 65535, found {number}"),
                ));
            }
        },
    })
}

/// Parses a rate in bytes per second; -1 is no rate.
fn rate(line: usize, value: &Json) -> Result<Option<u64>> {
    if read::integer(line, "rate", value)? == -1 {
        return Ok(None);
    }
    read::unsigned(line, "rate", value, u64::MAX).map(Some)
}

/// Parses a TCP header.
fn tcp(line: usize, value: &Json) -> Result<TcpView> {
    let header = read::map(line, "tcp", value)?;
    let keys = ["sport", "dport", "ack", "flags", "sack", "ts", "payload"];
    read::only(line, "`tcp`", header, &keys)?;
    let port = |key| read::number(line, header, key, u64::from(u16::MAX)).map(|v| v as u16);
    let number = |key| read::number(line, header, key, u64::from(u32::MAX)).map(|v| v as u32);
    let pair = |what: &str, value: &Json| match read::array(line, what, value)? {
        [one, other] => {
            let number = |v| read::unsigned(line, what, v, u64::from(u32::MAX)).map(|v| v as u32);
            Ok((number(one)?, number(other)?))
        }
        _ => Err(Outcome::malformed(line, format!("`{what}` must have two numbers"))),
    };
    let sack = read::array(line, "sack", read::field(line, header, "sack")?)?;
    let sack = sack.iter().map(|block| pair("sack", block)).collect::<Result<SackBlocks>>()?;
    Ok(TcpView {
        hosts: (0, 0),
        ports: (port("sport")?, port("dport")?),
        ack: number("ack")?,
        flags: read::number(line, header, "flags", 255)? as u8,
        payload: number("payload")?,
        timestamps: match read::field(line, header, "ts")? {
            Json::Null => None,
            value => Some(pair("ts", value)?),
        },
        other_options: false,
        sack,
    })
}

const COLUMNS: &[&str] = &[
    "t", "id", "len", "flow", "ecn", "truesize", "hash", "src", "dst", "dscp", "tcp", "class",
    "prio", "sk", "kind", "rate", "skhash", "tstamp",
];

/// The columns of an arrival (`e`).
pub struct Columns {
    names: Vec<String>,
    /// Number of buckets of `fq_codel` and `fq_pie`; `None` for other disciplines.
    buckets: Option<u32>,
    last_id: Option<u64>,
}

impl Columns {
    /// Reads and checks the header's `e_cols`.
    pub fn read(head: &Object, params: &Params) -> Result<Self> {
        let names = read::names(1, head, "e_cols")?;
        if let Some(column) = names.iter().find(|c| !COLUMNS.contains(&c.as_str())) {
            return Err(Outcome::malformed(1, format!("unknown column `{column}`")));
        }
        let needed: &[&str] = match params {
            Params::FqCodel(_) | Params::FqPie(_) | Params::Cake(_) | Params::DualPi2(_) => {
                &["t", "id", "len", "flow", "ecn", "truesize"]
            }
            Params::Fq(_) => {
                &["t", "id", "len", "ecn", "hash", "sk", "kind", "rate", "skhash", "tstamp", "prio"]
            }
            _ => &["t", "id", "len", "flow", "ecn"],
        };
        if let Some(column) = needed.iter().find(|c| !names.iter().any(|have| have == *c)) {
            return Err(Outcome::malformed(1, format!("column `{column}` is missing")));
        }
        let buckets = match params {
            Params::FqCodel(params) => Some(params.flows),
            Params::FqPie(params) => Some(params.flows),
            _ => None,
        };
        Ok(Self { names, buckets, last_id: None })
    }

    /// Parses an arrival. Returns its time in nanoseconds and its packet.
    pub fn frame(&mut self, line: usize, value: &Json) -> Result<(Nanos, Frame)> {
        let cells = read::array(line, "e", value)?;
        if cells.len() != self.names.len() {
            let why = format!("`e` has {} cells, not {}", cells.len(), self.names.len());
            return Err(Outcome::malformed(line, why));
        }
        let mut frame = Frame::default();
        let mut time = 0;
        let mut flow = 0;
        let mut hashed = false;
        let mut charged = false;
        let none = SocketKind::Passive;
        let mut socket = Socket { number: 0, kind: none, hash: 0, rate: None };
        for (column, cell) in self.names.iter().zip(cells) {
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
                "tcp" => frame.tcp = Some(tcp(line, cell)?),
                "class" => frame.class = class(line, cell)?,
                "prio" => frame.priority = number(u64::from(u32::MAX))? as u32,
                "sk" => socket.number = number(u64::from(u32::MAX))? as u32,
                "kind" => socket.kind = fq::kind(line, number(3)?)?,
                "rate" => socket.rate = rate(line, cell)?,
                "skhash" => socket.hash = number(u64::from(u32::MAX))? as u32,
                "tstamp" => {
                    frame.sender.departure =
                        Some(number(i64::MAX as u64)?).filter(|departure| *departure != 0);
                }
                _ => frame.dscp = number(63)? as u8,
            }
        }
        frame.sender.socket = (socket.number != 0).then_some(socket);
        if let Some(tcp) = &mut frame.tcp {
            tcp.hosts = frame.hosts;
        }
        if self.last_id.is_some_and(|last| frame.id <= last) {
            return Err(Outcome::malformed(
                line,
                format!("id {} is not larger than the previous id", frame.id),
            ));
        }
        self.last_id = Some(frame.id);
        if !charged {
            frame.truesize = frame.len;
        }
        if let Some(buckets) = self.buckets {
            // `flow` is the number of the bucket: choose a hash that selects this bucket.
            let flows = u64::from(buckets);
            if flow >= flows {
                let why =
                    format!("`flow` must be below the number of buckets, {flows}, found {flow}");
                return Err(Outcome::malformed(line, why));
            }
            frame.hash = (flow << 32).div_ceil(flows) as u32;
        } else if !hashed {
            frame.hash = flow as u32;
        }
        Ok((time, frame))
    }
}
