//! Queue disciplines whose policy is code outside this crate.
//!
//! A [`Policy`] decides. [`External`] holds the packets, applies the decisions and ensures the
//! contract of a discipline: each packet is sent, dropped or queued. A policy that violates its
//! contract, or returns a [`Fault`], is notified once ([`Policy::on_fault`]) and not called again.
//! From then on the queue is a FIFO, so that the run can end.
//!
//! The folder `examples/policies/` contains a complete policy with its own `main`.

mod backlog;

use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{
    Call, Dequeue, Discipline, Draws as AnyDraws, DropReason, MarkReason, Return, Sink, Totals,
    View,
};
use crate::limit::Unit;
use crate::packet::Packet;
use backlog::Action;
pub use backlog::{Backlog, Id, PacketInfo};
use sojourn_random::{Key, Stream};
use sojourn_units::declare::{Parameters, derived, unset};
pub use sojourn_units::external::Fault;
use sojourn_units::external::{Code, Spec};
use sojourn_units::{Nanos, params};
use std::sync::{Arc, Mutex, PoisonError};

/// The decision about an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet is queued.
    Accept,
    /// The packet is dropped.
    Drop(DropReason),
    /// The packet is queued with CE set, or dropped if it is not ECN-capable.
    Mark(MarkReason),
}

/// The result of a policy's `dequeue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This packet leaves; it must be queued or taken.
    Packet(Id),
    /// The queue is empty.
    Empty,
    /// The queue has packets, but none may leave before this time, which must be after `now`.
    NotBefore(Nanos),
}

/// The decisions of a queue discipline.
///
/// # Contract
/// - `enqueue` decides about the arriving packet, which does not yet count in the backlog. It may
///   drop or mark queued packets, but not take one.
/// - `dequeue` returns a packet if the queue is not empty, or a time before which no packet may
///   leave. A packet that it takes must be returned or dropped.
/// - Packets of one flow leave in the order of arrival.
/// - Equal calls and draws give equal decisions.
pub trait Policy: Send + Sync {
    /// Decides about a packet; called when the packet arrives.
    ///
    /// # Errors
    /// A fault of the policy's own code.
    fn enqueue(&mut self, now: Nanos, packet: Id, queue: &mut Backlog) -> Result<Verdict, Fault>;

    /// Selects the packet to send; called when the link is free, also for an empty queue.
    ///
    /// # Errors
    /// A fault of the policy's own code.
    fn dequeue(&mut self, now: Nanos, queue: &mut Backlog) -> Result<Next, Fault>;

    /// Returns the time at which [`Policy::on_timer`] is due; `None` without a periodic task.
    /// Before the first packet, [`Params::period`] determines it.
    fn next_timer(&self) -> Option<Nanos>;

    /// Runs the periodic task; called when it is due.
    ///
    /// # Errors
    /// A fault of the policy's own code.
    fn on_timer(&mut self, now: Nanos, queue: &Backlog) -> Result<(), Fault>;

    /// Replaces the policy's parameters.
    ///
    /// # Errors
    /// If the policy does not support the change, or its own code has a fault.
    fn change(&mut self, params: &Params) -> Result<(), Fault>;

    /// Visits the state on which decisions depend; the policy decides which values it reports.
    fn state(&self, visit: &mut dyn FnMut(&str, i128));

    /// Returns a copy of the policy in its present state.
    fn copy(&self) -> Box<dyn Policy>;

    /// Receives the first fault of the policy, after which the policy is not called again.
    fn on_fault(&mut self, now: Nanos, fault: &Fault);
}

/// Creates policies of one class with one set of parameters, one policy for each queue.
pub trait Factory: Send + Sync {
    /// Returns a policy for a queue created at `now`; `draws` are the policy's random draws.
    ///
    /// # Errors
    /// A fault of the policy's own code.
    fn create(&self, params: &Params, now: Nanos, draws: Draws) -> Result<Box<dyn Policy>, Fault>;

    /// Receives the fault of a failed [`Factory::create`]. The queue is then a FIFO.
    fn on_fault(&self, now: Nanos, fault: &Fault);
}

/// The random draws of a policy, from a random stream of the run or from a recording.
#[derive(Clone)]
pub struct Draws(Source);

#[derive(Clone)]
enum Source {
    Stream(Stream),
    Given(Arc<Mutex<dyn AnyDraws + Send>>),
}

impl Draws {
    /// Returns draws from a separate random stream with this key.
    pub fn keyed(key: u64) -> Self {
        Self(Source::Stream(Key::new(key, "policy").stream("draws")))
    }

