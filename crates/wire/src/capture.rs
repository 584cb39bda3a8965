//! Captures of real packets at both sides of a link's queue: one pcapng file for each link.
//!
//! Format: draft-ietf-opsawg-pcapng. A file has three interfaces: `LINK before queue`, `LINK after
//! queue`, and `LINK dropped`. Packets of the third one were dropped by the queue or lost on the
//! line; each has the reason as a comment. Timestamps are the theoretical times of the link's
//! events, in nanoseconds of the calendar clock, which is read once at the run's start; in virtual
//! time, in nanoseconds since the start. Packets have the bytes that a wire would carry: with the
//! queue's ECN marks and complete checksums.
//!
//! A separate thread writes the files. The loop that carries packets passes whole blocks to this
//! thread through a ring buffer of fixed size. A packet that does not fit into the ring buffer is
//! not captured, but counted as missed.

use crate::clock::monotonic;
use crate::headers::{Framing, Headers};
use crate::packet_meta::PacketMeta;
use rtrb::{Consumer, Producer, RingBuffer};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use sojourn_capture::pcapng::{Block, ETHERNET, RAW};
use sojourn_network::{Body, Packet};
use sojourn_plan::{Plan, PlanError, at};
use sojourn_queue::DropReason;
use sojourn_units::{EPOCH, Nanos, SECOND};
use std::fs::File;
use std::io::{self, Write};
use std::thread::JoinHandle;
use std::time::Duration;

/// A request for a capture of one link.
#[derive(Debug)]
pub struct Order {
    /// Index of the link in the plan.
    pub link: usize,
    /// File that the capture is written to.
    pub file: File,
    /// Maximum size of the packets' blocks in the file, in bytes. Packets beyond it are not
    /// captured.
    pub largest: u64,
}

/// The results of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Captured {
    /// The link's name.
    pub link: String,
    /// Packets written, for each [`Side`]: before the queue, after the queue, and dropped or lost.
    pub packets: [u64; 3],
    /// Packets not captured, for each [`Side`], because the ring buffer or the file was full.
    pub missed: [u64; 3],
    /// Error of writing the file; `None` if it was written without an error.
    pub error: Option<String>,
}

impl Captured {
    /// Returns whether the file contains all packets of the link.
    pub fn is_whole(&self) -> bool {
        self.error.is_none() && self.missed == [0; 3]
    }
}

/// Point at which a packet is captured. The value is the number of the interface in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The packet arrives at the queue.
    Before = 0,
    /// The packet's transmission begins.
    After = 1,
    /// The packet was dropped by the queue or lost on the line.
    Dropped = 2,
}

const SIDES: [&str; 3] = ["before queue", "after queue", "dropped"];

/// Name of this program in files.
const PROGRAM: &str = concat!("sojourn ", env!("CARGO_PKG_VERSION"));

/// Size of the ring buffer between the loop and the writing thread, in bytes.
const RING: usize = 16 << 20;
/// Maximum number of bytes in one write, so that space in the ring buffer is freed soon.
const PORTION: usize = 1 << 20;
/// How long the writing thread sleeps if all ring buffers are empty.
const NAP: Duration = Duration::from_millis(20);

/// The capture of one link.
#[derive(Debug)]
struct Capture {
    name: String,
    framing: Framing,
    ring: Producer<u8>,
    /// Bytes of packet blocks that may still be written to the file.
    room: u64,
    packets: [u64; 3],
    missed: [u64; 3],
}

/// All captures of a wire.
#[derive(Debug)]
pub struct Captures {
    /// The capture of each link by its index; `None` for links without a capture.
    links: Vec<Option<Box<Capture>>>,
    snaplen: usize,
    /// Calendar time at the clock's start, [`EPOCH`], in nanoseconds since 1970.
    epoch: Nanos,
    block: Block,
    /// Buffer for the bytes of one packet as a wire would carry them.
    frame: Vec<u8>,
    outlets: Vec<Outlet>,
    writer: Option<JoinHandle<Vec<Written>>>,
}

/// Index of a link, the reading end of its ring buffer, and its file.
type Outlet = (usize, Consumer<u8>, File);

/// Index of a link, and the result of writing its file.
type Written = (usize, io::Result<()>);

