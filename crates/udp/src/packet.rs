//! Format of the protocol's datagrams. All numbers are big-endian.
//!
//! Every datagram begins with kind, version and connection number (10 bytes). Parsing never panics,
//! and never allocates memory by a length that a sender claims. For a datagram in another format it
//! returns `None`.

use sojourn_units::Bytes;

/// Version of the format, in the second byte of a datagram.
pub const VERSION: u8 = 2;
/// Length of the header of [`Packet::Data`] in bytes.
pub const DATA_HEADER: usize = HEADER + 8 + 8 + 4 + 4;
/// Minimum length in bytes of a client's datagrams before its address is validated. It ensures that
/// an answer is at most three times as long as the datagram.
pub const FIRST: usize = 64;
/// Maximum number of ranges in an acknowledgement.
pub const RANGES: usize = 64;
/// Bytes that both sides count for each message in addition to its length.
pub const CHARGE: Bytes = 256;
/// Length of a checksum in bytes.
pub const DIGEST: usize = 32;

const HEADER: usize = 10;

/// Number of a connection, which the client draws at random.
pub type Id = u64;

/// The server's answer to a client whose address is not validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// Time of creation, in periods of the server's clock.
    pub period: u32,
    /// Keyed hash of the period, the client's address and the connection number.
    pub hash: u64,
}

/// Reason for the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The transfer succeeded.
    Done,
    /// The server already has the maximum number of connections.
    Busy,
    /// The handler refused the data.
    Refused,
    /// The handler failed, for example because the disk was full.
    Failed,
    /// The server does not know the connection, or no longer knows it.
    Unknown,
    /// The client's fragments are too long or too short for the server.
    Chunk,
    /// An object with this name already exists on the server.
    Exists,
    /// The data exceed the quota of the server.
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

    /// Returns the explanation for users.
    pub fn text(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Busy => "the server has its maximum number of connections: try again later",
            Self::Refused => "the server refused the data",
            Self::Failed => {
                "the server could not store the data; its own messages state the reason"
            }
            Self::Unknown => "the server does not know the connection, or no longer knows it",
            Self::Chunk => "the server does not accept datagrams of this length",
            Self::Exists => {
                "a file of this name exists on the server and is not replaced: choose another name with `--name`"
            }
            Self::Quota => {
                "the data exceed what the server accepts in total (its option `--quota`)"
            }
        }
    }
}

/// A fragment of a message, in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// Number of the datagram in the client's sequence.
    pub number: u64,
    /// Number of the message, from 0.
    pub message: u64,
    /// Length of the message in bytes.
    pub length: u32,
    /// Number of the fragment, from 0.
    pub index: u32,
    /// Whether the client requests an immediate acknowledgement.
    pub ask: bool,
    /// Payload of the fragment.
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

    /// Parses a fragment; `None` for datagrams of all other kinds. This is faster than [`read`].
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

/// Content of a datagram, except its connection number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// Client: requests a connection. The datagram has at least [`FIRST`] bytes.
    Hello,
    /// Server: asks the client to return this cookie, which proves that the client receives
    /// datagrams at its address.
    Retry(Cookie),
    /// Client: opens the connection. The datagram has at least [`FIRST`] bytes.
    Open {
        /// Cookie that the server sent.
        cookie: Cookie,
        /// Payload of each fragment of a message except the last, in bytes.
        chunk: u16,
    },
    /// Server: confirms that the connection is open.
    Accept {
        /// Maximum length of a message in bytes.
        most: u32,
        /// Total bytes of messages that the client may begin to send, including [`CHARGE`] for each
        /// message.
        limit: u64,
    },
    /// Client: transfers a fragment.
    Data(Data<'a>),
    /// Client: requests an acknowledgement.
    Ping {
        /// Number of the datagram in the client's sequence.
        number: u64,
    },
    /// Server: acknowledges received datagrams.
    Ack {
        /// Total bytes of messages that the client may begin to send, including [`CHARGE`] for each
        /// message.
        limit: u64,
        /// Number of messages that the handler has processed.
        processed: u64,
        /// Ranges of the numbers of received datagrams: first and last number of each range, newest
        /// range first.
        ranges: Vec<(u64, u64)>,
    },
    /// Client: states that all messages have been sent, and asks for the outcome.
    Finish {
        /// Total number of messages of the connection.
        messages: u64,
    },
    /// Server: states the outcome of the connection.
    Finished {
        /// Reason for the end of the connection.
        code: Code,
        /// Checksum that the handler returned.
        digest: [u8; DIGEST],
    },
    /// Client or server: ends the connection.
    Close {
        /// Reason for the end.
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

    /// Returns `value` if all bytes have been parsed.
    fn end<T>(&self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

/// Parses a datagram; `None` if it has another format.
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
                // Ranges must be disjoint, newest first.
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

    /// Appends the datagram with the connection number `id` to `out`.
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
        // A Hello that is too short is invalid.
        assert_eq!(read(&[1, VERSION, 0, 0, 0, 0, 0, 0, 0, 1]), None);
    }
}