    /// Returns draws from `draws`, such as those of a recording.
    pub fn given(draws: Arc<Mutex<dyn AnyDraws + Send>>) -> Self {
        Self(Source::Given(draws))
    }

    /// Returns a uniform real number in the open interval (0, 1).
    pub fn uniform(&mut self) -> f64 {
        match &mut self.0 {
            Source::Stream(stream) => stream.uniform(),
            Source::Given(_) => ((self.draw_u64() >> 12) as f64 + 0.5) / (1u64 << 52) as f64,
        }
    }

    fn ask<T>(
        &mut self,
        stream: impl FnOnce(&mut Stream) -> T,
        given: impl FnOnce(&mut dyn AnyDraws) -> T,
    ) -> T {
        match &mut self.0 {
            Source::Stream(own) => stream(own),
            Source::Given(draws) => {
                given(&mut *draws.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }
}

impl AnyDraws for Draws {
    fn draw_u16(&mut self) -> u16 {
        self.ask(Stream::next_u16, |draws| draws.draw_u16())
    }

    fn draw_u32(&mut self) -> u32 {
        self.ask(Stream::next_u32, |draws| draws.draw_u32())
    }

    fn draw_u64(&mut self) -> u64 {
        self.ask(Stream::next_u64, |draws| draws.draw_u64())
    }
}

/// Maximum number of packets in an external queue, which bounds its memory for any policy.
pub const MOST_PACKETS: u32 = 1 << 20;

params! {
    "policy of your own": "";

    /// Parameters of an external discipline.
    #[derive(Clone, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    pub struct Params on Device {
        /// Name, source and parameters of the policy.
        spec: Spec = unset(),
        /// Limit of the queue; packets above it are dropped without a call of the policy.
        limit: u32 = derived(|_| MOST_PACKETS),
        /// Unit of `limit`.
        unit: Unit = derived(|_| Unit::Packets),
        /// Time between calls of the periodic task, in nanoseconds; 0 without a periodic task.
        #[serde(default)]
        period: Nanos = unset(),
        /// Largest frame of the device, in bytes.
        mtu: u32 = derived(|device: &Device| device.psched_mtu),
        /// Code of the policy.
        #[serde(skip)]
        code: Code<dyn Factory> = unset(),
    }
}

impl Params {
    /// Returns parameters with default values for a policy in Rust; `name` identifies the policy.
    pub fn bound(name: &str, factory: Arc<dyn Factory>) -> Self {
        let code = Code::new(factory);
        Self { spec: Spec::named(name), code, ..Self::new(&Device::default()) }
    }

    /// Replaces the parameters by `params` of the same policy.
    ///
    /// # Errors
    /// If `params` are of another policy, or of another version of its source.
    pub fn replace(&mut self, params: &Self) -> Result<(), String> {
        let (old, new) = (&self.spec, &params.spec);
        if old.policy != new.policy {
            return Err(format!(
                "`{}` cannot be changed into `{}`: a change must name the same policy",
                old.policy, new.policy
            ));
        }
        if old.source != new.source {
            return Err(format!(
                "the source of `{}` differs from the running version; start a new run",
                new.policy
            ));
        }
        let (mtu, code) = (self.mtu, std::mem::take(&mut self.code));
        *self = Self { mtu, code, ..params.clone() };
        Ok(())
    }
}

impl DisciplineParams for Params {
    const NOT_IN_KERNEL: Option<&'static str> =
        Some("Linux cannot run a policy from outside its kernel");

    fn limit(&self) -> Option<(Unit, u32)> {
        Some((self.unit, self.limit))
    }
}

/// A queue with an external policy.
pub struct External<P> {
    params: Params,
    begin: Nanos,
    policy: Option<Box<dyn Policy>>,
    failed: bool,
    packets: Vec<Option<P>>,
    backlog: Backlog,
    totals: Totals,
    marks: u64,
    wake: Option<Nanos>,
    timer: Option<Nanos>,
    left_at: Option<Nanos>,
}

impl<P: Clone> Clone for External<P> {
    fn clone(&self) -> Self {
        Self {
            params: self.params.clone(),
            begin: self.begin,
            policy: self.policy.as_ref().map(|policy| policy.copy()),
            failed: self.failed,
            packets: self.packets.clone(),
            backlog: self.backlog.clone(),
            totals: self.totals,
            marks: self.marks,
            wake: self.wake,
            timer: self.timer,
            left_at: self.left_at,
        }
    }
}

impl<P> std::fmt::Debug for External<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("External")
            .field("params", &self.params)
            .field("failed", &self.failed)
            .field("backlog", &self.backlog)
            .finish_non_exhaustive()
    }
}

