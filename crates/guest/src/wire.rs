//! The process that runs this project's wire, which emulates the links between a guest's hosts.
//!
//! The process opens a TUN device in the network namespace of each host, prints [`READY`], and
//! reads the time of the run's start. It then forwards packets until the end of its standard input.
//! At the end it writes its measurements to a file that `sojourn.lab.wire.wiring` reads.

use crate::host::{READY, job};
use crate::job::{OUTPUTS, Wire as Wanted};
use crate::machine::{Outcome, at, path_of};
use serde::Serialize;
use sojourn_measure::{Table, Values};
use sojourn_units::{Nanos, SECOND};
use sojourn_wire::capture::{Captured, Order};
use sojourn_wire::control::connect;
use sojourn_wire::device::Options;
use sojourn_wire::{
    Agreement, Attachment, Device, HealthReport, Outcome as Measured, Settings, Wire,
};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the device in each host.
pub const DEVICE: &str = "eth0";
/// Path of the file with the measurements.
pub const OUTCOME: &str = "/run/wire";
/// First bytes of the file with the measurements.
const MAGIC: &[u8] = b"sojourn wire 1\n";
/// Longest time after the run's end in which packets are forwarded, in nanoseconds.
const LINGER: Nanos = 60 * SECOND;
/// Longest time after the run's end in which packets are forwarded for a shell, in nanoseconds.
const FOREVER: Nanos = 1 << 60;
/// Maximum number of bytes of packets in the emulated network; they are a part of the guest's
/// memory.
const ROOM: usize = 96 << 20;
/// Largest size of a capture file in bytes.
pub const LARGEST: u64 = 1 << 30;

/// Forwards packets between the hosts of the job until the end of standard input.
pub fn run() -> Outcome<()> {
    let job = job()?;
    let wanted = job.wire.as_ref().ok_or("the job has no settings of the wire")?;
    let mut attachments = Vec::new();
    for (number, host) in job.hosts.iter().enumerate() {
        let Some(node) = host.node else { continue };
        let path = path_of(number);
        let network = at(&path, File::open(&path))?;
        let device = at(&path, Device::tun(&Options::new(DEVICE), Some(network.as_fd())))?;
        attachments.push(Attachment {
            device: Arc::new(device),
            node,
            addresses: vec![sojourn_plan::address::ipv4(node).into()],
            peer: None,
            passing: false,
        });
    }
    let settings = Settings {
        mtu: wanted.mtu,
        packets: ROOM / wanted.mtu,
        standing: true,
        ..Settings::default()
    };
    let captures = captures(wanted)?;
    let linger = if job.shell.is_some() { FOREVER } else { LINGER };
    let wire = Wire::new(job.plan, job.seed, attachments, &wanted.journals, captures, settings);
    let wire = at("wire", wire)?;
    println!("{READY}");
    at("output", io::stdout().flush())?;
    let mut line = String::new();
    at("input", io::stdin().read_line(&mut line))?;
    let start: Nanos = at("start", line.trim().parse())?;
    let (handle, mut inbox) = at("wire", connect())?;
    std::thread::spawn(move || {
        // Standard input has no further data; the read returns at the end of standard input.
        let _ = io::stdin().read(&mut [0]);
        handle.stop();
    });
    let outcome = at("wire", wire.run(start, linger, &mut inbox))?;
    let file = at(OUTCOME, File::create(OUTCOME))?;
    at(OUTCOME, write(&outcome, file))
}

/// Returns the captures of the links that the job requests, with their files.
fn captures(wanted: &Wanted) -> Outcome<Vec<Order>> {
    let order = |&link: &usize| {
        let path = capture_of(link);
        let file = at(path.display(), File::create(&path))?;
        Ok(Order { link, file, largest: LARGEST })
    };
    wanted.captures.iter().map(order).collect()
}

/// Returns the path of the capture file of a link.
pub fn capture_of(link: usize) -> PathBuf {
    Path::new(OUTPUTS).join(format!("capture-{link}"))
}

/// Head of the file with the measurements, as JSON.
#[derive(Serialize)]
struct Head<'a> {
    events: u64,
    complete: bool,
    reached: Nanos,
    health: HealthReport,
    agreements: &'a [Agreement],
    captures: &'a [Captured],
    tables: Vec<&'static str>,
    /// Columns of all tables in order: table, column, unit, type, and size of the values in bytes.
    columns: Vec<(&'static str, &'a str, &'static str, &'static str, usize)>,
}

fn write(outcome: &Measured, mut to: impl Write) -> io::Result<()> {
    let record = &outcome.record;
    let tables = [
        ("summary", &record.summary),
        ("flows", &record.flows),
        ("queues", &record.queues),
        ("series", &record.series),
        ("distributions", &record.distributions),
        ("flow_series", &record.flow_series),
    ];
    let mut columns = Vec::new();
    let mut data = Vec::new();
    for (name, table) in tables {
        let Table { columns: those } = table;
        for column in those {
            let from = data.len();
            let kind = append(&column.values, &mut data)?;
            columns.push((name, &*column.name, column.unit, kind, data.len() - from));
        }
    }
    let head = Head {
        events: record.events,
        complete: record.complete,
        reached: record.reached,
        health: outcome.health.report(),
        agreements: &outcome.agreements,
        captures: &outcome.captures,
        tables: tables.map(|(name, _)| name).to_vec(),
        columns,
    };
    let head = serde_json::to_vec(&head)?;
    to.write_all(MAGIC)?;
    to.write_all(&(head.len() as u64).to_le_bytes())?;
    to.write_all(&head)?;
    to.write_all(&data)
}

/// Appends the values of a column, and returns the name of their type.
fn append(values: &Values, to: &mut Vec<u8>) -> io::Result<&'static str> {
    match values {
        Values::Real(v) => to.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Values::Integer(v) => to.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Values::Bool(v) => to.extend(v.iter().map(|&x| u8::from(x))),
        Values::Text(v) => serde_json::to_writer(to, v)?,
    }
    Ok(match values {
        Values::Real(_) => "f8",
        Values::Integer(_) => "i8",
        Values::Bool(_) => "?",
        Values::Text(_) => "text",
    })
}
