//! Format of datagrams. All numbers are big-endian.
//!
//! Every datagram begins with kind, version and connection number (10 bytes). Reading never panics,
//! and never allocates memory by a length that a sender claims. A datagram in any other format is
//! `None`.

use sojourn_units::Bytes;

/// Version of the format.
pub const VERSION: u8 = 2;
/// Bytes before the payload of [`Packet::Data`].
pub const DATA_HEADER: usize = HEADER + 8 + 8 + 4 + 4;
/// Least length of a client's datagrams before its address is validated, so that answers are at
/// most three times as long.
pub const FIRST: usize = 64;
/// Largest number of ranges in an acknowledgement.
pub const RANGES: usize = 64;
/// Bytes that both sides charge per message in addition to its length, for bookkeeping.
pub const CHARGE: Bytes = 256;
/// Length of the checksum in bytes.
pub const DIGEST: usize = 32;

const HEADER: usize = 10;

/// Random number of a connection.
pub type Id = u64;

/// Server's answer to a client with an unknown address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// Time of creation, in the server's periods.
    pub period: u32,
    /// Keyed hash of the time, the client's address and the connection number.
    pub hash: u64,
}

/// Reason of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Success.
    Done,
    /// The server has its largest number of connections.
    Busy,
    /// The handler refused the data.
    Refused,
    /// The handler failed, for example because the disk is full.
    Failed,
    /// The connection is unknown or no longer known.
    Unknown,
    /// The client's fragments are too long or too short for this server.
    Chunk,
    /// The server already has an object of this name.
    Exists,
    /// The data exceed the server's quota.
    Quota,
}

impl Code {
    const ALL: [Self; 8] = [
        Self::Done,
        Self::Busy,
        Self::Refused,
        Self::Failed,
        Self::Unknown,
        Self::Chunk,
        Self::Exists,
        Self::Quota,
    ];

    fn read(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }

    /// Returns the text for users.
    pub fn text(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Busy => "the server has as many connections as it takes: try again later",
            Self::Refused => "the server refused what was sent",
            Self::Failed => "the server could not keep what was sent; its own messages say why",
            Self::Unknown => "the server does not know the connection (any more)",
            Self::Chunk => "the server does not take datagrams of this length",
            Self::Exists => {
                "the server has a file of that name already, and replaces none (`--name` gives another)"
            }
            Self::Quota => "this is more than the server takes in all (its `--quota`)",
        }
    }
}

/// A fragment of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// Number of this datagram in the client's sequence.
    pub number: u64,
    /// Number of the message, from 0.
    pub message: u64,
    /// Length of the message in bytes.
    pub length: u32,
    /// Number of the fragment, from 0.
    pub index: u32,
    /// Whether the client requests an immediate acknowledgement.
    pub ask: bool,
    /// Its bytes.
    pub payload: &'a [u8],
}

impl Data<'_> {
    #[inline]
    fn head(&self, kind: u8, id: Id) -> [u8; DATA_HEADER] {
        let mut head = [0; DATA_HEADER];
        (head[0], head[1]) = (kind, VERSION);
        head[2..10].copy_from_slice(&id.to_be_bytes());
        head[10..18].copy_from_slice(&self.number.to_be_bytes());
        head[18..26].copy_from_slice(&self.message.to_be_bytes());
        head[26..30].copy_from_slice(&self.length.to_be_bytes());
        head[30..34].copy_from_slice(&self.index.to_be_bytes());
        head
    }

    /// Reads a fragment and no other kind, faster than [`read`].
    #[inline]
    pub(crate) fn read(datagram: &[u8]) -> Option<(Id, Data<'_>)> {
        let (head, payload) = datagram.split_first_chunk::<DATA_HEADER>()?;
        let ask = head[0] == 11;
        if (head[0] != 5 && !ask) || head[1] != VERSION {
            return None;
        }
        let long =
            |at: usize| head[at..].first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let short =
            |at: usize| head[at..].first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        let (number, message, length, index) = (long(10), long(18), short(26), short(30));
        Some((long(2), Data { number, message, length, index, ask, payload }))
    }
}