impl Captures {
    /// Returns the captures that `orders` requests; `names` has the names of all links. `framing`
    /// gives the first header of every frame. At most `snaplen` bytes of each packet are captured.
    /// Nothing is written before [`Captures::start`].
    pub fn new(names: &[&str], framing: Framing, snaplen: u32, orders: Vec<Order>) -> Self {
        let mut links: Vec<_> = names.iter().map(|_| None).collect();
        let mut outlets = Vec::new();
        for order in orders {
            let (ring, outlet) = RingBuffer::new(RING);
            let name = names[order.link].to_owned();
            let capture = Capture {
                name,
                framing,
                ring,
                room: order.largest,
                packets: [0; 3],
                missed: [0; 3],
            };
            links[order.link] = Some(Box::new(capture));
            outlets.push((order.link, outlet, order.file));
        }
        let (block, frame) = if outlets.is_empty() {
            (Block::default(), Vec::new())
        } else {
            (Block::with_capacity(1 << 17), Vec::with_capacity(1 << 16))
        };
        let snaplen = snaplen as usize;
        Self { links, snaplen, epoch: 0, block, frame, outlets, writer: None }
    }

    /// Returns the requested captures of a plan's links. All frames must have the same `framing`.
    ///
    /// # Errors
    /// If the plan has no link with a requested index, or if a link is requested twice.
    pub fn of_plan(plan: &Plan, framing: Framing, orders: Vec<Order>) -> Result<Self, PlanError> {
        let fail = |message| PlanError::new(at!["captures"], message);
        let mut links: Vec<_> = orders.iter().map(|order| order.link).collect();
        links.sort_unstable();
        if let Some(&link) = links.last().filter(|&&link| link >= plan.links.len()) {
            return Err(fail(format!("there is no link {link}")));
        }
        if links.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(fail("a link may be captured only once".to_owned()));
        }
        let names: Vec<_> = plan.links.iter().map(|link| link.name.as_str()).collect();
        Ok(Self::new(&names, framing, plan.observe.snaplen, orders))
    }

    /// Returns the links that are captured.
    pub fn links(&self) -> Vec<usize> {
        self.outlets.iter().map(|&(link, ..)| link).collect()
    }

    /// Writes the files' headers and starts the writing thread. The run begins when the machine's
    /// monotonic clock shows `start`, in nanoseconds; `None` in virtual time.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(&mut self, start: Option<Nanos>) -> io::Result<()> {
        if self.outlets.is_empty() {
            return Ok(());
        }
        self.epoch = start.map_or(0, |start| {
            let calendar = clock_gettime(ClockId::Realtime);
            let calendar = calendar.tv_sec as Nanos * SECOND + calendar.tv_nsec as Nanos;
            (calendar + start).saturating_sub(monotonic())
        });
        for capture in self.links.iter_mut().flatten() {
            capture.head(&mut self.block, self.snaplen);
        }
        let outlets = std::mem::take(&mut self.outlets);
        let thread = std::thread::Builder::new().name("capture".to_owned());
        self.writer = Some(thread.spawn(move || write_all(outlets))?);
        Ok(())
    }

    /// Captures a packet, whose frame is `bytes`, at one side of a link's queue. `reason` is the
    /// comment of a dropped packet.
    #[inline]
    pub fn see(
        &mut self,
        at: Nanos,
        link: u32,
        side: Side,
        (packet, body, bytes): (&Packet, &Body<PacketMeta>, &[u8]),
        reason: Option<Reason>,
    ) {
        if let Some(Some(capture)) = self.links.get_mut(link as usize) {
            let load = &body.load;
            if load.framing != capture.framing {
                capture.missed[side as usize] += 1;
                return;
            }
            as_on_wire(&mut self.frame, packet, load, &bytes[..load.bytes as usize]);
            let at = self.epoch + (at - EPOCH);
            let kept = &self.frame[..self.frame.len().min(self.snaplen)];
            let length = self.frame.len() as u32;
            self.block.packet(side as u32, at, kept, length, reason);
            capture.put(&mut self.block, side);
        }
    }

    /// Ends all captures, waits until the files are written, and returns the results by link.
    pub fn finish(&mut self) -> Vec<Captured> {
        let mut done = Vec::new();
        for (link, capture) in self.links.iter_mut().enumerate() {
            let Some(mut capture) = capture.take() else { continue };
            if self.writer.is_some() {
                capture.tail(&mut self.block, self.epoch);
            }
            let Capture { name, packets, missed, .. } = *capture;
            done.push((link, Captured { link: name, packets, missed, error: None }));
        }
        let written = self.writer.take().map(JoinHandle::join);
        for (link, captured) in &mut done {
            captured.error = match &written {
                None => Some("the run did not begin".to_owned()),
                Some(Err(_)) => Some("the writing thread panicked".to_owned()),
                Some(Ok(results)) => results
                    .iter()
                    .find(|(of, _)| of == link)
                    .and_then(|(_, result)| result.as_ref().err().map(ToString::to_string)),
            };
        }
        done.into_iter().map(|(_, captured)| captured).collect()
    }
}