impl<P: Packet> Configured<P, Params> for External<P> {
    /// Returns an empty queue, created at `now`. The policy is created at the first call that has
    /// draws.
    ///
    /// # Panics
    /// If no code is bound to the parameters.
    fn new(params: Params, now: Nanos) -> Self {
        let _ = params.code.of(&params.spec);
        let timer = (params.period > 0).then(|| now + params.period);
        Self {
            params,
            begin: now,
            policy: None,
            failed: false,
            packets: Vec::new(),
            backlog: Backlog::default(),
            totals: Totals::default(),
            marks: 0,
            wake: None,
            timer,
            left_at: None,
        }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. If the new limit is exceeded, the oldest packets are dropped.
    fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        let code = std::mem::take(&mut self.params.code);
        self.params = Params { code, ..params };
        if let Some(policy) = &mut self.policy
            && !self.failed
            && let Err(fault) = policy.change(&self.params)
        {
            self.fail(now, &fault);
        }
        while self.backlog.packets() > 0 && !self.fits(0) {
            let Some(head) = self.backlog.head() else { break };
            self.backlog.actions.push(Action::Drop(head, DropReason::Overflow));
            self.backlog.remove(head);
            self.apply(sink);
        }
    }
}

impl<P: Packet> External<P> {
    /// Visits the policy's state, with the values that the policy reports.
    pub fn policy_state(&self, visit: &mut dyn FnMut(&str, i128)) {
        if let Some(policy) = &self.policy {
            policy.state(visit);
        }
    }

    /// Returns whether the queued packets and an arriving one of `len` bytes are within the limit;
    /// with `len` 0, whether the queued packets are.
    fn fits(&self, len: u32) -> bool {
        let arriving = usize::from(len > 0);
        let packets = self.backlog.packets() + arriving;
        let within = match self.params.unit {
            Unit::Packets => packets <= self.params.limit as usize,
            Unit::Bytes => self.backlog.bytes() + u64::from(len) <= u64::from(self.params.limit),
        };
        within && packets <= MOST_PACKETS as usize
    }

    /// Calls the policy through `ask` and returns its result; `None` after a fault.
    fn ask<T>(
        &mut self,
        now: Nanos,
        draws: &mut impl AnyDraws,
        ask: impl FnOnce(&mut dyn Policy, &mut Backlog) -> Result<T, Fault>,
    ) -> Option<T> {
        if self.failed {
            return None;
        }
        if self.policy.is_none() {
            let draws = Draws::keyed(draws.draw_key());
            let factory = self.params.code.of(&self.params.spec);
            match factory.create(&self.params, self.begin, draws) {
                Ok(policy) => self.policy = Some(policy),
                Err(fault) => {
                    self.failed = true;
                    factory.on_fault(now, &fault);
                    return None;
                }
            }
        }
        let policy = self.policy.as_deref_mut()?;
        match ask(policy, &mut self.backlog) {
            Ok(answer) => Some(answer),
            Err(fault) => {
                self.fail(now, &fault);
                None
            }
        }
    }

    #[cold]
    fn fail(&mut self, now: Nanos, fault: &Fault) {
        self.failed = true;
        self.timer = None;
        if let Some(policy) = &mut self.policy {
            policy.on_fault(now, fault);
        }
    }

    /// Applies the policy's drops and marks to the packets.
    fn apply(&mut self, sink: &mut impl Sink<P>) {
        for action in self.backlog.actions.drain(..) {
            match action {
                Action::Drop(id, reason) => {
                    if let Some(packet) = self.packets[id.slot()].take() {
                        self.totals.drops += 1;
                        sink.dropped(packet, reason, true);
                    }
                }
                Action::Mark(id, reason) => {
                    if let Some(packet) = &mut self.packets[id.slot()]
                        && packet.set_ce()
                    {
                        self.marks += 1;
                        sink.marked(packet, reason);
                    }
                }
            }
        }
    }

    fn refuse(&mut self, packet: P, reason: DropReason, sink: &mut impl Sink<P>) -> Return {
        self.totals.refuse(packet, reason, sink);
        Return::Drop
    }

