//! Emulation of a plan's links on real packets.
//!
//! # Devices
//! [`Device`] is a TUN or TAP device created in any network namespace, or a packet socket on an
//! existing interface. Frames are read and written with a [`vnet::VnetHeader`] in front, so that
//! the kernel may pass *super-packets*: up to 64 KiB of one flow in one frame.
//!
//! # The path of a frame
//! 1. [`Device::read`] fills a buffer with the device's header and the frame.
//! 2. [`segment::Segments`] splits the frame into packets of wire size and writes each packet into
//!    a buffer of the caller. A single packet is not changed. Each packet has its
//!    [`headers::Headers`] and the position of its checksum if it is partial ([`vnet::Partial`]).
//! 3. Queues use [`headers::Headers`]: length, hosts, flow hash, ECN field.
//!    [`headers::Headers::set_tos`] writes an ECN mark into the packet's slot.
//!    [`vnet::Partial::finish`] completes the checksum before the packet is corrupted or captured.
//! 4. [`coalesce::Coalescer`] merges the packets that are written to a device at one moment.
//!    [`Device::write_vectored`] writes each super-packet from the headers and the slots without a
//!    copy.
//!
//! Splitting, merging and parsing do no input or output, and do not allocate memory.
#![cfg(target_os = "linux")]

mod answer;
mod arena;
pub mod capture;
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
