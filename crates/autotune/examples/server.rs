//! A server that counts datagrams on port 5140 and adapts its receive buffer. Ctrl-C ends it.

use sojourn_autotune::buffer::Params;
use sojourn_autotune::own::Adaptive;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

const LOOK: u64 = 10_000_000; // time between observations of the socket, in nanoseconds

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let socket = UdpSocket::bind("127.0.0.1:5140")?;
    let policy = Params::parse("elastic ceiling 16mb")?;
    let buffer = Adaptive::start(&socket, &policy, LOOK)?;

    let mut datagram = vec![0; 65_536];
    let (mut count, mut reported) = (0, Instant::now());
    loop {
        socket.recv(&mut datagram)?;
        count += 1;
        if reported.elapsed() > Duration::from_secs(1) {
            reported = Instant::now();
            let now = buffer.stats();
            println!("{count} received, {} lost, buffer of {} bytes", now.drops, now.size);
        }
    }
}
