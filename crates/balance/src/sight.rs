//! What a policy sees of its servers: the part that its type allows.

use crate::facts::{Backlog, Counters, Server};
use crate::pick::{Draws, Pick, Reason};
use sojourn_units::Nanos;
use std::marker::PhantomData;

/// What is known of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) server: Server,
    pub(crate) up: bool,
    pub(crate) open: u32,
    pub(crate) backlog: Option<(Nanos, Backlog)>,
    pub(crate) counters: Option<(Nanos, Counters)>,
}

impl Known {
    /// A server that is up and of which nothing is known.
    pub(crate) fn new(server: Server) -> Self {
        Self { server, up: true, open: 0, backlog: None, counters: None }
    }
}

/// A part of what is known of a server; `None` if it was never read.
pub trait View: Copy {
    #[doc(hidden)]
    fn of(known: &Facts<'_>) -> Option<Self>;
}

/// All that is known of a server, closed to policies.
#[derive(Debug)]
pub struct Facts<'a>(&'a Known);

/// Nothing at all.
impl View for () {
    fn of(_: &Facts<'_>) -> Option<Self> {
        Some(())
    }
}

/// Flows given out that have not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// How many.
    pub open: u32,
}

impl View for Connections {
    fn of(known: &Facts<'_>) -> Option<Self> {
        Some(Self { open: known.0.open })
    }
}

impl View for Counters {
    fn of(known: &Facts<'_>) -> Option<Self> {
        known.0.counters.map(|(_, counters)| counters)
    }
}

impl View for Backlog {
    fn of(known: &Facts<'_>) -> Option<Self> {
        known.0.backlog.map(|(_, backlog)| backlog)
    }
}

/// All that is known of a server, with the times of readings.
#[derive(Clone, Copy, Debug)]
pub struct Everything {
    /// Flows given to it that have not finished.
    pub open: u32,
    /// Its port's queue.
    pub backlog: Option<(Nanos, Backlog)>,
    /// Its port's counters.
    pub counters: Option<(Nanos, Counters)>,
}

impl View for Everything {
    fn of(known: &Facts<'_>) -> Option<Self> {
        let &Known { open, backlog, counters, .. } = known.0;
        Some(Self { open, backlog, counters })
    }
}

/// The servers as a policy with view `V` sees them.
#[derive(Debug)]
pub struct Sight<'a, V> {
    servers: &'a [Known],
    view: PhantomData<V>,
}

impl<'a, V: View> Sight<'a, V> {
    pub(crate) fn new(servers: &'a [Known]) -> Self {
        Self { servers, view: PhantomData }
    }

    /// Number of servers, also those that are down.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Whether there are no servers.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Whether a server is up.
    pub fn is_up(&self, server: usize) -> bool {
        self.servers[server].up
    }

    /// A server's weight.
    pub fn weight(&self, server: usize) -> u32 {
        self.servers[server].server.weight
    }

    /// What a server is known by.
    pub fn id(&self, server: usize) -> u64 {
        self.servers[server].server.id
    }

    /// What is seen of a server; none if it was never read.
    pub fn get(&self, server: usize) -> Option<V> {
        V::of(&Facts(&self.servers[server]))
    }

    /// The servers that are up.
    pub fn up(&self) -> impl Iterator<Item = usize> + Clone + 'a {
        let servers = self.servers;
        (0..servers.len()).filter(move |&i| servers[i].up)
    }

    /// One of the servers that are up and for which `fits`, drawn with equal chances.
    pub fn draw(&self, fits: impl Fn(usize) -> bool, draws: &mut Draws<'_>) -> Option<usize> {
        let fitting = || self.up().filter(|&i| fits(i));
        match fitting().count() {
            0 => None,
            1 => fitting().next(),
            n => fitting().nth(draws(n as u64) as usize),
        }
    }

    /// The server that is up with the least `key`, ties by draw. Servers without a key are out; if none
    /// that is up has one, one of them is drawn.
    pub fn least<K: PartialOrd + Copy>(
        &self,
        key: impl Fn(usize) -> Option<K>,
        draws: &mut Draws<'_>,
    ) -> Option<Pick> {
        self.least_of(self.up(), key, draws)
            .or_else(|| self.draw(|_| true, draws).map(|i| (i, Reason::Unread)))
    }

    /// As [`least`](Self::least) among some servers; none if none of them has a key.
    pub fn least_of<K: PartialOrd + Copy>(
        &self,
        among: impl Iterator<Item = usize> + Clone,
        key: impl Fn(usize) -> Option<K>,
        draws: &mut Draws<'_>,
    ) -> Option<Pick> {
        let mut best: Option<(K, usize, u64)> = None;
        for i in among.clone() {
            let Some(k) = key(i) else { continue };
            match &mut best {
                Some((least, _, ties)) if k == *least => *ties += 1,
                Some((least, ..)) if k >= *least => {}
                _ => best = Some((k, i, 1)),
            }
        }
        let (least, first, ties) = best?;
        if ties == 1 {
            return Some((first, Reason::Least));
        }
        let nth = draws(ties) as usize;
        among.filter(|&i| key(i) == Some(least)).nth(nth).map(|i| (i, Reason::Tie))
    }
}
