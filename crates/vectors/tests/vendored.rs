//! `examples/vendor/codel_link.rs`, the file for other programs to copy, decides as Linux in every
//! recording of CoDel, and carries packets as the crate's link.

#![allow(clippy::doc_markdown, reason = "CoDel is not code")]

#[allow(missing_docs, clippy::pedantic, clippy::len_without_is_empty)]
#[path = "../../../examples/vendor/codel_link.rs"]
mod codel_link;
mod common;

use codel_link::{Codel, Event, Fifo, Link, Packet, Settings};
use serde_json::Value as Json;
use sojourn_link::{Datagram, Direction, Params, Path};
use sojourn_queue::{Ecn, Packet as _};

struct Frame {
    id: u64,
    len: u32,
    ecn: Ecn,
}

impl Packet for Frame {
    fn len(&self) -> u32 {
        self.len
    }
    fn mark(&mut self) -> bool {
        self.ecn.mark()
    }
}

/// Replays a scenario. Each row states the packet that left (`v`), the dropped ones (`x`) and the
/// marked ones (`m`).
fn replay(text: &str) -> usize {
    let rows: Vec<Json> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (head, params) = (&rows[0], &rows[0]["params"]);
    let number = |value: &Json| value.as_u64().unwrap() as u32;
    let settings = Settings {
        target: number(&params["target_us"]),
        interval: number(&params["interval_us"]),
        ecn: number(&params["ecn"]) == 1,
        ce_threshold: params["ce_threshold_us"].as_u64().map(|micros| micros as u32),
        mtu: number(&params["mtu"]),
        bounded: head["kernel"].as_str().unwrap().starts_with("7.3"),
    };
    let mut codel = Codel::new(settings);
    let mut fifo = Fifo::new(number(&params["limit"]) as usize);
    let numbers = |row: &Json, key: &str| -> Vec<u64> {
        row[key].as_array().into_iter().flatten().map(|id| id.as_u64().unwrap()).collect()
    };
    for row in &rows[1..rows.len() - 1] {
        let (mut dropped, mut marked) = (Vec::new(), Vec::new());
        if let Some(arrival) = row["e"].as_array() {
            let values: Vec<u64> = arrival.iter().map(|value| value.as_u64().unwrap()).collect();
            let ecn = Ecn::from_bits(values[4] as u8);
            let frame = Frame { id: values[1], len: values[2] as u32, ecn };
            let queued = fifo.push(values[0], frame).is_ok();
            assert_eq!(row["v"], u64::from(queued), "{row}");
            continue;
        }
        let now = row["d"].as_u64().expect("recordings of CoDel have no changes");
        let left = codel.dequeue(now, &mut fifo, &mut |frame: &Frame, event| match event {
            Event::Dropped | Event::Overflow => dropped.push(frame.id),
            Event::Marked | Event::Threshold => marked.push(frame.id),
        });
        assert_eq!(row["v"].as_u64(), left.map(|frame| frame.id), "{row}");
        assert_eq!(numbers(row, "x"), dropped, "{row}");
        assert_eq!(numbers(row, "m"), marked, "{row}");
    }
    rows.len() - 2
}

#[test]
fn the_vendored_codel_agrees_with_every_recording() {
    let scenarios = common::scenarios();
    let operations: usize = scenarios
        .iter()
        .filter(|scenario| scenario.discipline == "codel")
        .inspect(|scenario| println!("{}", scenario.file))
        .map(|scenario| replay(&scenario.text))
        .sum();
    assert_eq!(operations, 11_705 + 4100);
}

impl Packet for Datagram {
    fn len(&self) -> u32 {
        sojourn_queue::Packet::len(self)
    }
    fn mark(&mut self) -> bool {
        self.set_ce()
    }
}

/// Packets in bursts, at rates that divide nothing.
#[test]
fn the_vendored_link_carries_packets_as_the_crate_s() {
    for (queue, codel) in
        [("pfifo limit 30p", None), ("codel limit 30p ecn", Some(Codel::default()))]
    {
        for rate in [7_777_777, 1_000_000_000, 13] {
            let params = Params::parse(&format!("{rate}bit"), "delay 3ms", queue).unwrap();
            let mut path = Path::new(&[params], &[], 1);
            let mut link = Link::new(rate, 3_000_000, 30, codel.clone());
            let step = 8_000_000_000 * 700 / rate;
            let (mut now, mut theirs, mut ours) = (1_u64 << 40, Vec::new(), Vec::new());
            // The path's clock begins 1000 s before the first packet of its user.
            let start = now;
            for number in 0..5000_u32 {
                now += u64::from(number.wrapping_mul(0x9e37_79b9) >> 20) * step / 2048;
                let bytes = number.to_le_bytes().to_vec();
                let headers = 60 + number.wrapping_mul(77_777) % 1400;
                let ecn = Ecn::from_bits(number as u8 & 2);
                let packet = Datagram { bytes, headers, flow: 0, ecn };
                path.send(now - start, Direction::Forward, packet.clone());
                link.send(now, packet, &mut |_, _| {});
                assert_eq!(link.next_wakeup(), path.next_wakeup().map(|at| at + start));
                while let Some(arrival) = path.poll(now - start) {
                    theirs.push((arrival.at, arrival.packet));
                }
                while let Some((at, packet)) = link.poll(now, &mut |_, _| {}) {
                    ours.push((at - start, packet));
                }
            }
            assert!(theirs.len() > 2000 && path.stats(Direction::Forward).drops().packets > 100);
            assert_eq!(theirs, ours, "{queue} at {rate}");
        }
    }
}
