//! A policy's view of the servers, limited to the information that the policy's type permits.

use crate::facts::{Backlog, Counters, Server};
use crate::pick::{Draws, Pick, Reason};
use sojourn_units::Nanos;
use std::marker::PhantomData;

/// Everything that a balancer knows of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) server: Server,
    pub(crate) up: bool,
    pub(crate) open: u32,
    pub(crate) backlog: Option<(Nanos, Backlog)>,
    pub(crate) counters: Option<(Nanos, Counters)>,
}

impl Known {
    /// Returns a server that is up and has no flows or readings.
    pub(crate) fn new(server: Server) -> Self {
        Self { server, up: true, open: 0, backlog: None, counters: None }
    }
}

/// A part of the information about a server.
pub trait View: Copy {
    #[doc(hidden)]
    fn of(known: &Facts<'_>) -> Option<Self>;
}

/// All information about a server, which policies cannot access.
#[derive(Debug)]
pub struct Facts<'a>(&'a Known);

/// The empty view, for policies without information.
impl View for () {
    fn of(_: &Facts<'_>) -> Option<Self> {
        Some(())
    }
}

/// Open flows of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Number of the server's flows that have not finished.
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

/// All information about a server, including the times of readings.
#[derive(Clone, Copy, Debug)]
pub struct Everything {
    /// Number of the server's flows that have not finished.
    pub open: u32,
    /// Queue of the server's port, with the time of the reading.
    pub backlog: Option<(Nanos, Backlog)>,
    /// Counters of the server's port, with the time of the reading.
    pub counters: Option<(Nanos, Counters)>,
}

impl View for Everything {
    fn of(known: &Facts<'_>) -> Option<Self> {
        let &Known { open, backlog, counters, .. } = known.0;
        Some(Self { open, backlog, counters })
    }
}

/// The servers of a balancer, as a policy with the view `V` sees them.
#[derive(Debug)]
pub struct Servers<'a, V> {
    servers: &'a [Known],
    view: PhantomData<V>,
}

impl<'a, V: View> Servers<'a, V> {
    pub(crate) fn new(servers: &'a [Known]) -> Self {
        Self { servers, view: PhantomData }
    }

    /// Returns the number of servers, including those that are down.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Returns whether there are no servers.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Returns whether a server is up.
    pub fn is_up(&self, server: usize) -> bool {
        self.servers[server].up
    }

    /// Returns a server's weight.
    pub fn weight(&self, server: usize) -> u32 {
        self.servers[server].server.weight
    }

    /// Returns a server's identifier.
    pub fn id(&self, server: usize) -> u64 {
        self.servers[server].server.id
    }

    /// Returns the view of a server; `None` if the view needs a reading that the server lacks.
    pub fn get(&self, server: usize) -> Option<V> {
        V::of(&Facts(&self.servers[server]))
    }

    /// Returns the indices of the servers that are up.
    pub fn up(&self) -> impl Iterator<Item = usize> + Clone + 'a {
        let servers = self.servers;
        (0..servers.len()).filter(move |&i| servers[i].up)
    }

    /// Returns a random server among those that are up and for which `fits` returns true; `None` if
    /// no server fits. All these servers are equally likely.
    pub fn draw(&self, fits: impl Fn(usize) -> bool, draws: &mut Draws<'_>) -> Option<usize> {
        let fitting = || self.up().filter(|&i| fits(i));
        match fitting().count() {
            0 => None,
            1 => fitting().next(),
            n => fitting().nth(draws(n as u64) as usize),
        }
    }

    /// Returns the server with the least `key` among those that are up; ties are broken at random.
    /// Servers without a key are excluded. If no server has a key, returns a random one.
    pub fn least<K: PartialOrd + Copy>(
        &self,
        key: impl Fn(usize) -> Option<K>,
        draws: &mut Draws<'_>,
    ) -> Option<Pick> {
        self.least_of(self.up(), key, draws)
            .or_else(|| self.draw(|_| true, draws).map(|i| (i, Reason::Unread)))
    }

    /// Like [`least`](Self::least), but among the servers `among`; `None` if none of these has a
    /// key.
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
