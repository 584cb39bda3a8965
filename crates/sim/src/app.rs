//! The contract of applications with the engine.

use crate::load::Datagram;
use crate::world::{Change, Handle, World};
use sojourn_measure::{Histogram, Imbalance, Moments};
use sojourn_network::Row;
use sojourn_plan::{Flow, Group, PlanError};
use sojourn_units::Nanos;

/// The declarations of a plan: an application is made from the ones that it knows.
#[derive(Clone, Copy, Debug)]
pub enum Declared<'a> {
    /// A flow of a group. Its application has the flow's number.
    Flow(&'a Group, &'a Flow),
    /// One of the plan's own applications, and its number among them.
    App(usize, &'a sojourn_plan::App),
}

/// An event that concerns an application.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A datagram has come to the flow's receiver after this delay.
    Datagram(Datagram, Nanos),
    /// Something happened to a connection of the application.
    Connection(Handle, Change),
}

/// The results of an application, at the end of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Payload that came to its receiver; TCP's own count if `None`.
    pub bytes: Option<u64>,
    /// Writes of a packet source over TCP, refused ones too.
    pub writes: u64,
    /// Refused writes.
    pub refused: u64,
    /// Interarrival jitter in seconds, or not a number.
    pub jitter: f64,
    /// Mean opinion score, or not a number.
    pub mos: f64,
    /// Delays of its packets or writes.
    pub delays: Moments,
    /// Web pages loaded.
    pub pages: u64,
    /// Metrics of its group, which are means over the group's flows; not numbers are left out.
    pub means: Vec<(&'static str, f64)>,
    /// Rows of the summary with their names.
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
            means: Vec::new(),
            rows: Vec::new(),
            distributions: Vec::new(),
        }
    }
}

/// An application: it acts when its timer is due or something happened, by means of the world alone.
///
/// `id` is its own number, by which it sets its timer. Applications of flows come first, in the order
/// of groups and flows, then those of the plan's `apps`; of several whose timers are due at the same
/// time the one with the lowest number acts first.
pub trait App: Sized {
    /// Makes the application if what is declared is of its kind, and sets its first timer.
    ///
    /// # Errors
    /// If the plan cannot be run.
    fn try_new(declared: Declared, world: &mut World, id: u32) -> Result<Option<Self>, PlanError>;

    /// Its timer is due. The timer stays set until it is set anew or cleared.
    fn on_timer(&mut self, world: &mut World, id: u32);

    /// Something happened.
    fn on_event(&mut self, world: &mut World, id: u32, event: Event);

    /// The warm-up is over: what was counted before does not count any more.
    fn restart(&mut self);

    /// Compares its ledgers with its state.
    ///
    /// # Errors
    /// The imbalance, if there is one.
    fn audit(&self, world: &World, id: u32) -> Result<(), Imbalance>;

    /// Returns what it found since the end of the warm-up.
    fn report(&self, world: &World, id: u32) -> Report;
}
