//! A replicated store: clients, coordinators and replicas, over TCP connections that stay open.
//!
//! Each client has its own connection to each coordinator that it uses. Between nodes, as in
//! Cassandra, each connection carries messages in one direction: A's messages to B use the
//! connection that A opened, and B's answers use the one that B opened. A lost packet therefore
//! delays all later messages of its connection until TCP has retransmitted it. The store itself
//! repeats no message: a coordinator sends a request to a replica only once. A node's tasks take
//! time; a limited number of them is in service at once, and the others wait in a queue.
//!
//! The files are: `client` makes requests, `coordinator` handles them, `service` processes the
//! nodes' tasks, `outage` applies faults; the decisions are those of `crates/replication`. These
//! files act on the types of `message`, `request`, `replica`, `faults`, `probe`, `staleness` and on
//! [`Store`].
//!
//! Differences from Cassandra: the snitch does not measure the speed of nodes; a write is sent to
//! each replica in another data centre, not forwarded by one of them; a scan reads the replicas of
//! its first record; nodes detect a failure a fixed time after it, not by gossip; hints are handed
//! over without a rate limit.
//!
//! Events of the store are processed in the order of time and then of their addition to the
//! schedule.

mod client;
mod coordinator;
mod faults;
mod keys;
mod message;
mod outage;
mod probe;
mod replica;
mod request;
mod script;
mod service;
mod speculation;
mod staleness;
mod summary;

pub use script::{Asked, Kind, script};

use crate::app::{App, Declared, Report};
use crate::channels::{Channels, Host, Mail};
use crate::schedule::Schedule;
use crate::world::{Change, World};
use faults::Faults;
use message::{Id, Message};
use probe::{NAMES, Probe};
use replica::{Replica, Task};
use request::Slots;
use sojourn_measure::{Count, Imbalance, ledger::balance};
use sojourn_plan::{PlanError, Store as Params, at};
use sojourn_random::{Key, Stream};
use sojourn_replication::{Chooser, Hints, NodeId, Placement, Ring, murmur3};
use sojourn_units::{EPOCH, Nanos};
use speculation::Waits;
use staleness::Staleness;
use std::collections::{BTreeSet, VecDeque};

/// Maximum number of hints that a node keeps.
const MOST_HINTS: usize = 1 << 20;

/// An event that is due at a time.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A client makes a request, in a closed loop.
    Issue { client: u32 },
    /// A client's next request is due, in an open loop.
    Arrive { client: u32 },
    /// A node has finished a task. `life` is the node's number of crashes when the task began.
    Served { node: NodeId, life: u32, task: Task },
    /// A request's timeout at its client expires.
    ClientExpires { id: Id },
    /// A request's timeout at its coordinator expires.
    Expires { id: Id },
    /// A coordinator sends a read that has waited long to another replica.
    Speculate { id: Id },
    /// A fault enters a stage: it begins, is detected, ends, or its end is detected.
    Fault { index: u32, stage: u8 },
}

/// One client.
pub(super) struct Client {
    data_centre: u32,
    chooser: Chooser,
    work: Stream,
    gaps: Stream,
    /// Number of requests in progress.
    active: u32,
    /// Requests that wait until fewer are in progress.
    backlog: VecDeque<Id>,
}

/// The store in a run.
pub struct Store {
    params: Params,
    ring: Ring,
    placement: Placement,
    /// Key of record 0, which depends on the seed.
    base: u64,
    key: Key,
    now: Nanos,
    schedule: Schedule<Event>,
    channels: Channels<Message>,
    clients: Vec<Client>,
    replicas: Vec<Replica>,
    hints: Vec<Hints<(u64, u64)>>,
    slots: Slots,
    faults: Faults,
    keys: keys::Keys,
    /// Number of messages that hosts have received.
    taken: u64,
    /// Number of the last version assigned to a write.
    version: u64,
    /// Number of requests made.
    issued: u64,
    probe: Probe,
    staleness: Staleness,
    /// Waiting times of speculative reads that follow a percentile.
    waits: Option<Waits>,
    /// The replicas of a record, as the last call of [`Self::find_replicas`] found them.
    found: Vec<NodeId>,
}

impl Store {
    /// Returns the store of a plan that is valid.
    ///
    /// # Errors
    /// If the nodes' tokens make no ring, which is possible only with random tokens.
    fn new(params: &Params, world: &World, (number, id): (usize, u32)) -> Result<Self, PlanError> {
        let seed = world.seed;
        let wrong = |message| PlanError::new(at!["apps", number, "tokens"], message);
        let ring = params.ring(seed).map_err(wrong)?;
        let key = Key::new(seed, &params.name);
        let (nodes, patience) = (params.nodes.len(), &params.patience);
        let reading: BTreeSet<u32> = params.clients.iter().map(|c| c.data_centre).collect();
        let need = |&local: &u32| params.read_level.need(&params.placement, local);
        let mut store = Self {
            ring,
            placement: params.placement.clone(),
            base: params.first_key(seed),
            key,
            now: EPOCH,
            schedule: Schedule::default(),
            channels: Channels::new(id, &params.tcp, key),
            clients: Vec::with_capacity(params.clients.len()),
            replicas: (0..nodes).map(|n| Replica::new(key.child(n as u64))).collect(),
            hints: (0..nodes).map(|_| Hints::new(MOST_HINTS)).collect(),
            slots: Slots::default(),
            faults: Faults::new(params),
            keys: keys::Keys::new(&params.workload),
            taken: 0,
            version: 0,
            issued: 0,
            probe: Probe::new(EPOCH + world.plan.warmup, params.load.warmup, nodes),
            staleness: Staleness::new(reading.iter().map(need).collect()),
            waits: patience.percentile.map(|rule| Waits::new(rule, patience.read, nodes)),
            found: Vec::new(),
            params: params.clone(),
        };
        store.begin_clients();
        for (index, at, stage) in store.faults.schedule() {
            store.at(at, Event::Fault { index, stage });
        }
        Ok(store)
    }

