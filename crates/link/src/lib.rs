#![doc = include_str!("../README.md")]
//!
//! # A link
//! A link is a queue, a transmitter and a delay line. [`Link::send`] brings a packet,
//! [`Link::poll`] runs what is due, [`Link::next_wakeup`] says when to call next, [`Link::change`]
//! gives it other parameters, and [`Link::stats`] returns its counts; an [`Observer`] receives the
//! events. A [`Port`] is a link with any transmitter. Every user drives ports: the simulator with
//! virtual time, the real-time emulator with the machine's clock, and a [`Path`], which passes the
//! packets of one port to the next.
//!
//! ## Time
//! Everything that is due up to a call's `now` happens first and at its own *theoretical* time, so
//! a late caller changes neither decisions nor times. At one instant, in this order:
//!
//! 1. packets arrive at the far end,
//! 2. the queue's periodic task runs,
//! 3. the transmitter asks the queue for the next packet,
//! 4. offered packets arrive at the queue, in the order of the calls.
//!
//! So a packet that comes at the very moment at which a transmission ends finds the queue without
//! the packet whose transmission begins then.
//!
//! ## Queue and transmitter
//! A packet passes through the discipline even if the transmitter is idle: the dequeue follows the
//! enqueue at the same instant. When a transmission ends the transmitter asks the queue again; if
//! nothing is queued, this request needs no event: it is made before the next arrival, with the
//! time at which it was due. The same holds for periodic tasks. So an uncongested link needs one
//! event per packet, a congested link two.
//!
//! ## Closed form
//! A FIFO with a constant rate and a wire that only delays has a closed form ([`Link::go_direct`]):
//! a packet's arrival at the far end is known when the packet comes, or when it is announced
//! before. A departure then needs no event. It is recorded later, with its theoretical time.
//!
//! ## Ring and shared medium
//! A device may take packets from the queue ahead of their transmission, into a *transmit ring*:
//! they have left the queue, and no discipline sees them. Several links may transmit on one
//! [`Medium`]: each senses the medium before it transmits, and tries again later if the medium is
//! busy. A link with a ring or a shared medium is a [`Station`]. Without a ring the packet stays in
//! the queue until the medium is free, and its sojourn time ends then; with a ring the packet waits
//! outside the queue, as in ns-3. All links on a medium must be called in the order of time.
//!
//! ## Late host
//! A [`host`] may serve the queue late: its wake-ups come at ticks or later, and not during a
//! stall. Such a link is a [`Station`] too.
//!
//! ## Trace
//! Instead of a rate a transmitter may have a [`Trace`] of opportunities to send. Packets then wait
//! in the queue for the next opportunity, even if no packet is ahead of them.
//!
//! ## Change
//! [`Link::set_wire`] gives a link another rate or wire from a time on. A packet in transmission
//! finishes at the old rate, and packets on the wire keep their arrival times, except with slots. A
//! transmission that begins at exactly this time has the new rate and wire.
//!
//! ## Wire
//! Impairments happen on the wire, after the queue: a lost packet has used the link. They are
//! decided when a packet's transmission starts, in the order of netem: duplication, loss,
//! corruption, then the limit, and reordering, jitter or the wire's own rate. A copy is subject to
//! everything but duplication. Packets on the wire never count as queued. A packet is lost if the
//! wire holds its maximum number of packets when the packet's transmission ends. With slots,
//! packets that are due arrive together in the next slot.

mod capacity;
pub mod csma;
mod datagram;
mod description;
pub mod host;
mod impair;
mod ledger;
mod line;
mod link;
pub mod netem;
mod observer;
mod params;
mod path;
mod port;
pub mod presets;
mod slots;
mod trace;
mod transmitter;

pub use capacity::Capacity;
pub use csma::Medium;
pub use datagram::Datagram;
pub use description::DescriptionError;
pub use ledger::{Backlog, Ledger};
pub use link::direct::{Stamped, Watch};
pub use link::station::Station;
pub use link::{Link, StreamDraws};
pub use netem::Netem;
pub use observer::{Corrupt, Event, Observer};
pub use params::{
    Chance, Framing, Impairments, Jitter, JitterDistribution, Loss, Params, Reorder, Slot, WireRate,
};
pub use path::{Arrival, Direction, Path, Seen};
pub use port::Port;
pub use sojourn_measure::Count;
pub use sojourn_queue::cake::framing::Cells;
pub use sojourn_queue::{
    DropReason, Ecn, Headers, MarkReason, OtherDiscipline, Packet, Sender, TcpView,
};
pub use sojourn_random::Key;
pub use sojourn_units::{EPOCH, Nanos, Rate};
pub use trace::Trace;
