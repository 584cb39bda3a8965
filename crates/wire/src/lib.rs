//! Links on real packets.
//!
//! # Devices
//! [`Device`] is a TUN or TAP device created in any network namespace, or a packet socket on an interface
//! that exists. All of them hand out and take frames with a [`vnet::VnetHeader`] in front, so the kernel
//! may pass *super-packets*, up to 64 KiB of one flow at once.
//!
//! # The way of a frame
//! 1. [`Device::read`] fills a buffer: header and frame.
//! 2. [`segment::Segments`] splits the frame into packets of wire size, each into a slot of the
//!    caller's; a frame that is a single packet comes out as it is. With each come its
//!    [`headers::Headers`] and where its checksum is still partial ([`vnet::Partial`]).
//! 3. Queues see [`headers::Headers`]: length, hosts, flow hash, ECN field;
//!    [`headers::Headers::set_tos`] marks a packet in its slot, and [`vnet::Partial::finish`] completes
//!    it before its bits are corrupted or captured.
//! 4. [`coalesce::Coalescer`] puts what is written to a device at one moment together again, and
//!    [`Device::write_vectored`] writes each super-packet from header and slots without a copy.
//!
//! Splitting, coalescing and reading headers are pure and allocate nothing.

mod answer;
mod arena;
pub mod capture;
mod checksum;
mod clock;
pub mod coalesce;
pub mod control;
pub mod device;
mod edge;
mod endpoint;
pub mod ends;
mod flows;
pub mod headers;
mod measured;
mod packet_meta;
mod partitions;
mod record;
pub mod segment;
mod steering;
pub mod vnet;
mod watch;
mod wire;

pub use clock::monotonic;
pub use device::Device;
pub use endpoint::Attachment;
pub use flows::Facts;
pub use packet_meta::PacketMeta;
pub use record::{Agreement, Health, HealthReport, LinkCounters, Outcome, Snapshot};
pub use wire::{Settings, Wire, WireError};
