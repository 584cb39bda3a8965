//! The interface between applications and the engine.

use crate::apps::server::Params as ServerParams;
use crate::load::Datagram;
use crate::world::{Change, Handle, World};
use sojourn_measure::{Histogram, Imbalance, Moments};
use sojourn_network::Row;
use sojourn_plan::{Flow, Group, PlanError};
use sojourn_units::Nanos;

/// A plan's declaration of an application.
#[derive(Clone, Copy, Debug)]
pub enum Declared<'a> {
    /// A group and one of its flows. The application has the flow's number.
    Flow(&'a Group, &'a Flow),
    /// One of the plan's own applications, with its index among them.
    App(usize, &'a sojourn_plan::App),
    /// A server for the study of receive buffers, with the policy of its buffers. No plan declares
    /// it.
    Server(&'a ServerParams, &'a sojourn_buffer::Params),
}

/// An event that concerns an application.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A datagram has reached the flow's receiver, with this one-way delay.
    Datagram(Datagram, Nanos),
    /// A connection of the application has changed.
    Connection(Handle, Change),
}

/// The results of an application, at the end of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Bytes of payload that reached the receiver since the end of the warm-up; `None` if TCP's
    /// count is to be used.
    pub bytes: Option<u64>,
    /// Writes of a packet source over TCP, including refused writes.
    pub writes: u64,
    /// Writes that were refused because the send buffer was full.
    pub refused: u64,
    /// Interarrival jitter in seconds; NaN if the application has none.
    pub jitter: f64,
    /// Mean opinion score; NaN unless the application is a call.
    pub mos: f64,
    /// One-way delays of the application's packets or writes.
    pub delays: Moments,
    /// Web pages loaded.
    pub pages: u64,
    /// Starts of the transfers, and of the Web pages, that have not ended.
    pub open: [Vec<Nanos>; 2],
    /// Names and values of further metrics. The group's value is the mean over the flows whose
    /// value is not NaN.
    pub means: Vec<(&'static str, f64)>,
    /// Rows of the summary, each with the prefix of its metrics.
    pub rows: Vec<(String, Row)>,
    /// Distributions of times: place, metric, values.
    pub distributions: Vec<(String, &'static str, Histogram)>,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            bytes: None,
            writes: 0,
            refused: 0,
            jitter: f64::NAN,
            mos: f64::NAN,
            delays: Moments::default(),
            pages: 0,
            open: Default::default(),
            means: Vec::new(),
            rows: Vec::new(),
            distributions: Vec::new(),
        }
    }
}

/// An application. It acts when its timer is due or an event concerns it, and only through the
/// world.
///
/// `id` is the application's number, by which it sets its timer. Applications of flows have the
/// first numbers, in the order of groups and flows; those of the plan's `apps` follow. If several
/// timers are due at the same time, the application with the lowest number acts first.
pub trait App: Sized {
    /// Creates the application and sets its first timer; returns `None` if the declaration is of
    /// another kind.
    ///
    /// # Errors
    /// If the plan cannot be run.
    fn try_new(declared: Declared, world: &mut World, id: u32) -> Result<Option<Self>, PlanError>;

    /// Acts when the application's timer is due. The timer stays due until the application sets it
    /// anew or clears it.
    fn on_timer(&mut self, world: &mut World, id: u32);

    /// Handles an event that concerns the application.
    fn on_event(&mut self, world: &mut World, id: u32, event: Event);

    /// Begins the measurements anew at the end of the warm-up.
    fn restart(&mut self);

    /// Compares the application's ledgers with its state.
    ///
    /// # Errors
    /// If a ledger differs from the state.
    fn audit(&self, world: &World, id: u32) -> Result<(), Imbalance>;

    /// Returns the begun and the total number of requests; `None` if the application acts until
    /// the end of the run.
    fn work(&self) -> Option<(u64, u64)> {
        None
    }

    /// Returns the application's results since the end of the warm-up.
    fn report(&self, world: &World, id: u32) -> Report;
}
