//! An adversary, which performs the actions that its input encodes against a server and a client.

use sojourn_buffer::Params;
use sojourn_udp::packet::{self, Code, Cookie, DATA_HEADER, Data, Packet};
use sojourn_udp::sender::{Mode, Sender, Settings};
use sojourn_udp::server::{Job, Limits, Message, Out, Server};
use sojourn_units::{MILLISECOND, Nanos, SECOND};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Maximum size in bytes of each buffer of the server.
pub const CEILING: u64 = 1 << 20;
pub const LIMITS: Limits =
    Limits { connections: 4, client: 300_000, message: 100_000, idle: SECOND };
const POLICIES: [&str; 4] = [
    "static size 100kb",
    "elastic floor 32kb ceiling 1mb",
    "rrda initial 64kb ceiling 1mb",
    "on-demand floor 32kb budget 1mb",
];
static PAYLOAD: [u8; 70_000] = [5; 70_000];

struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn take(&mut self, most: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        head
    }

    /// Reads a number of `bytes` bytes from the input; missing bytes count as 0.
    fn number(&mut self, bytes: usize) -> u64 {
        self.take(bytes).iter().fold(0, |n, &byte| n << 8 | u64::from(byte))
    }
}

fn address(i: u64) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 1000 + (i % 4) as u16))
}

/// Address and identifier of the honest client.
const HONEST: (u64, u64) = (3, 7);

struct World {
    now: Nanos,
    server: Server,
    sender: Sender,
    cookies: BTreeMap<(SocketAddr, u64), Cookie>,
    at_work: Vec<Message>,
    to_client: Vec<Vec<u8>>,
}

impl World {
    fn new(policy: &str, mode: Mode) -> Self {
        let settings = Settings { mode, chunk: 1000, ..Settings::default() };
        Self {
            now: SECOND,
            server: Server::new(LIMITS, Params::parse(policy).unwrap(), [1; 16]),
            sender: Sender::new(HONEST.1, settings),
            cookies: BTreeMap::new(),
            at_work: Vec::new(),
            to_client: Vec::new(),
        }
    }

    fn sort(&mut self, out: Out) {
        for (to, bytes) in out {
            if let Some((id, Packet::Retry(cookie))) = packet::read(&bytes) {
                self.cookies.insert((to, id), cookie);
            }
            if to == address(HONEST.0) && self.to_client.len() < 1000 {
                self.to_client.push(bytes);
            }
        }
    }

    fn tell(&mut self, from: SocketAddr, datagrams: &[Vec<u8>]) {
        let mut out = Out::new();
        let open = self.server.counters().opened;
        self.server.handle_all(self.now, from, datagrams.iter().map(Vec::as_slice), &mut out);
        let asked: usize = datagrams.iter().map(Vec::len).sum();
        let answered: usize = out.iter().map(|(_, bytes)| bytes.len()).sum();
        if open == 0 {
            assert!(answered <= 3 * asked, "{answered} bytes for {asked}");
        }
        self.sort(out);
    }

