//! The event loop: virtual time, and the order of events.
//!
//! # Order of events
//! Events are processed in the order of time. At the same time the order is:
//! 1. the clock: end of the warm-up, samples of time series, audits, changes of links in the order
//!    of the plan, readings of queues by balancers, the end of the run;
//! 2. links, by their number in the plan. A packet that arrives at a link's far end enters the next
//!    link or is received by its host within the same event, and the host's answer is sent at once.
//!    Then the connections whose segments have left the queues of their hosts may send more, in the
//!    order in which these segments left;
//! 3. timers: of the flows' applications in the order of the plan (groups, then flows in them), of
//!    the plan's own applications, and of connections by slot.
//!
//! The order depends on nothing else, so the results of a run depend only on plan and seed.

use crate::app::{App, Declared, Event};
use crate::apps::AnyApp;
use crate::load::{Cargo, Datagram};
use crate::monitor::Monitor;
use crate::progress::{Control, Progress, RunError};
use crate::series::Series;
use crate::world::{Change, Handle, NEVER, Timer, World};
use sojourn_measure::Imbalance;
use sojourn_network::{Body, Options, Packet};
use sojourn_plan::Plan;
use sojourn_tcp::Segment;
use sojourn_units::{EPOCH, Nanos, SECOND};

/// Number of audits of the ledgers during a run, at equal steps of simulated time. One more follows
/// at the end.
const AUDITS: u64 = 16;
/// Number of equal steps of simulated time, after each of which `progress` is called.
const STEPS: u64 = 200;
/// Time from the start of a run with a user's policy at which its trace is noted in addition, for a
/// repetition that ends there.
pub const EARLY: Nanos = 5 * SECOND;
/// Number of events after which `progress` is called in addition, for runs with long steps.
const EVENTS_A_STEP: u64 = 1 << 22;

/// A run in progress.
pub struct Engine<'a> {
    /// The services for applications.
    pub world: World<'a>,
    /// All applications: those of flows, with the flows' numbers as indices, then the plan's own.
    pub apps: Vec<AnyApp>,
    /// Number of timers that have fired.
    timers: u64,
    /// Number of events that the event loop has processed.
    processed: u64,
    /// The time series of links, groups and flows.
    pub series: Series,
    /// Counts of each flow over time.
    pub monitor: Monitor,
    /// Whether the run reached its end.
    pub complete: bool,
    /// Trace hash at [`EARLY`], in runs with a user's policy that have reached it.
    pub early: Option<u128>,
    end: Nanos,
    ticks: Ticks,
    /// Number of events and arrivals at the present instant.
    instant: u64,
    /// Value of `instant` above which the run fails.
    instant_limit: u64,
}

/// Times of the clock's next actions; [`NEVER`] if an action does not happen any more.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    warmup: Nanos,
    sample: Nanos,
    audit: Nanos,
    change: Nanos,
    reading: Nanos,
    early: Nanos,
    step: Nanos,
    /// When the loop returns to a caller that continues the run later.
    pause: Nanos,
    /// The earliest of these times and the end of the run.
    next: Nanos,
}

impl Ticks {
    /// Returns whether the clock's next action depends on the state of links. Only a call of
    /// `progress` does not.
    fn looks(&self, end: Nanos) -> bool {
        self.next == self.state(end)
    }

    fn schedule(&mut self, end: Nanos) {
        self.next = self.step.min(self.state(end));
    }

    /// Returns the time of the next action that depends on the state of links.
    fn state(&self, end: Nanos) -> Nanos {
        let Self { warmup, sample, audit, change, reading, early, pause, .. } = *self;
        [sample, audit, change, reading, early, pause, end].into_iter().fold(warmup, Nanos::min)
    }
}

impl<'a> Engine<'a> {
    /// Returns a run at its beginning.
    ///
    /// # Errors
    /// If the plan cannot be run.
    pub fn new(plan: &'a Plan, seed: u64, options: Options) -> Result<Self, RunError> {
        plan.validate()?;
        plan.check_simulated()?;
        Self::with(plan, seed, options, None)
    }