/// A datagram without its connection number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// Client: requests a connection. At least [`FIRST`] bytes.
    Hello,
    /// Server: asks the client to return this cookie, which proves its address.
    Retry(Cookie),
    /// Client: opens the connection. At least [`FIRST`] bytes.
    Open {
        /// The server's cookie.
        cookie: Cookie,
        /// Payload of every fragment except a message's last, in bytes.
        chunk: u16,
    },
    /// Server: the connection is open.
    Accept {
        /// Longest message.
        most: u32,
        /// Total bytes of messages, with their charges, that may be begun.
        limit: u64,
    },
    /// Client: a fragment.
    Data(Data<'a>),
    /// Client: requests an acknowledgement.
    Ping {
        /// Number of this datagram in the client's sequence.
        number: u64,
    },
    /// Server: acknowledges received datagrams.
    Ack {
        /// Total bytes of messages, with their charges, that may be begun.
        limit: u64,
        /// Number of processed messages.
        processed: u64,
        /// Numbers of received datagrams: first and last of each range, newest first.
        ranges: Vec<(u64, u64)>,
    },
    /// Client: has sent all messages and asks for the outcome.
    Finish {
        /// Total number of messages.
        messages: u64,
    },
    /// Server: outcome of the connection.
    Finished {
        /// Reason of the end.
        code: Code,
        /// Checksum by the handler.
        digest: [u8; DIGEST],
    },
    /// Either side: the connection is over.
    Close {
        /// Why.
        code: Code,
    },
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn cookie(&mut self) -> Option<Cookie> {
        Some(Cookie { period: self.u32()?, hash: self.u64()? })
    }

    /// Returns `value` if all bytes were read.
    fn end<T>(&self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

/// Reads a datagram; `None` if it has another format.
pub fn read(datagram: &[u8]) -> Option<(Id, Packet<'_>)> {
    let mut r = Reader(datagram);
    let kind = r.u8()?;
    if r.u8()? != VERSION {
        return None;
    }
    let id: Id = r.u64()?;
    let padded = datagram.len() >= FIRST;
    let packet = match kind {
        1 => padded.then_some(Packet::Hello),
        2 => {
            let cookie = r.cookie()?;
            r.end(Packet::Retry(cookie))
        }
        3 => {
            let (cookie, chunk) = (r.cookie()?, r.u16()?);
            padded.then_some(Packet::Open { cookie, chunk })
        }
        4 => {
            let (most, limit) = (r.u32()?, r.u64()?);
            r.end(Packet::Accept { most, limit })
        }
        5 | 11 => Data::read(datagram).map(|(_, data)| Packet::Data(data)),
        6 => {
            let number = r.u64()?;
            r.end(Packet::Ping { number })
        }
        7 => {
            let (limit, processed) = (r.u64()?, r.u64()?);
            let count = usize::from(r.u8()?);
            if count > RANGES || r.0.len() != count * 16 {
                return None;
            }
            let mut ranges = Vec::with_capacity(count);
            for _ in 0..count {
                let range = (r.u64()?, r.u64()?);
                // In order, disjoint, newest first.
                let before = ranges.last().map_or(u64::MAX, |&(first, _)| first);
                if range.0 > range.1 || range.1 >= before {
                    return None;
                }
                ranges.push(range);
            }
            Some(Packet::Ack { limit, processed, ranges })
        }
        8 => {
            let messages = r.u64()?;
            r.end(Packet::Finish { messages })
        }
        9 => {
            let (code, digest) = (Code::read(r.u8()?)?, r.take()?);
            r.end(Packet::Finished { code, digest })
        }
        10 => {
            let code = Code::read(r.u8()?)?;
            r.end(Packet::Close { code })
        }
        _ => None,
    }?;
    Some((id, packet))
}

impl Packet<'_> {
    fn kind(&self) -> u8 {
        match self {
            Self::Hello => 1,
            Self::Retry(_) => 2,
            Self::Open { .. } => 3,
            Self::Accept { .. } => 4,
            Self::Data(data) if data.ask => 11,
            Self::Data(_) => 5,
            Self::Ping { .. } => 6,
            Self::Ack { .. } => 7,
            Self::Finish { .. } => 8,
            Self::Finished { .. } => 9,
            Self::Close { .. } => 10,
        }
    }

    /// Appends the datagram to `out`.
    pub fn write(&self, id: Id, out: &mut Vec<u8>) {
        if let Self::Data(data) = self {
            out.extend_from_slice(&data.head(self.kind(), id));
            return out.extend_from_slice(data.payload);
        }
        let start = out.len();
        out.extend([self.kind(), VERSION]);
        out.extend(id.to_be_bytes());
        let cookie = |out: &mut Vec<u8>, cookie: &Cookie| {
            out.extend(cookie.period.to_be_bytes());
            out.extend(cookie.hash.to_be_bytes());
        };
        match self {
            Self::Hello => out.resize(start + FIRST, 0),
            Self::Retry(c) => cookie(out, c),
            Self::Open { cookie: c, chunk } => {
                cookie(out, c);
                out.extend(chunk.to_be_bytes());
                out.resize(start + FIRST, 0);
            }
            Self::Accept { most, limit } => {
                out.extend(most.to_be_bytes());
                out.extend(limit.to_be_bytes());
            }
            Self::Data(_) => {}
            Self::Ping { number } => out.extend(number.to_be_bytes()),
            Self::Ack { limit, processed, ranges } => {
                out.extend(limit.to_be_bytes());
                out.extend(processed.to_be_bytes());
                let count = ranges.len().min(RANGES);
                out.push(count as u8);
                for (first, last) in &ranges[..count] {
                    out.extend(first.to_be_bytes());
                    out.extend(last.to_be_bytes());
                }
            }
            Self::Finish { messages } => out.extend(messages.to_be_bytes()),
            Self::Finished { code, digest } => {
                out.push(*code as u8);
                out.extend_from_slice(digest);
            }
            Self::Close { code } => out.push(*code as u8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet() -> impl Strategy<Value = Packet<'static>> {
        let cookie =
            || (any::<u32>(), any::<u64>()).prop_map(|(period, hash)| Cookie { period, hash });
        let code = || (0..Code::ALL.len()).prop_map(|i| Code::ALL[i]);
        let ranges = proptest::collection::btree_set(any::<u64>(), 0..=2 * RANGES);
        prop_oneof![
            Just(Packet::Hello),
            cookie().prop_map(Packet::Retry),
            (cookie(), any::<u16>()).prop_map(|(cookie, chunk)| Packet::Open { cookie, chunk }),
            any::<(u32, u64)>().prop_map(|(most, limit)| Packet::Accept { most, limit }),
            any::<(u64, u64, u32, u32, bool, bool)>().prop_map(
                |(number, message, length, index, ask, full)| {
                    let payload: &[u8] = if full { &[7; 1200] } else { &[] };
                    Packet::Data(Data { number, message, length, index, ask, payload })
                }
            ),
            any::<u64>().prop_map(|number| Packet::Ping { number }),
            (any::<(u64, u64)>(), ranges).prop_map(|((limit, processed), ends)| {
                let ends: Vec<u64> = ends.into_iter().collect();
                let ranges = ends.chunks_exact(2).rev().map(|e| (e[0], e[1])).collect();
                Packet::Ack { limit, processed, ranges }
            }),
            any::<u64>().prop_map(|messages| Packet::Finish { messages }),
            (code(), any::<[u8; DIGEST]>())
                .prop_map(|(code, digest)| Packet::Finished { code, digest }),
            code().prop_map(|code| Packet::Close { code }),
        ]
    }

    proptest! {
        #[test]
        fn reads_what_it_writes(id in any::<u64>(), packet in packet()) {
            let mut out = vec![9];
            packet.write(id, &mut out);
            prop_assert_eq!(read(&out[1..]), Some((id, packet)));
        }

        #[test]
        fn no_datagram_crashes_it(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            kind in 0..13u8,
            packet in packet(),
            at in any::<prop::sample::Index>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let _ = read(&bytes);
            let mut dressed = vec![kind, VERSION];
            dressed.extend(&bytes);
            let _ = read(&dressed);
            let mut out = Vec::new();
            packet.write(1, &mut out);
            let i = at.index(out.len());
            out[i] ^= bytes.first().copied().unwrap_or(1);
            let _ = read(&out);
            let _ = read(&out[..cut.index(out.len())]);
        }
    }

    #[test]
    fn answers_before_validation_are_no_longer_than_questions() {
        let length = |packet: Packet| {
            let mut out = Vec::new();
            packet.write(1, &mut out);
            out.len()
        };
        let cookie = Cookie { period: 1, hash: 2 };
        assert!(length(Packet::Retry(cookie)) <= length(Packet::Hello));
        assert!(length(Packet::Close { code: Code::Busy }) <= FIRST);
        assert_eq!(length(Packet::Open { cookie, chunk: 1 }), FIRST);
        // A short Hello is none.
        assert_eq!(read(&[1, VERSION, 0, 0, 0, 0, 0, 0, 0, 1]), None);
    }
}
