//! Queue disciplines, written once for simulated and for real packets.
//!
//! A discipline owns its packets and knows no clock, no randomness and no I/O: the time is an
//! argument, draws are asked for by width, and drops and marks are handed to a sink. See
//! [`Discipline`] for the contract, and one module per discipline for the rest.
//!
//! [`Params::parse`] reads a description in `tc` syntax, [`Params::build`] makes the [`Queue`].

#![allow(clippy::doc_markdown, reason = "CoDel and its like are names, not code")]

use sojourn_units::modules;

/// The disciplines, one a line: its module, which has its `Params`, and its queue, after `in` what a large
/// one is kept in. A name in recordings and plans is the module's unless the line says otherwise.
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

mod bands;
pub mod classes;
mod commands;
mod declaration;
mod device;
mod discipline;
mod flow_queues;
mod kinds;
mod limit;
mod linux;
mod packet;
mod packet_fifo;
mod params;
mod peek;
pub mod pi;
mod queue;
mod speed;
mod tc;
mod typed;

pub use commands::Place;
pub use declaration::{Configured, DisciplineParams};
pub use device::Device;
pub use discipline::{
    Dequeue, Discipline, Draws, DropReason, MarkReason, Return, Sink, Totals, View,
};
pub use limit::Unit;
pub use linux::Linux;
pub use packet::{Ecn, Headers, Packet, SackBlocks, Sender, Socket, SocketKind, TcpView};
pub use params::{OtherDiscipline, Params, class_tables, tables};
pub use peek::Peek;
pub use queue::Queue;
pub use tc::NoKernelEquivalent;
pub use typed::not_modelled;