    /// Returns a run at its beginning, with another application after those of a valid plan.
    ///
    /// # Errors
    /// If the plan cannot be run.
    pub fn with(
        plan: &'a Plan,
        seed: u64,
        options: Options,
        other: Option<Declared>,
    ) -> Result<Self, RunError> {
        let others = other.iter().count();
        let mut world = World::new(plan, seed, options, others);
        let apps = apps(&mut world, other)?;
        // The applications in `plan.apps` may use new paths in the run, and a new path ends fusing.
        if plan.apps.is_empty() {
            world.net.fuse(plan);
        }
        let end = EPOCH + plan.duration;
        let interval = plan.observe.series_interval;
        let mut ticks = Ticks {
            warmup: EPOCH + plan.warmup,
            sample: if interval > 0 { EPOCH } else { NEVER },
            audit: EPOCH + plan.duration.div_ceil(AUDITS),
            change: world.net.next_change().unwrap_or(NEVER),
            reading: world.next_reading(),
            early: if plan.sources.is_empty() { NEVER } else { EPOCH + EARLY },
            step: EPOCH,
            pause: NEVER,
            next: EPOCH,
        };
        ticks.schedule(end);
        let busy = world.flows.len() + plan.links.len();
        Ok(Self {
            world,
            apps,
            timers: 0,
            processed: 0,
            series: Series::new(plan),
            monitor: Monitor::default(),
            complete: false,
            early: None,
            end,
            ticks,
            instant: 0,
            instant_limit: 1_000_000 + 1_000 * busy as u64,
        })
    }

    /// Runs to the end, or until `progress` returns [`Control::Stop`].
    ///
    /// # Errors
    /// If an audit finds an imbalance, or if too many events occur at one instant.
    pub fn run(&mut self, progress: &mut dyn FnMut(Progress) -> Control) -> Result<(), RunError> {
        self.process(progress)?;
        self.audit()?;
        Ok(())
    }

    /// Returns the number of events so far: events on links
    /// ([`Network::events`](sojourn_network::Network::events)) plus timers that have fired.
    pub fn events(&self) -> u64 {
        self.world.net.events() + self.timers
    }