    fn at(&mut self, at: Nanos, event: Event) {
        self.schedule.add(at, event);
    }

    /// Returns the host number of a client. Nodes have the first numbers.
    fn client_host(&self, client: u32) -> Host {
        self.replicas.len() as Host + client
    }

    /// Returns the plan's node of a host.
    fn node_of(&self, host: Host) -> u32 {
        let nodes = self.params.nodes.len();
        let host = host as usize;
        let of =
            if host < nodes { self.params.nodes[host] } else { self.params.clients[host - nodes] };
        of.node as u32
    }

    /// Stores the replicas of a record in `found`. The token is the hash of the record's key in the
    /// bytes of Cassandra's type `bigint`.
    fn find_replicas(&mut self, record: u64) {
        let key = self.base.wrapping_add(record).to_be_bytes();
        self.placement.replicas(&self.ring, murmur3::token(&key), &mut self.found);
    }

    /// Sends a message on the sender's own channel.
    fn send(&mut self, world: &mut World, from: Host, to: Host, message: Message) {
        let nodes = [self.node_of(from), self.node_of(to)];
        let cut = self.faults.cut(from, to, self.now);
        self.probe.messages += 1;
        self.channels.post(world, (from, to), nodes, message, cut);
    }

    /// Processes the events that are due and the messages that have arrived, and sets the timer.
    fn act(&mut self, world: &mut World, id: u32) {
        self.now = world.now;
        while let Some((_, event)) = self.schedule.take_due(self.now) {
            match event {
                Event::Issue { client } => self.issue(world, client),
                Event::Arrive { client } => self.arrive(world, client),
                Event::Served { node, life, task } => self.served(world, node, life, task),
                Event::ClientExpires { id } => self.client_expires(world, id),
                Event::Expires { id } => self.expires(world, id),
                Event::Speculate { id } => self.speculate(world, id),
                Event::Fault { index, stage } => self.fault(world, index, stage),
            }
        }
        loop {
            if let Some(mail) = self.channels.next_mail() {
                self.taken += 1;
                self.take(world, mail);
            } else if let Some((from, to)) = self.channels.next_broken() {
                self.broken(world, from, to);
            } else {
                break;
            }
        }
        match self.schedule.next_at() {
            Some(at) => world.set_timer(id, at.max(world.now)),
            None => world.clear_timer(id),
        }
    }

    /// Handles a message that has reached its host.
    fn take(&mut self, world: &mut World, Mail { from, to, message }: Mail<Message>) {
        match message {
            Message::Ask { id, .. } => self.enqueue(world, to, Task::Coordinate { id }),
            Message::Answer { id, outcome, .. } => self.answered(world, id, outcome),
            Message::Write { id, step, key, version, .. } => {
                self.enqueue(world, to, Task::Write { from, id, step, key, version });
            }
            Message::Read { id, step, key, records } => {
                self.enqueue(world, to, Task::Read { from, id, step, key, records });
            }
            Message::Done { id, step, version, .. } => {
                self.done(world, from, to, id, step, version);
            }
            Message::Hint { key, version, .. } => {
                self.enqueue(world, to, Task::Hint { from, key, version });
            }
            Message::Hinted => self.hand_over(world, to, from),
        }
    }
}

impl App for Store {
    fn try_new(declared: Declared, world: &mut World, id: u32) -> Result<Option<Self>, PlanError> {
        let Declared::App(number, sojourn_plan::App::Store(params)) = declared else {
            return Ok(None);
        };
        let store = Self::new(params, world, (number, id))?;
        if let Some(at) = store.schedule.next_at() {
            world.set_timer(id, at);
        }
        Ok(Some(store))
    }

    fn on_timer(&mut self, world: &mut World, id: u32) {
        self.act(world, id);
    }

    fn on_event(&mut self, world: &mut World, id: u32, event: crate::app::Event) {
        let crate::app::Event::Connection(connection, change) = event else { return };
        self.channels.on_change(connection, change);
        if change == Change::Settled {
            self.act(world, id);
        }
    }

    /// Has no effect: each request records whether it is measured.
    fn restart(&mut self) {}

    /// Compares the ledgers with the messages in transit and the requests in progress.
    fn audit(&self, _world: &World, _id: u32) -> Result<(), Imbalance> {
        let name = &self.params.name;
        let count = |packets| Count { packets, bytes: 0 };
        let gone = self.taken + self.channels.lost;
        let booked = count(self.probe.messages.wrapping_sub(gone));
        let found = count(self.channels.pending());
        balance(|| format!("messages of {name}"), booked, found)?;
        for (kind, (what, ledger)) in NAMES.iter().zip(&self.probe.ledgers).enumerate() {
            // `pending` is `None` if there are more outcomes than requests: an imbalance.
            let booked = count(ledger.pending().unwrap_or(u64::MAX));
            let found = count(self.slots.waiting(kind));
            balance(|| format!("{what} of {name}"), booked, found)?;
        }
        let held = self.probe.ledgers.iter().map(|ledger| ledger.offered).sum::<u64>();
        balance(|| format!("requests of {name}"), count(held), count(self.issued))
    }

    fn work(&self) -> Option<(u64, u64)> {
        self.params.load.requests.map(|requests| (self.issued, requests))
    }

    fn report(&self, world: &World, id: u32) -> Report {
        Report {
            rows: self.rows(world, id),
            distributions: self.distributions(),
            ..Report::default()
        }
    }
}
