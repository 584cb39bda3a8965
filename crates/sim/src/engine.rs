//! The event loop: virtual time, and who acts next.
//!
//! # Order of events
//! By time, then
//! 1. the clock: end of the warm-up, samples of time series, audits, changes of links in the order of
//!    the plan, readings of queues by balancers, the end of the run;
//! 2. links, by their number in the plan, each in a turn of its own: what arrives at its far end enters the next link,
//!    or is taken by its host, within the same event, and what the host sends in answer follows at once; then
//!    connections go on whose segments have left the queues of their hosts, in their order;
//! 3. timers: applications, those of flows in the order of the plan (groups, then flows in them) and
//!    then the plan's own, and after them connections by slot.
//!
//! Nothing else decides, so a run is a function of plan and seed.

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
use sojourn_units::{EPOCH, Nanos};

/// Audits of the ledgers in a run, in addition to the last one at its end.
const AUDITS: u64 = 16;
/// Calls of `progress` by simulated time.
const STEPS: u64 = 200;
/// ... and by events, for runs whose steps are long.
const EVENTS_A_STEP: u64 = 1 << 22;

/// A run in progress.
pub struct Engine<'a> {
    /// The services for applications.
    pub world: World<'a>,
    /// All applications: those of flows, with their numbers, then others.
    pub apps: Vec<AnyApp>,
    /// Timers that were due so far.
    timers: u64,
    /// Turns of the event loop so far.
    processed: u64,
    /// Time series.
    pub series: Series,
    /// Counts of each flow over time.
    pub monitor: Monitor,
    /// Whether the run reached its end.
    pub complete: bool,
    end: Nanos,
    ticks: Ticks,
    /// Events and arrivals at the present instant.
    instant: u64,
    instant_limit: u64,
}

/// When the clock itself acts.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    warmup: Nanos,
    sample: Nanos,
    audit: Nanos,
    change: Nanos,
    reading: Nanos,
    step: Nanos,
    /// Where the caller wants to go on later.
    pause: Nanos,
    next: Nanos,
}

impl Ticks {
    /// Whether something looks at links when the clock acts next: all but the caller's view of how far the run is.
    fn looks(&self, end: Nanos) -> bool {
        let looks =
            [self.warmup, self.sample, self.audit, self.change, self.reading, self.pause, end];
        looks.contains(&self.next)
    }

    fn schedule(&mut self, end: Nanos) {
        self.next =
            [self.sample, self.audit, self.change, self.reading, self.step, self.pause, end]
                .into_iter()
                .fold(self.warmup, Nanos::min);
    }
}

impl<'a> Engine<'a> {
    /// A run at its beginning.
    ///
    /// # Errors
    /// If the plan cannot be run.
    pub fn new(plan: &'a Plan, seed: u64, options: Options) -> Result<Self, RunError> {
        plan.validate()?;
        plan.check_simulated()?;
        let mut world = World::new(plan, seed, options);
        let apps = apps(&mut world)?;
        // Applications of the plan may still open paths.
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
            end,
            ticks,
            instant: 0,
            instant_limit: 1_000_000 + 1_000 * busy as u64,
        })
    }

    /// Runs to the end, or until stopped.
    ///
    /// # Errors
    /// If the books do not balance, or time stands still.
    pub fn run(&mut self, progress: &mut dyn FnMut(Progress) -> Control) -> Result<(), RunError> {
        self.process(progress)?;
        self.audit()?;
        Ok(())
    }

    /// Events so far: on links ([`Network::events`](sojourn_network::Network::events)), and timers.
    pub fn events(&self) -> u64 {
        self.world.net.events() + self.timers
    }

    /// Processes the events before this time since the start, which may be one of the past.
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

    /// Compares all ledgers with the packets present.
    fn audit(&self) -> Result<(), Imbalance> {
        self.world.net.audit()?;
        let mut apps = self.apps.iter().zip(0..);
        apps.try_for_each(|(app, id)| app.audit(&self.world, id))
    }

    fn progress(&self) -> Progress {
        let (now, duration) = (self.world.now - EPOCH, self.world.plan.duration);
        Progress { now, duration, events: self.events(), processed: self.processed }
    }

    /// The clock acts. Says whether the run is over.
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

    /// Segments have left the queues of their hosts: connections that waited for that go on.
    #[cold]
    fn wake_senders(&mut self) {
        self.instant += 1;
        while let Some((app, connection, change)) = self.world.wake_sender() {
            if let Some(change) = change {
                self.tell(app, connection, change);
            }
        }
    }

    /// A timer is due.
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

    /// Hands packets that have reached their hosts to them.
    #[inline]
    fn take_arrivals(&mut self) {
        let mut taken = 0;
        while let Some(packet) = self.world.net.next_arrival(&mut taken) {
            // Hosts may answer at this same instant without end: limit the arrivals of an instant.
            self.instant += 1;
            if self.instant > self.instant_limit {
                return;
            }
            let body = self.world.net.receive(self.world.now, &packet);
            match body.load {
                _ if packet.is_damaged() => {}
                // The application has this one already.
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

    /// An end of a connection takes a segment and answers; its owner hears of both.
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

/// Makes the applications of a world's plan, and the flows that some of them move.
fn apps(world: &mut World) -> Result<Vec<AnyApp>, RunError> {
    let plan = world.plan;
    let mut apps = Vec::new();
    let mut make = |declared: Declared, world: &mut World| {
        let id = apps.len() as u32;
        let app = AnyApp::try_new(declared, world, id)?;
        apps.push(app.expect("an application for everything that a valid plan declares"));
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
    Ok(apps)
}