    fn step(&mut self, words: &mut Words) {
        let kind = words.number(1);
        match kind % 14 {
            0 => {
                let from = address(words.number(1));
                let length = words.number(1) as usize;
                let bytes = words.take(length).to_vec();
                if !matches!(packet::read(&bytes), Some((_, Packet::Data(_)))) {
                    self.tell(from, &[bytes]);
                }
            }
            1 | 2 => {
                let (from, id) = (address(words.number(1)), words.number(1) % 8);
                let mut bytes = Vec::new();
                match self.cookies.get(&(from, id)) {
                    Some(&cookie) if kind % 14 == 2 => {
                        let chunk = match words.number(1) {
                            0 => words.number(2) as u16,
                            n => [512, 1000, 1400, 65_000][n as usize % 4],
                        };
                        Packet::Open { cookie, chunk }.write(id, &mut bytes);
                    }
                    _ => Packet::Hello.write(id, &mut bytes),
                }
                self.tell(from, &[bytes]);
            }
            3 | 4 => self.fragments(words, kind % 14 == 4),
            5 => {
                let (from, id) = (address(words.number(1)), words.number(1) % 8);
                let n = words.number(1);
                let packet = match n % 4 {
                    0 => Packet::Finish { messages: words.number(1) },
                    1 => Packet::Ping { number: words.number(8) },
                    2 => Packet::Ping { number: words.number(2) },
                    _ => Packet::Close { code: Code::Done },
                };
                let mut bytes = Vec::new();
                packet.write(id, &mut bytes);
                self.tell(from, &[bytes]);
            }
            6 => self.job(words.number(1).is_multiple_of(2)),
            7 => self.now += words.number(3) * 100,
            8 => self.now += words.number(1) * 20 * MILLISECOND,
            9 => {
                let mut sent = Vec::new();
                for _ in 0..words.number(1) {
                    let mut bytes = Vec::new();
                    if !self.sender.poll(self.now, &mut bytes) {
                        break;
                    }
                    assert!(packet::read(&bytes).is_some());
                    sent.push(bytes);
                }
                if words.number(1).is_multiple_of(4)
                    && let Some(last) = sent.last_mut()
                {
                    // Only bytes of the header are changed here; the payload is checked below.
                    let at = words.number(2) as usize % last.len().min(DATA_HEADER);
                    last[at] ^= words.number(1) as u8;
                }
                self.tell(address(HONEST.0), &sent);
            }
            10 => {
                let length = words.number(1) as usize;
                let mut bytes = words.take(length).to_vec();
                if length.is_multiple_of(2) && bytes.len() > 10 {
                    // A packet for the honest client, of a kind that servers send.
                    bytes[0] = [2, 4, 7, 9, 10][length / 2 % 5];
                    bytes[1] = packet::VERSION;
                    bytes[2..10].copy_from_slice(&HONEST.1.to_be_bytes());
                }
                self.sender.handle(self.now, &bytes);
            }
            11 => {
                let length = words.number(2) as usize % 3000;
                match words.number(1) {
                    0 => self.sender.finish(),
                    1 => self.sender.abandon(),
                    _ => drop(self.sender.push(vec![1; length])),
                }
            }
            12 => {
                let mut out = Out::new();
                self.server.acks(self.now, &mut out);
                self.server.sweep(self.now);
                self.sort(out);
                for bytes in std::mem::take(&mut self.to_client) {
                    self.sender.handle(self.now, &bytes);
                }
            }
            _ => {
                let text = POLICIES[words.number(1) as usize % POLICIES.len()];
                self.server.buffer_mut().set_policy(self.now, Params::parse(text).unwrap());
                self.server.buffer_mut().tick(self.now);
            }
        }
    }

    /// Sends fragments that continue a message, or fragments with arbitrary fields if `odd`.
    fn fragments(&mut self, words: &mut Words, odd: bool) {
        let (from, id) = (address(words.number(1)), words.number(1) % 8);
        let mut number = words.number(if odd { 8 } else { 2 });
        let message = words.number(if odd { 8 } else { 1 });
        let length = words.number(if odd { 4 } else { 2 }) as u32;
        let mut index = words.number(if odd { 4 } else { 1 }) as u32;
        let chunk = [512usize, 1000, 1400, 65_000][words.number(1) as usize % 4];
        let mut sent = Vec::new();
        for _ in 0..=words.number(1) % 80 {
            let rest = (length as usize).saturating_sub(index as usize * chunk);
            let n = if odd { words.number(1) as usize } else { rest.min(chunk) };
            let (ask, payload) = (number.is_multiple_of(5), &PAYLOAD[..n]);
            let mut bytes = Vec::new();
            Packet::Data(Data { number, message, length, index, ask, payload })
                .write(id, &mut bytes);
            sent.push(bytes);
            (number, index) = (number.wrapping_add(1), index.wrapping_add(1));
        }
        self.tell(from, &sent);
    }

    /// The handler takes its next task if `take`, otherwise it finishes its oldest task.
    fn job(&mut self, take: bool) {
        if !take {
            if !self.at_work.is_empty() {
                self.server.processed(self.at_work.remove(0));
            }
            return;
        }
        let mut out = Out::new();
        match self.server.next_job() {
            Some(Job::Message { message, .. }) if self.at_work.len() < 2 => {
                assert!(message.data.len() <= LIMITS.message as usize);
                let sent = |&b: &u8| b == 5 || b == 1;
                assert!(message.data.iter().all(sent), "bytes that no client sent");
                self.at_work.push(message);
            }
            Some(Job::Message { message, .. }) => self.server.processed(message),
            Some(Job::Finish(id)) => self.server.finished(id, Code::Done, [0; 32], &mut out),
            Some(Job::Gone(_)) | None => {}
        }
        self.sort(out);
    }

    fn check(&self) {
        let buffer = self.server.buffer();
        assert!(buffer.occupied() <= buffer.size() && buffer.size() <= CEILING);
        assert!(self.server.connections() <= LIMITS.connections);
        assert!(self.sender.end().is_some() || self.sender.wake().is_some());
    }
}

/// Performs the actions of an input, and calls `after` after each one. Panics if an invariant is
/// violated.
pub fn play(input: &[u8], mut after: impl FnMut()) {
    let mut words = Words(input);
    let policy = POLICIES[words.number(1) as usize % POLICIES.len()];
    let mode = match words.number(1) % 3 {
        0 => Mode::Windowed,
        n => Mode::StopAndWait { processed: n == 1 },
    };
    let mut world = World::new(policy, mode);
    while !words.0.is_empty() {
        world.step(&mut words);
        world.check();
        after();
    }
}
