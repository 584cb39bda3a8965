//! One direction of a link as a state machine driven by time.
//!
//! A link is a queue, a transmitter and a delay line. [`Link::offer`] brings a packet,
//! [`Link::advance`] runs what is due, [`Link::next_event`] says when to call next; a [`Sink`] is told
//! what happens. The simulator calls with virtual time, the wire with a real clock: the link does not
//! know the difference.
//!
//! # Time
//! Whatever falls due up to a call's `now` happens first and at its own *theoretical* time, so a late
//! caller changes neither decisions nor times. At one instant, in this order:
//!
//! 1. packets arrive at the far end,
//! 2. the queue's periodic task runs,
//! 3. the transmitter asks the queue for the next packet,
//! 4. offered packets arrive at the queue, in the order of the calls.
//!
//! So a packet that comes at the very moment at which a transmission ends finds the queue as it is
//! after the next packet has left it.
//!
//! # Queue and transmitter
//! A packet always passes through the discipline. If the transmitter is idle, the dequeue follows the
//! enqueue at the same instant. When a transmission ends the transmitter asks the queue again; if
//! nothing is queued this takes no event of its own, but is made up for at its own time before the
//! next arrival (RED's idle time and `CoDel`'s state start from it). The same holds for periodic tasks.
//! An uncongested link therefore costs one event a packet, a congested one two.
//!
//! # Wire
//! Impairments happen on the wire, after the queue: a lost packet has used the link. They are decided
//! when a packet's transmission starts, in the order of netem: duplication, loss, corruption, then
//! reordering or jitter. A copy is subject to everything but duplication. Packets on the wire never
//! count as queued.

pub mod conservation;
mod impair;
mod line;
pub mod link;
pub mod netem;
pub mod params;
pub mod sink;

pub use conservation::{Count, Counters};
pub use link::{Link, StreamDraws};
pub use netem::Netem;
pub use params::{Chance, Impairments, Jitter, JitterDistribution, Loss, Params, Reorder};
pub use sink::{Backlog, Sink};