    /// Checks the result of the policy's `dequeue` against the contract.
    fn settle(&mut self, next: Next, now: Nanos) -> Result<Next, Fault> {
        let number = |id| self.backlog.get(id).map_or(0, |info| info.number);
        if let Some(taken) = self.backlog.taken()
            && next != Next::Packet(taken)
        {
            let number = number(taken);
            return backlog::fault(format!(
                "packet {number} was taken from the queue and neither returned nor dropped"
            ));
        }
        let left = self.backlog.packets();
        match next {
            Next::Packet(id) if self.backlog.get(id).is_none() => backlog::fault(
                "the returned packet is not in the queue: it has left or was dropped",
            ),
            Next::Empty if left > 0 => backlog::fault(format!(
                "`dequeue` returned no packet although {left} are queued: return one, or the \
                 time before which none may leave"
            )),
            Next::NotBefore(_) if left == 0 => Ok(Next::Empty),
            Next::NotBefore(time) if time <= now => backlog::fault(format!(
                "`dequeue` returned the wait time {time} ns, which must be later than now ({now} ns)"
            )),
            next => Ok(next),
        }
    }
}

impl<P: Packet> View for External<P> {
    fn packets(&self) -> usize {
        self.backlog.packets()
    }

    fn bytes(&self) -> u64 {
        self.backlog.bytes()
    }

    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        let id = self.backlog.iter().nth(n)?;
        self.backlog.get(id).map(|info| info.at)
    }

    fn left_at(&self) -> Option<Nanos> {
        self.left_at
    }
}

impl<P: Packet> Discipline<P> for External<P> {
    fn enqueue(&mut self, packet: P, call: &mut Call<'_, impl AnyDraws, impl Sink<P>>) -> Return {
        self.wake = None;
        if !self.fits(packet.len()) {
            return self.refuse(packet, DropReason::Overflow, call.sink);
        }
        let info = PacketInfo::of(&packet, call.sink.headers(&packet), call.now);
        let id = self.backlog.arrive(info);
        if self.packets.len() <= id.slot() {
            self.packets.resize_with(id.slot() + 1, || None);
        }
        self.packets[id.slot()] = Some(packet);
        let verdict = self.ask(call.now, call.draws, |policy, queue| {
            let verdict = policy.enqueue(call.now, id, queue)?;
            match queue.taken() {
                Some(_) => backlog::fault("`enqueue` took a packet from the queue"),
                None => Ok(verdict),
            }
        });
        let dropped = match verdict {
            None | Some(Verdict::Accept) => None,
            Some(Verdict::Drop(reason)) => Some(reason),
            Some(Verdict::Mark(reason)) => match self.backlog.mark(id, reason) {
                Ok(true) => None,
                _ => Some(DropReason::Early),
            },
        };
        self.apply(call.sink);
        if let Some(reason) = dropped {
            self.backlog.remove(id);
            if let Some(packet) = self.packets[id.slot()].take() {
                return self.refuse(packet, reason, call.sink);
            }
        } else {
            self.backlog.accept(id);
        }
        Return::Success
    }

    fn dequeue(&mut self, call: &mut Call<'_, impl AnyDraws, impl Sink<P>>) -> Dequeue<P> {
        self.wake = None;
        let next = self.ask(call.now, call.draws, |policy, queue| policy.dequeue(call.now, queue));
        let next = match next.map(|next| self.settle(next, call.now)) {
            Some(Ok(next)) => Some(next),
            Some(Err(fault)) => {
                self.fail(call.now, &fault);
                None
            }
            None => None,
        };
        self.apply(call.sink);
        let id = match next {
            Some(Next::Packet(id)) => Some(id),
            Some(Next::Empty) => None,
            Some(Next::NotBefore(time)) => {
                self.wake = Some(time);
                return Dequeue::NotBefore(time);
            }
            None => self.backlog.taken().or_else(|| self.backlog.head()),
        };
        let Some(id) = id else { return Dequeue::Empty };
        self.left_at = self.backlog.get(id).map(|info| info.at);
        self.backlog.remove(id);
        match self.packets[id.slot()].take() {
            Some(packet) => {
                self.totals.sent(packet.len());
                Dequeue::Packet(packet)
            }
            None => Dequeue::Empty,
        }
    }

    fn wake_up(&self) -> Option<Nanos> {
        self.wake
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.timer
    }

    fn on_timer(&mut self, now: Nanos) {
        let result = match &mut self.policy {
            Some(policy) => policy.on_timer(now, &self.backlog).map(|()| policy.next_timer()),
            // The policy does not exist before the first packet: there is nothing to update.
            None => Ok(self.timer.map(|at| at + self.params.period)),
        };
        match result {
            Ok(next) => self.timer = next.map(|next| next.max(now + 1)),
            Err(fault) => self.fail(now, &fault),
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
        visit("ecn_mark", self.marks);
    }
}