    /// Processes all events before `until`, counted from the run's start. A time in the past has no
    /// effect.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_until(&mut self, until: Nanos) -> Result<(), RunError> {
        let pause = EPOCH.saturating_add(until);
        if self.complete || pause <= self.world.now {
            return Ok(());
        }
        self.ticks.pause = pause;
        self.ticks.schedule(self.end);
        self.process(&mut |_| Control::Continue)?;
        if self.complete {
            self.audit()?;
        }
        Ok(())
    }

    fn process(&mut self, progress: &mut dyn FnMut(Progress) -> Control) -> Result<(), RunError> {
        let mut quota = EVENTS_A_STEP;
        loop {
            if self.world.net.observer.has_left() {
                self.wake_senders();
            } else {
                let link = self.world.net.due.first();
                let timer = self.world.timers.first();
                let link_at = link.map_or(NEVER, |(at, _)| at);
                let timer_at = timer.map_or(NEVER, |(at, _)| at);
                let at = link_at.min(timer_at);
                if self.ticks.next <= at {
                    if self.tick(progress)? {
                        break;
                    }
                    continue;
                }
                let before = self.world.now;
                assert!(at >= before, "time went back from {before} to {at}");
                self.processed += 1;
                self.instant = if at > before { 0 } else { self.instant + 1 };
                self.world.now = at;
                match (link, timer) {
                    (Some((_, id)), _) if link_at <= timer_at => self.world.net.run(at, id),
                    (_, Some((_, timer))) => {
                        self.timers += 1;
                        self.fire(timer);
                    }
                    _ => unreachable!("an event has a link or a timer"),
                }
            }
            self.take_arrivals();
            if self.instant > self.instant_limit {
                return Err(RunError::NoProgress { at: self.world.now - EPOCH });
            }
            if self.processed >= quota {
                quota = self.processed + EVENTS_A_STEP;
                if progress(self.progress()) == Control::Stop {
                    self.world.net.catch_up(self.world.now);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Compares all ledgers with the packets in the network and the state of the applications.
    fn audit(&self) -> Result<(), Imbalance> {
        self.world.net.audit()?;
        let mut apps = self.apps.iter().zip(0..);
        apps.try_for_each(|(app, id)| app.audit(&self.world, id))
    }

    fn progress(&self) -> Progress {
        let (now, duration) = (self.world.now - EPOCH, self.world.plan.duration);
        let sum = |(done, total): (u64, u64), app: &AnyApp| {
            app.work().map(|(finished, all)| (done + finished, total + all))
        };
        let work = self.apps.iter().try_fold((0, 0), sum).filter(|&(_, total)| total > 0);
        Progress { now, duration, events: self.events(), processed: self.processed, work }
    }

    /// Does the clock's actions that are due. Returns whether the event loop must return: at the
    /// end of the run, at a stop or at a pause.
    #[cold]
    fn tick(&mut self, progress: &mut dyn FnMut(Progress) -> Control) -> Result<bool, RunError> {
        let now = self.ticks.next;
        let plan = self.world.plan;
        self.world.now = now;
        if self.ticks.looks(self.end) {
            self.world.net.catch_up(now);
        }
        if now == self.ticks.warmup {
            self.ticks.warmup = NEVER;
            self.world.restart();
            self.apps.iter_mut().for_each(App::restart);
        }
        if now == self.ticks.sample {
            self.ticks.sample += plan.observe.series_interval;
            self.series.sample(&self.world);
            if plan.observe.monitor {
                self.monitor.sample(&self.world);
            }
        }
        if now == self.ticks.audit {
            self.ticks.audit += plan.duration.div_ceil(AUDITS);
            self.audit()?;
        }
        if now == self.ticks.change {
            self.world.net.change_links(now);
            self.ticks.change = self.world.net.next_change().unwrap_or(NEVER);
        }
        if now == self.ticks.reading {
            self.world.read_queues();
            self.ticks.reading = self.world.next_reading();
        }
        if now == self.ticks.early {
            self.ticks.early = NEVER;
            self.early = Some(self.world.net.trace_hash());
        }
        let mut over = now == self.end;
        self.complete |= over;
        if now == self.ticks.step || over {
            self.ticks.step += plan.duration.div_ceil(STEPS);
            if progress(self.progress()) == Control::Stop {
                self.world.net.catch_up(now);
                over = true;
            }
        }
        if now == self.ticks.pause {
            self.ticks.pause = NEVER;
            over = true;
        }
        self.ticks.schedule(self.end);
        Ok(over)
    }

    /// Resumes connections that waited for their segments to leave their hosts' queues.
    #[cold]
    fn wake_senders(&mut self) {
        self.instant += 1;
        while let Some((app, connection, change)) = self.world.wake_sender() {
            if let Some(change) = change {
                self.tell(app, connection, change);
            }
        }
    }

    /// Notifies the owner of a timer that is due.
    #[inline]
    fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::End(slot) => {
                if let Some((app, connection, change)) = self.world.end_due(slot) {
                    self.tell(app, connection, change);
                    self.tell(app, connection, Change::Settled);
                }
            }
            Timer::App(id) => self.apps[id as usize].on_timer(&mut self.world, id),
        }
    }

    #[inline]
    fn tell(&mut self, app: u32, connection: Handle, change: Change) {
        let event = Event::Connection(connection, change);
        self.apps[app as usize].on_event(&mut self.world, app, event);
    }

    /// Passes the packets that have reached their hosts to connections and applications.
    #[inline]
    fn take_arrivals(&mut self) {
        let mut taken = 0;
        while let Some(packet) = self.world.net.next_arrival(&mut taken) {
            // Over links with neither delay nor rate, hosts could answer each other endlessly at
            // this instant.
            self.instant += 1;
            if self.instant > self.instant_limit {
                return;
            }
            let body = self.world.net.receive(self.world.now, &packet);
            match body.load {
                _ if packet.is_damaged() => {}
                // A duplicate: the application has received another copy.
                Cargo::Datagram(_) if body.copies.taken() => {}
                Cargo::Segment(segment) => self.take_segment(&packet, &body, &segment),
                Cargo::Datagram(datagram) => self.take_datagram(&body, datagram),
            }
        }
    }

    #[inline]
    fn take_datagram(&mut self, body: &Body<Cargo>, datagram: Datagram) {
        let (id, delay) = (body.endpoint, self.world.now - body.sent_at);
        let event = Event::Datagram(datagram, delay);
        self.apps[id as usize].on_event(&mut self.world, id, event);
    }

    /// Passes a segment to its end of a connection, sends the answer, and notifies the connection's
    /// owner of each change.
    fn take_segment(&mut self, packet: &Packet, body: &Body<Cargo>, segment: &Segment) {
        let Some(taken) = self.world.take_segment(packet, body, segment) else { return };
        let (app, connection) = (taken.app, taken.connection);
        if taken.followed {
            let progress = Change::Progress { delivered: taken.delivered, room: taken.room };
            self.tell(app, connection, progress);
        }
        if let Some(gone) = self.world.flush(connection.slot) {
            self.tell(app, connection, gone);
        }
        if let Some(change) = taken.after {
            self.tell(app, connection, change);
        }
    }
}

/// Returns the applications of a world's plan and the other one, and adds the flows to the world.
fn apps(world: &mut World, other: Option<Declared>) -> Result<Vec<AnyApp>, RunError> {
    let plan = world.plan;
    let mut apps = Vec::new();
    let mut make = |declared: Declared, world: &mut World| {
        let id = apps.len() as u32;
        let app = AnyApp::try_new(declared, world, id)?;
        apps.push(app.expect("every declaration of a valid plan has an application"));
        Ok::<_, RunError>(())
    };
    for (g, group) in plan.groups.iter().enumerate() {
        for planned in group.flows(world.seed, plan.duration) {
            world.add_flow(g, &planned)?;
            make(Declared::Flow(group, &planned), world)?;
        }
    }
    for (i, app) in plan.apps.iter().enumerate() {
        make(Declared::App(i, app), world)?;
    }
    other.into_iter().try_for_each(|declared| make(declared, world))?;
    Ok(apps)
}