impl Capture {
    /// Passes the section header and the interface descriptions to the writing thread.
    fn head(&mut self, block: &mut Block, snaplen: usize) {
        block.section(PROGRAM);
        let _ = self.ring.push_entire_slice(block.end());
        for side in SIDES {
            block.interface(&format!("{} {side}", self.name), link_type(self.framing), snaplen);
            let _ = self.ring.push_entire_slice(block.end());
        }
    }

    /// Passes a packet's block to the writing thread, or counts the packet as missed if the ring
    /// buffer or the file is full.
    #[inline]
    fn put(&mut self, block: &mut Block, side: Side) {
        let bytes = block.end();
        let length = bytes.len() as u64;
        if length <= self.room && self.ring.push_entire_slice(bytes).is_ok() {
            self.room -= length;
            self.packets[side as usize] += 1;
        } else {
            self.missed[side as usize] += 1;
        }
    }

    /// Passes the statistics of each interface to the writing thread. Waits while the ring buffer
    /// is full.
    fn tail(&mut self, block: &mut Block, epoch: Nanos) {
        for side in 0..SIDES.len() {
            block.statistics(side as u32, epoch, self.packets[side], self.missed[side]);
            let bytes = block.end();
            while self.ring.push_entire_slice(bytes).is_err() && !self.ring.is_abandoned() {
                std::thread::sleep(NAP);
            }
        }
    }
}

/// A capture of another program's queue, whose packets are observed before and after it. The
/// packets are Ethernet frames; timestamps count from the run's start. Drops are not observed, so
/// the file has no `dropped` interface.
#[derive(Debug)]
pub struct Outside<W> {
    to: W,
    snaplen: usize,
    room: u64,
    block: Block,
    captured: Captured,
}

impl<W: Write> Outside<W> {
    /// Begins the file of a link. At most `snaplen` bytes of each packet are captured. A packet is
    /// not captured if all blocks together would exceed `largest` bytes.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(link: &str, snaplen: u32, mut to: W, largest: u64) -> io::Result<Self> {
        let mut block = Block::default();
        let snaplen = snaplen as usize;
        block.section(PROGRAM);
        to.write_all(block.end())?;
        for side in &SIDES[..2] {
            block.interface(&format!("{link} {side}"), ETHERNET, snaplen);
            to.write_all(block.end())?;
        }
        let captured =
            Captured { link: link.to_owned(), packets: [0; 3], missed: [0; 3], error: None };
        Ok(Self { to, snaplen, room: largest, block, captured })
    }

    /// Writes a packet of `length` bytes whose first bytes are `frame`, at `at` nanoseconds since
    /// the run's start.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn see(&mut self, at: Nanos, side: Side, frame: &[u8], length: u32) -> io::Result<()> {
        let kept = &frame[..frame.len().min(self.snaplen)];
        self.block.packet(side as u32, at, kept, length, None);
        let bytes = self.block.end();
        let Some(room) = self.room.checked_sub(bytes.len() as u64) else {
            self.captured.missed[side as usize] += 1;
            return Ok(());
        };
        self.room = room;
        self.captured.packets[side as usize] += 1;
        self.to.write_all(bytes)
    }

    /// Completes the file and returns the result of the capture.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> io::Result<Captured> {
        for side in 0..2 {
            let Captured { packets, missed, .. } = &self.captured;
            self.block.statistics(side as u32, 0, packets[side], missed[side]);
            self.to.write_all(self.block.end())?;
        }
        self.to.flush()?;
        Ok(self.captured)
    }
}

fn link_type(framing: Framing) -> u16 {
    if framing == Framing::Ethernet { ETHERNET } else { RAW }
}

/// Writes into `frame` a packet's bytes as a wire would carry them: with ECN marks of the queues
/// and a complete checksum.
fn as_on_wire(frame: &mut Vec<u8>, packet: &Packet, load: &PacketMeta, bytes: &[u8]) {
    frame.clear();
    frame.extend_from_slice(bytes);
    if packet.tos != load.tos {
        Headers::parse(load.framing, frame).set_tos(frame, packet.tos);
    }
    if let Some(partial) = load.partial {
        partial.finish(frame);
    }
}

