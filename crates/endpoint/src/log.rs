//! Logs of endpoints: one record of 24 bytes per event, in the order in which the events were
//! logged.

use sojourn_units::Nanos;
use std::io::{self, Write};

/// Size of a record in bytes.
pub const RECORD: usize = 24;

/// Kind of event, which defines the meaning of `number` and `length`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Datagram `number` was sent; `length` is its payload in bytes.
    Sent,
    /// Datagram `number` could not be sent; `length` is the error number.
    NotSent,
    /// A datagram with `length` bytes of payload arrived; `number` is the number that it carries.
    Received,
    /// The receiver's socket has dropped `number` datagrams since the run's start, because its
    /// receive buffer was full.
    Overflowed,
    /// The write `number`, of `length` bytes, entered the send buffer.
    Written,
    /// The write `number`, of `length` bytes, was refused, because the send buffer was full.
    Refused,
    /// The application has closed the stream after its last write; `number` is the number of its
    /// writes.
    Closed,
    /// Connection `length` has delivered `number` bytes in total. Connections are counted from 0 in
    /// the order in which the receiver accepted them.
    Delivered,
    /// A transfer of `number` bytes was due; `length` is its number, counted from 0 per flow.
    Due,
    /// The connection of transfer `length` is open.
    Connected,
    /// The last byte of a transfer with `number` bytes has arrived; `length` is the number of its
    /// connection, counted from 0 in the order in which the receiver accepted them.
    Completed,
    /// Connection `number` failed (counted from 0 per flow); `length` is the error number.
    Failed,
    /// The connection's congestion window is `number` bytes; `length` is the payload of a full
    /// segment in bytes.
    Window,
    /// The connection's smoothed round-trip time is `number` nanoseconds.
    RoundTrip,
    /// The connection has retransmitted `number` segments since it was opened.
    Retransmitted,
    /// The connection's retransmission timer has expired `number` times since the connection was
    /// opened.
    TimedOut,
}

const KINDS: [Kind; 16] = [
    Kind::Sent,
    Kind::NotSent,
    Kind::Received,
    Kind::Overflowed,
    Kind::Written,
    Kind::Refused,
    Kind::Closed,
    Kind::Delivered,
    Kind::Due,
    Kind::Connected,
    Kind::Completed,
    Kind::Failed,
    Kind::Window,
    Kind::RoundTrip,
    Kind::Retransmitted,
    Kind::TimedOut,
];

/// One event of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Number of the flow in the plan, counted from 0.
    pub flow: u32,
    /// Kind of the event.
    pub kind: Kind,
    /// Second value of the event, whose meaning depends on the [`Kind`]; only the low 24 bits are
    /// logged.
    pub length: u32,
    /// First value of the event, whose meaning depends on the [`Kind`].
    pub number: u64,
    /// Time of the event on the run's clock.
    pub at: Nanos,
}

impl Event {
    fn encode(&self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        let word = (self.kind as u32) << 24 | self.length & 0xFF_FFFF;
        bytes[..4].copy_from_slice(&self.flow.to_le_bytes());
        bytes[4..8].copy_from_slice(&word.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..].copy_from_slice(&self.at.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; RECORD]) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        Some(Self {
            flow: word(0),
            kind: *KINDS.get(word(4) as usize >> 24)?,
            length: word(4) & 0xFF_FFFF,
            number: long(8),
            at: long(16),
        })
    }
}

/// Returns the events of a log. An incomplete record at the end of the log is ignored.
///
/// # Errors
/// An item is an error if its record contains no valid kind of event; the message contains the
/// position of the record in the log.
pub fn read(log: &[u8]) -> impl Iterator<Item = Result<Event, String>> + '_ {
    let (records, _) = log.as_chunks::<RECORD>();
    records.iter().enumerate().map(|(i, record)| {
        Event::decode(record)
            .ok_or_else(|| format!("byte {}: the record has no valid kind of event", i * RECORD))
    })
}

/// Writer of a log, with a buffer.
#[derive(Debug)]
pub struct Log<W: Write> {
    buffer: Vec<u8>,
    to: W,
}

/// Number of bytes in the buffer at which the buffer is written to the file.
const GATHERED: usize = 64 << 10;

impl<W: Write> Log<W> {
    /// Returns an empty log that is written to `to`.
    pub fn new(to: W) -> Self {
        Self { buffer: Vec::with_capacity(GATHERED + RECORD), to }
    }

    /// Adds an event to the buffer, and writes the buffer when it is full.
    ///
    /// # Errors
    /// If the log cannot be written.
    #[inline]
    pub fn add(&mut self, event: &Event) -> io::Result<()> {
        self.buffer.extend_from_slice(&event.encode());
        if self.buffer.len() >= GATHERED { self.flush() } else { Ok(()) }
    }

    /// Writes all events of the buffer.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.write_all(&self.buffer)?;
        self.buffer.clear();
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_read_back() {
        let mut bytes = Vec::new();
        let events: Vec<Event> = KINDS
            .iter()
            .enumerate()
            .map(|(i, &kind)| Event {
                flow: u32::MAX - i as u32,
                kind,
                length: 0xFF_FFFF - i as u32,
                number: u64::MAX - i as u64,
                at: 1 << (4 * i),
            })
            .collect();
        let mut log = Log::new(&mut bytes);
        for event in &events {
            log.add(event).unwrap();
        }
        log.flush().unwrap();
        assert_eq!(bytes.len(), KINDS.len() * RECORD);
        assert_eq!(read(&bytes).collect::<Result<Vec<_>, _>>().as_ref(), Ok(&events));
        // A log with an incomplete record, and a log with an invalid kind.
        assert_eq!(read(&bytes[..bytes.len() - 1]).count(), KINDS.len() - 1);
        bytes[RECORD + 7] = 99;
        let error = read(&bytes).nth(1).unwrap().unwrap_err();
        assert_eq!(error, "byte 24: the record has no valid kind of event");
    }

    #[test]
    fn long_logs_are_written_on_the_way() {
        let mut bytes = Vec::new();
        let mut log = Log::new(&mut bytes);
        let event = Event { flow: 1, kind: Kind::Sent, length: 2, number: 3, at: 4 };
        for _ in 0..10_000 {
            log.add(&event).unwrap();
        }
        log.flush().unwrap();
        assert_eq!(read(&bytes).filter(|e| e.as_ref() == Ok(&event)).count(), 10_000);
    }
}
