//! Two transports over one link of Sojourn, in virtual time.
//!
//! `cargo run --release` writes a table to standard output: stack, queue, flow, second, goodput in
//! Mbit/s, and the link's queueing delay in milliseconds. The last lines, on standard error, state
//! how many times faster than real time the run was.

mod quic;
mod setup;
mod tcp;

use quinn_proto::congestion::{BbrConfig, CubicConfig};
use setup::{Host, quic_pair, tcp_pair};
use smoltcp::socket::tcp::CongestionControl;
use sojourn_link::{Datagram, Direction, Params, Path};
use std::sync::Arc;

const SECOND: u64 = 1_000_000_000;
const RATE: u64 = 10_000_000;

/// Sender and receiver of a flow, each with the time at which it wants to act.
type Flow = [(Box<dyn Host>, u64); 2];

fn flow(pair: [impl Host + 'static; 2]) -> Flow {
    pair.map(|host| (Box::new(host) as Box<dyn Host>, 0))
}

/// Runs the flows over a path, and prints a row for each flow and second.
fn run(stack: &str, queue: &str, names: &[&str], mut flows: Vec<Flow>, seconds: u64) {
    let down = Params::parse("10mbit", "delay 20ms", queue).unwrap();
    let up = Params::parse("10mbit", "delay 20ms", "pfifo limit 1000p").unwrap();
    let mut path: Path<Datagram> = Path::new(&[down], &[up], 1);
    let (mut now, mut sample, mut before) = (0, SECOND, vec![0; flows.len()]);
    while now < seconds * SECOND {
        while let Some(arrival) = path.poll(now) {
            let flow = &mut flows[arrival.packet.flow as usize];
            let (host, wakes) = &mut flow[1 - arrival.direction as usize];
            host.receive(now, arrival.packet);
            *wakes = now;
        }
        let hosts = flows.iter_mut().flatten();
        for (host, wakes) in hosts.filter(|host| host.1 <= now) {
            *wakes = host.act(now, &mut path).unwrap_or(u64::MAX).max(now + 1);
        }
        if now == sample {
            let backlog = path.links(Direction::Forward)[0].backlog().bytes;
            let delay = (backlog * 8 * 1000) as f64 / RATE as f64;
            for ((name, flow), before) in names.iter().zip(&flows).zip(&mut before) {
                let received = flow[1].0.received();
                let goodput = (received - *before) as f64 * 8.0 / 1e6;
                *before = received;
                println!("{stack},{queue},{name},{},{goodput:.3},{delay:.1}", now / SECOND);
            }
            sample += SECOND;
        }
        let wakes = flows.iter().flatten().map(|host| host.1);
        now = wakes.chain(path.next_wakeup()).chain([sample]).min().unwrap().max(now);
    }
    let stats = path.stats(Direction::Forward);
    eprintln!(
        "{stack} behind {queue}: {} packets sent, {} marked, {} dropped",
        stats.offered.packets, stats.marked.packets, stats.drops().packets
    );
}

fn main() {
    let seconds = std::env::args().nth(1).map_or(60, |text| text.parse().expect("seconds"));
    println!("stack,queue,flow,second,goodput,delay");
    for queue in ["pfifo limit 100p", "fq_codel ecn", "dualpi2"] {
        for stack in ["quinn", "smoltcp"] {
            let start = std::time::Instant::now();
            if stack == "quinn" {
                let flows = vec![
                    flow(quic_pair(0, Arc::new(CubicConfig::default()))),
                    flow(quic_pair(1, Arc::new(BbrConfig::default()))),
                ];
                run(stack, queue, &["cubic", "bbr"], flows, seconds);
            } else {
                let flows = vec![
                    flow(tcp_pair(0, CongestionControl::Cubic)),
                    flow(tcp_pair(1, CongestionControl::Reno)),
                ];
                run(stack, queue, &["cubic", "reno"], flows, seconds);
            }
            let faster = seconds as f64 / start.elapsed().as_secs_f64();
            eprintln!("{stack}: {faster:.0} times real time");
        }
    }
}
