//! Captures of the kernel's queues: the packets before and after a queue, in a file that Wireshark
//! can read.

use crate::job::{OUTPUTS, Queue};
use crate::machine::{Outcome, at};
use crate::packets::{BATCH, Taken, headers, take, tap, whole};
use crate::wire::{LARGEST, capture_of};
use nix::sys::socket::{LinkAddr, MultiHeaders};
use rustix::fd::OwnedFd;
use sojourn_plan::Plan;
use sojourn_wire::capture::{Captured, Outside, Side};
use std::fs::File;
use std::io::BufWriter;

/// Size in bytes of the buffer of a file.
const WRITTEN: usize = 1 << 20;
const SIDES: [Side; 2] = [Side::Before, Side::After];

/// A capture of one queue.
pub struct Capture {
    /// Packet sockets at the device before the queue and at the device after it.
    sockets: [OwnedFd; 2],
    /// Wall-clock time of the run's start, in nanoseconds.
    shift: u64,
    headers: MultiHeaders<LinkAddr>,
    buffers: Vec<Vec<u8>>,
    /// Packets that were taken from the sockets and not yet written: time since the run's start,
    /// side of the queue, captured bytes, and complete length in bytes. They are not yet ordered by
    /// time.
    seen: Vec<(u64, Side, Vec<u8>, u32)>,
    file: Outside<BufWriter<File>>,
}

impl Capture {
    /// Returns the capture of a queue; `None` if the plan requests none for it. The caller must be
    /// in the network namespace of the queue's host.
    pub fn new(plan: &Plan, queue: &Queue) -> Outcome<Option<Self>> {
        let (Some(link), Some(arrivals)) = (queue.capture, &queue.arrivals) else {
            return Ok(None);
        };
        let name = &plan
            .links
            .get(link)
            .ok_or("the plan has no link with the number of the capture")?
            .name;
        let snaplen = plan.observe.snaplen;
        let path = capture_of(link);
        let file = BufWriter::with_capacity(WRITTEN, at(path.display(), File::create(&path))?);
        Ok(Some(Self {
            sockets: [tap(arrivals)?, tap(&queue.device)?],
            shift: 0,
            headers: headers(),
            buffers: vec![vec![0; snaplen as usize]; BATCH],
            seen: Vec::new(),
            file: at(OUTPUTS, Outside::new(name, snaplen, file, LARGEST))?,
        }))
    }

    /// Sets the wall-clock time of the run's start. Earlier packets are not written.
    pub fn begin(&mut self, wall: u64) {
        self.shift = wall;
    }

    /// Takes the packets that were observed since the last call, and writes them in order of time.
    pub fn write(&mut self) -> Outcome<()> {
        let mut taken = [Taken::default(); BATCH];
        for (socket, side) in self.sockets.iter().zip(SIDES) {
            loop {
                let count = take(socket, &mut self.headers, &mut self.buffers, &mut taken)?;
                for (one, bytes) in taken[..count].iter().zip(&self.buffers) {
                    let Some(now) = one.at.checked_sub(self.shift) else { continue };
                    let kept = bytes.len().min(one.length as usize);
                    self.seen.push((now, side, bytes[..kept].to_vec(), one.length));
                }
                if count < BATCH {
                    break;
                }
            }
        }
        self.seen.sort_by_key(|&(now, side, ..)| (now, side as usize));
        for (now, side, bytes, length) in self.seen.drain(..) {
            at(OUTPUTS, self.file.see(now, side, &bytes, length))?;
        }
        Ok(())
    }

    /// Completes the file. Fails if a packet is missing because the buffer of a socket was full.
    pub fn finish(self) -> Outcome<Captured> {
        self.sockets.iter().try_for_each(|socket| whole(socket, "a capture"))?;
        at(OUTPUTS, self.file.finish())
    }
}
