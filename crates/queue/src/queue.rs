//! Any queue: one type over all disciplines, dispatched by match.

use crate::blue::Blue;
use crate::cake::Cake;
use crate::choke::Choke;
use crate::cobalt::Cobalt;
use crate::codel::Codel;
use crate::daqm::Daqm;
use crate::discipline::{Dequeue, Discipline, Draws, Return, Sink, View};
use crate::dualpi2::DualPi2;
use crate::fifo::Fifo;
use crate::fq_cobalt::FqCobalt;
use crate::fq_codel::FqCodel;
use crate::fq_pie::FqPie;
use crate::packet::Packet;
use crate::pi2::Pi2;
use crate::pie::Pie;
use crate::red::Red;
use crate::sfb::Sfb;
use sojourn_units::Nanos;

/// A queue of any discipline.
#[derive(Clone, Debug)]
pub enum Queue<P> {
    /// `pfifo`, `bfifo`.
    Fifo(Fifo<P>),
    /// `red`.
    Red(Red<P>),
    /// `choke`.
    Choke(Choke<P>),
    /// `blue`.
    Blue(Blue<P>),
    /// `sfb`.
    Sfb(Sfb<P>),
    /// `codel`.
    Codel(Codel<P>),
    /// `fq_codel`.
    FqCodel(FqCodel<P>),
    /// `pie`.
    Pie(Pie<P>),
    /// `fq_pie`.
    FqPie(FqPie<P>),
    /// `cobalt`.
    Cobalt(Cobalt<P>),
    /// `fq_cobalt`.
    FqCobalt(FqCobalt<P>),
    /// `daqm`.
    Daqm(Box<Daqm<P>>),
    /// `cake`; it is larger than the others.
    Cake(Box<Cake<P>>),
    /// `pi2`.
    Pi2(Pi2<P>),
    /// `dualpi2`.
    DualPi2(DualPi2<P>),
}

macro_rules! each {
    ($self:expr, $queue:ident => $body:expr) => {
        match $self {
            Queue::Fifo($queue) => $body,
            Queue::Red($queue) => $body,
            Queue::Choke($queue) => $body,
            Queue::Blue($queue) => $body,
            Queue::Sfb($queue) => $body,
            Queue::Codel($queue) => $body,
            Queue::FqCodel($queue) => $body,
            Queue::Pie($queue) => $body,
            Queue::FqPie($queue) => $body,
            Queue::Cobalt($queue) => $body,
            Queue::FqCobalt($queue) => $body,
            Queue::Daqm($queue) => $body,
            Queue::Cake($queue) => $body,
            Queue::Pi2($queue) => $body,
            Queue::DualPi2($queue) => $body,
        }
    };
}

impl<P: Packet> Queue<P> {
    /// The name of its discipline.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fifo(queue) => queue.params().table().name,
            Self::Red(_) => "red",
            Self::Choke(_) => "choke",
            Self::Blue(_) => "blue",
            Self::Sfb(_) => "sfb",
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq_codel",
            Self::Pie(_) => "pie",
            Self::FqPie(_) => "fq_pie",
            Self::Cobalt(_) => "cobalt",
            Self::FqCobalt(_) => "fq_cobalt",
            Self::Daqm(_) => "daqm",
            Self::Cake(_) => "cake",
            Self::Pi2(_) => "pi2",
            Self::DualPi2(_) => "dualpi2",
        }
    }
}

impl<P: Packet> View for Queue<P> {
    #[inline]
    fn packets(&self) -> usize {
        each!(self, queue => queue.packets())
    }

    #[inline]
    fn bytes(&self) -> u64 {
        each!(self, queue => queue.bytes())
    }

    #[inline]
    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        each!(self, queue => queue.enqueued_at(n))
    }
}

impl<P: Packet> Discipline<P> for Queue<P> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: P,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        each!(self, queue => queue.enqueue(now, packet, draws, sink))
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Nanos,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        each!(self, queue => queue.dequeue(now, draws, sink))
    }

    fn wake_up(&self) -> Option<Nanos> {
        each!(self, queue => queue.wake_up())
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        each!(self, queue => queue.next_timer())
    }

    fn on_timer(&mut self, now: Nanos) {
        each!(self, queue => queue.on_timer(now));
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        each!(self, queue => queue.state(visit));
    }

    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        each!(self, queue => queue.flow_state(flow, visit));
    }

    fn lists(&self, visit: &mut dyn FnMut(usize, usize)) {
        each!(self, queue => queue.lists(visit));
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        each!(self, queue => queue.counters(visit));
    }
}