/// Reason why a packet was dropped or lost, in two parts that form the packet's comment in the
/// file.
pub type Reason = (&'static str, &'static str);

/// Returns the reason of a drop. `queued` is false for a packet that the queue refused on arrival.
pub fn dropped(reason: DropReason, queued: bool) -> Reason {
    (if queued { "dropped from the queue: " } else { "refused by the queue: " }, reason.name())
}

/// Reason of a packet that was lost on the line.
pub const LOST: Reason = ("lost on the line", "");

/// Writes the blocks of all links to their files until all ring buffers are abandoned and empty.
/// This is the writing thread.
fn write_all(mut outlets: Vec<Outlet>) -> Vec<Written> {
    let mut results: Vec<_> = outlets.iter().map(|&(link, ..)| (link, Ok(()))).collect();
    loop {
        let (mut idle, mut over) = (true, true);
        for ((_, outlet, file), (_, result)) in outlets.iter_mut().zip(&mut results) {
            // Check first whether the sender has gone. If it has, a ring buffer that is empty now
            // stays empty.
            let abandoned = outlet.is_abandoned();
            let waiting = outlet.slots().min(PORTION);
            over &= abandoned && waiting == 0;
            idle &= waiting == 0;
            let Ok(chunk) = outlet.read_chunk(waiting) else { continue };
            if result.is_ok() {
                let (one, two) = chunk.as_slices();
                *result = file.write_all(one).and_then(|()| file.write_all(two));
            }
            chunk.commit_all();
        }
        if over {
            return results;
        }
        if idle {
            std::thread::sleep(NAP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::Facts;
    use crate::vnet::Partial;
    use sojourn_capture::checksum;
    use sojourn_capture::pcapng::{PACKET, SECTION};
    use sojourn_network::{Class, Copies, node};
    use std::io::{Read, Seek, SeekFrom};

    /// Returns an IPv4 UDP packet with a partial checksum and `payload` bytes of payload.
    fn datagram(payload: usize) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let length = 28 + payload as u16;
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        let sum = !checksum::fold(checksum::sum(&bytes));
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        bytes.extend([0x13, 0x88, 0x13, 0x89]);
        bytes.extend((length - 20).to_be_bytes());
        let mut pseudo = bytes[12..20].to_vec();
        pseudo.extend([0, 17]);
        pseudo.extend((length - 20).to_be_bytes());
        bytes.extend(checksum::fold(checksum::sum(&pseudo)).to_be_bytes());
        bytes.extend((0..payload).map(|i| i as u8));
        bytes
    }

    fn body(bytes: &[u8]) -> Body<PacketMeta> {
        let load = PacketMeta {
            bytes: bytes.len() as u32,
            facts: Facts::default(),
            partial: Some(Partial { start: 20, offset: 6 }),
            framing: Framing::Ip,
            tos: 0,
            whose: 0,
        };
        Body {
            number: 0,
            sent_at: EPOCH,
            endpoint: 1,
            connection: 0,
            flow: 0,
            copies: Copies::ONE,
            load,
        }
    }

    fn packet(bytes: &[u8], tos: u8) -> Packet {
        Packet::new(Class::Udp, (node(0), node(1)), 0, 7, bytes.len() as u32 + 14, tos)
    }

    /// Returns a capture of the link `up`, and a handle with which its file can be read.
    fn capture(snaplen: u32, largest: u64) -> (Captures, File) {
        let path = std::env::temp_dir().join(format!("sojourn-{:p}", &raw const largest));
        let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let order = Order { link: 1, file: file.try_clone().unwrap(), largest };
        (Captures::new(&["down", "up"], Framing::Ip, snaplen, vec![order]), file)
    }

    fn content(mut file: File) -> Vec<u8> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// Returns the blocks of a file, each with its type and content.
    fn blocks(bytes: &[u8]) -> Vec<(u32, &[u8])> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (mut at, mut found) = (0, Vec::new());
        while at < bytes.len() {
            let length = word(at + 4) as usize;
            assert_eq!(word(at + length - 4) as usize, length, "at {at}");
            found.push((word(at), &bytes[at + 8..at + length - 4]));
            at += length;
        }
        found
    }

    #[test]
    fn packets_are_as_on_the_wire_and_comments_say_why() {
        let (mut captures, file) = capture(65_535, 1 << 20);
        assert_eq!(captures.links(), [1]);
        captures.start(Some(monotonic())).unwrap();
        let bytes = datagram(33);
        let body = body(&bytes);
        for (tos, side, why) in [
            (0, Side::Before, None),
            (3, Side::After, None),
            (0, Side::Dropped, Some(dropped(DropReason::Overflow, false))),
        ] {
            let seen = (&packet(&bytes, tos), &body, &bytes[..]);
            captures.see(EPOCH + 5, 1, side, seen, why);
            captures.see(EPOCH + 5, 0, side, seen, why);
        }
        let epoch = captures.epoch;
        let done = captures.finish();
        let expected =
            Captured { link: "up".to_owned(), packets: [1; 3], missed: [0; 3], error: None };
        assert_eq!(done, [expected]);
        let content = content(file);
        let blocks = blocks(&content);
        let kinds: Vec<_> = blocks.iter().map(|&(kind, _)| kind).collect();
        assert_eq!(kinds, [SECTION, 1, 1, 1, 6, 6, 6, 5, 5, 5]);
        for (side, (_, packet)) in blocks[4..7].iter().enumerate() {
            let word = |at: usize| u32::from_le_bytes(packet[at..at + 4].try_into().unwrap());
            assert_eq!(word(0) as usize, side);
            assert_eq!(u64::from(word(4)) << 32 | u64::from(word(8)), epoch + 5);
            assert_eq!((word(12), word(16)), (61, 61));
            let frame = &packet[20..81];
            assert!(Headers::parse(Framing::Ip, frame).verify(frame), "checksums of {side}");
            assert_eq!(frame[1], if side == 1 { 3 } else { 0 });
        }
        let comment = b"refused by the queue: overflow";
        assert!(blocks[6].1.windows(comment.len()).any(|w| w == comment));
    }

    #[test]
    fn packets_without_room_are_counted() {
        let (mut captures, file) = capture(40, 250);
        captures.start(Some(monotonic())).unwrap();
        let bytes = datagram(1000);
        let (packet, body) = (packet(&bytes, 0), body(&bytes));
        for _ in 0..10 {
            captures.see(EPOCH, 1, Side::Before, (&packet, &body, &bytes[..]), None);
        }
        let done = captures.finish();
        // A block has 32 bytes around 40 bytes of the packet: three blocks fit into 250 bytes.
        assert_eq!((done[0].packets, done[0].missed), ([3, 0, 0], [7, 0, 0]));
        let content = content(file);
        let blocks = blocks(&content);
        assert_eq!(blocks.iter().filter(|&&(kind, _)| kind == PACKET).count(), 3);
        let dropped = blocks[blocks.len() - 3].1;
        assert!(dropped.windows(12).any(|w| w == [5, 0, 8, 0, 7, 0, 0, 0, 0, 0, 0, 0]));
    }

    #[test]
    fn a_queue_that_is_not_ours_is_captured_at_both_sides() {
        let mut bytes = Vec::new();
        let mut capture = Outside::new("up", 40, &mut bytes, 150).unwrap();
        for (at, side) in [(5, Side::Before), (7, Side::After), (9, Side::Before)] {
            capture.see(at, side, &[1; 100], 1514).unwrap();
        }
        let captured = capture.finish().unwrap();
        // A block has 32 bytes around 40 bytes of the packet: two blocks fit into 150 bytes.
        assert_eq!((captured.packets, captured.missed), ([1, 1, 0], [1, 0, 0]));
        let blocks = blocks(&bytes);
        let kinds: Vec<_> = blocks.iter().map(|&(kind, _)| kind).collect();
        assert_eq!(kinds, [SECTION, 1, 1, 6, 6, 5, 5]);
        let word = |at: usize| u32::from_le_bytes(blocks[4].1[at..at + 4].try_into().unwrap());
        assert_eq!([0, 4, 8, 12, 16].map(word), [1, 0, 7, 40, 1514]);
    }

    #[test]
    fn an_error_of_writing_is_reported() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let order = Order { link: 0, file: full, largest: 1 << 20 };
        let mut captures = Captures::new(&["up"], Framing::Ip, 128, vec![order]);
        captures.start(Some(monotonic())).unwrap();
        let error = captures.finish()[0].error.clone().unwrap();
        assert!(error.contains("No space left"), "{error}");
    }
}
