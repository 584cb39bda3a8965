//! Queue disciplines, written once for simulated and for real packets.
//!
//! A discipline owns its packets and uses no clock, no random generator and no I/O: the current
//! time is part of the [`Call`], random numbers come from its [`Draws`], and dropped and marked
//! packets go to its [`Sink`]. [`Discipline`] states the contract; each discipline has a module.
//!
//! [`Params::parse`] reads a description in `tc` syntax; [`Params::build`] creates the [`Queue`].

#![allow(clippy::doc_markdown, reason = "CoDel and similar names are not code")]

use sojourn_units::modules;

/// The disciplines, one per line: the module that contains its `Params`, and the type of its queue.
/// `in Box<>` puts a large queue into a box. The discipline's name in recordings and plans is the
/// module's name, unless a serde attribute renames it.
macro_rules! disciplines {
    ($macro:ident! $($arguments:tt)*) => {
        $macro! {
            $($arguments)*
            fifo::Fifo,
            red::Red,
            choke::Choke,
            blue::Blue,
            sfb::Sfb,
            codel::Codel,
            fq_codel::FqCodel,
            pie::Pie,
            fq_pie::FqPie,
            cobalt::Cobalt,
            fq_cobalt::FqCobalt,
            daqm::Daqm in Box<>,
            cake::Cake in Box<>,
            pfifo_fast::PfifoFast,
            pfifo_head_drop::PfifoHeadDrop,
            skbprio::Skbprio in Box<>,
            hhf::Hhf in Box<>,
            sfq::Sfq in Box<>,
            fq::Fq in Box<>,
            tbf::Tbf in Box<>,
            prio::Prio in Box<>,
            drr::Drr in Box<>,
            ets::Ets in Box<>,
            mq::Mq in Box<>,
            htb::Htb in Box<>,
            hfsc::Hfsc in Box<>,
            pi2::Pi2,
            #[serde(rename = "dualpi2")] dualpi2::DualPi2,
            external::External in Box<>,
        }
    };
}

disciplines!(modules!);

mod aqm;
mod bands;
pub mod classes;
mod commands;
mod declaration;
mod device;
mod discipline;
mod flow_queues;
mod fq_aqm;
mod kinds;
mod limit;
mod linux;
mod packet;
mod packet_fifo;
mod params;
mod peek;
pub mod pi;
mod queue;
mod single;
mod speed;
mod tc;
mod typed;

pub use aqm::{Aqm, AqmParams, Common};
pub use commands::{Command, Commands, Number, Object, Place};
pub use declaration::{Configured, DisciplineParams};
pub use device::Device;
pub use discipline::{
    Call, Dequeue, Discipline, Draws, DropReason, Leaf, MarkReason, Return, Sink, Totals, View,
};
pub use limit::Unit;
pub use linux::Linux;
pub use packet::{Ecn, Headers, Packet, SackBlocks, Sender, Socket, SocketKind, TcpView};
pub use params::{OtherDiscipline, Params, class_tables, tables};
pub use peek::Peek;
pub use queue::Queue;
pub use tc::NoKernelEquivalent;
pub use typed::{assumed_unit, not_modelled};
