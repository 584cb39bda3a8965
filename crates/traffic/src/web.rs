//! `web`: sessions of pages of objects, each object fetched by HTTP/1.0.
//!
//! Source: Feldmann, Gilbert, Huang, Willinger, "Dynamics of IP traffic: a study of the role of
//! variability and the impact of control", SIGCOMM 1999, as ns-2 ships it (`webcache/webtraf`).
//!
//! A session belongs to one client and is a number of pages. Each page comes from one server, drawn
//! uniformly, and is a number of objects. An object is a request of one packet on a connection of its
//! own, answered on a new connection by a number of packets. Objects of a page are requested one
//! inter-object time after the other, whether or not the earlier ones have come. The next page follows
//! one inter-page time after the last object of this one has come (or, optionally, after this one's
//! start). Counts are rounded up.

use crate::words::{distribution, positive};
use serde::{Deserialize, Serialize};
use sojourn_random::{Distribution, Key, Stream, Unit};
use sojourn_units::words::{self, Given, Kind, Table, Word, WordError};
use sojourn_units::{Bytes, Nanos};
use std::fmt::Write;

/// A named set of parameters.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its word.
    pub name: &'static str,
    /// What it sets.
    pub words: &'static str,
    /// Where the numbers come from, and which are our own choice.
    pub source: &'static str,
}

/// The names of [`PRESETS`].
const PRESET_NAMES: &[&str] = &[
    "pareto-2",
    "pareto-1",
    "ns2-small",
    "ns2-large",
    "ns2-embedded",
    "red-pd",
    "wireless",
    "mice-elephants",
];

/// The published parameter sets. Where a source says nothing, a session has 250 pages as in ns-2's
/// large example, and the choice is ours.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "pareto-2",
        words: "pages 250 interpage pareto2(10s,2) objects pareto2(3,1.5) \
                interobject pareto2(500ms,1.5) size pareto2(12,1.2) packet 1460",
        source: "Feldmann's `Pareto 2` in the values of a DOCSIS script for ns-2; its name from memory; \
                 pages a session and packet length ours",
    },
    Preset {
        name: "pareto-1",
        words: "pages 250 interpage pareto(50s,2) objects pareto(4,1.2) \
                interobject pareto(500ms,1.5) size pareto(12,1.2) packet 1460",
        source: "Feldmann's `Pareto 1`: objects, inter-object and size from a DOCSIS script for ns-2; \
                 inter-page and the name from memory; pages a session and packet length ours",
    },
    Preset {
        name: "ns2-small",
        words: "pages 10 interpage exp(1s) objects 1 interobject exp(10ms) size pareto2(10,1.2) \
                packet 1000 intersession 100ms",
        source: "ns-2 tcl/ex/web-traffic.tcl",
    },
    Preset {
        name: "ns2-large",
        words: "pages 250 interpage exp(15s) objects 1 interobject exp(10ms) size pareto2(12,1.2) \
                packet 1000 intersession exp(1s)",
        source: "ns-2 tcl/ex/large-scale-web-traffic.tcl (400 sessions, 4200 s)",
    },
    Preset {
        name: "ns2-embedded",
        words: "pages 5 interpage exp(15s) objects 3 interobject exp(10ms) size pareto2(12,1.2) \
                packet 1000 intersession exp(1s)",
        source: "ns-2 web-traffic-embobj.tcl",
    },
    Preset {
        name: "red-pd",
        words: "pages 100 interpage exp(10s) objects exp(10) interobject exp(10ms) \
                size pareto2(24,1.2) packet 500 intersession exp(1s)",
        source: "Mahajan and Floyd, RED-PD, as in ns-2 (50 sessions, Sack1)",
    },
    Preset {
        name: "wireless",
        words: "pages 250 interpage exp(15s) objects 1 interobject exp(10ms) size pareto2(12,1.2) \
                packet 1000",
        source: "Floyd's wireless-scripts/web.tcl gives the shapes and the inter-object time only; the \
                 other numbers are those of ns2-large; its sessions start uniformly over the run",
    },
    Preset {
        name: "mice-elephants",
        words: "pages 250 interpage exp(9.5s) objects exp(2) interobject exp(50ms) \
                size bpareto(4,200,1.2) packet 1000",
        source: "Guo and Matta, from memory: 4 to 200 KB as packets of 1000 bytes; pages ours",
    },
];

/// The words of `web`.
pub const TABLE: Table = Table {
    name: "web",
    summary: "Web sessions: pages of objects, each object on a connection of its own (HTTP/1.0)",
    source: "Feldmann, Gilbert, Huang, Willinger, SIGCOMM 1999; ns-2 webcache/webtraf",
    words: &[
        Word {
            name: "preset",
            kind: Kind::Choice { of: PRESET_NAMES },
            default: "pareto-2",
            doc: "A published set of parameters; further words override it.",
        },
        Word { name: "pages", kind: Kind::Name, default: "250", doc: "Pages of a session." },
        Word {
            name: "interpage",
            kind: Kind::Name,
            default: "pareto2(10s,2)",
            doc: "Time from page to page, see `gapfrom`.",
        },
        Word {
            name: "gapfrom",
            kind: Kind::Choice { of: &["end", "start"] },
            default: "end",
            doc: "Whether `interpage` counts from the end of all objects of a page or from its start.",
        },
        Word {
            name: "objects",
            kind: Kind::Name,
            default: "pareto2(3,1.5)",
            doc: "Objects of a page, rounded up.",
        },
        Word {
            name: "interobject",
            kind: Kind::Name,
            default: "pareto2(500ms,1.5)",
            doc: "Time from request to request in a page.",
        },
        Word {
            name: "size",
            kind: Kind::Name,
            default: "pareto2(12,1.2)",
            doc: "Packets of an object, rounded up.",
        },
        Word {
            name: "packet",
            kind: Kind::Size,
            default: "1460",
            doc: "Application bytes of a packet.",
        },
        Word {
            name: "intersession",
            kind: Kind::Name,
            default: "",
            doc: "Time between starts of sessions; without it the group's `start` decides.",
        },
        Word {
            name: "renew",
            kind: Kind::Switch { off: "once" },
            default: "renew",
            doc: "Whether a new session begins when one ends, so that their number stays.",
        },
    ],
};

/// From where the time between pages counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GapFrom {
    /// From the end of all objects of the page.
    #[default]
    End,
    /// From the start of the page: pages overlap when the network is slow, which gives more load.
    Start,
}

/// What the user sets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Pages of a session, rounded up.
    pub pages: Distribution,
    /// Nanoseconds from page to page.
    pub inter_page: Distribution,
    /// From where they count.
    pub gap_from: GapFrom,
    /// Objects of a page, rounded up.
    pub objects: Distribution,
    /// Nanoseconds from request to request within a page.
    pub inter_object: Distribution,
    /// Packets of an object, rounded up.
    pub size: Distribution,
    /// Application bytes of a packet.
    pub packet: u32,
    /// Nanoseconds between starts of sessions, if the sessions' starts are given so.
    pub inter_session: Option<Distribution>,
    /// A new session begins when one ends.
    pub renew: bool,
}

impl Default for Params {
    fn default() -> Self {
        Self::preset("pareto-2").expect("it is a preset")
    }
}

impl Params {
    /// The published set called `name`.
    pub fn preset(name: &str) -> Option<Self> {
        let preset = PRESETS.iter().find(|preset| preset.name == name)?;
        let tokens = words::tokens(preset.words);
        let given = words::read(&TABLE, &tokens, preset.words.len()).expect("presets are tested");
        // Every preset sets every distribution, so these never show.
        let nothing = Distribution::constant(1.0);
        let mut params = Self {
            pages: nothing,
            inter_page: nothing,
            gap_from: GapFrom::End,
            objects: nothing,
            inter_object: nothing,
            size: nothing,
            packet: 1460,
            inter_session: None,
            renew: true,
        };
        params.set(&given).expect("presets are tested");
        Some(params)
    }

    fn set(&mut self, given: &Given) -> Result<(), WordError> {
        let take = |place: &mut Distribution, word, unit| {
            let value = if unit == Unit::Time {
                distribution(given, word, unit)?
            } else {
                positive(given, word, unit)?
            };
            *place = value.unwrap_or(*place);
            Ok::<(), WordError>(())
        };
        take(&mut self.pages, "pages", Unit::Number)?;
        take(&mut self.inter_page, "interpage", Unit::Time)?;
        take(&mut self.objects, "objects", Unit::Number)?;
        take(&mut self.inter_object, "interobject", Unit::Time)?;
        take(&mut self.size, "size", Unit::Number)?;
        if let Some(between) = distribution(given, "intersession", Unit::Time)? {
            self.inter_session = Some(between);
        }
        match given.text("gapfrom") {
            Some("start") => self.gap_from = GapFrom::Start,
            Some(_) => self.gap_from = GapFrom::End,
            None => {}
        }
        if let Some(packet) = given.integer("packet") {
            if !(1..=65_535).contains(&packet) {
                return Err(given.error("packet", "`packet` must be from 1 to 65535 bytes"));
            }
            self.packet = packet as u32;
        }
        if let Some(renew) = given.flag("renew") {
            self.renew = renew;
        }
        Ok(())
    }

    pub(crate) fn read(given: &Given) -> Result<Self, WordError> {
        let preset = given.text("preset").and_then(Self::preset);
        let mut params = preset.unwrap_or_default();
        params.set(given)?;
        Ok(params)
    }

    pub(crate) fn write(&self) -> String {
        let number = |d: Distribution| d.format(Unit::Number);
        let time = |d: Distribution| d.format(Unit::Time);
        let mut text = format!(
            "web pages {} interpage {} gapfrom {} objects {} interobject {} size {} packet {} {}",
            number(self.pages),
            time(self.inter_page),
            if self.gap_from == GapFrom::End { "end" } else { "start" },
            number(self.objects),
            time(self.inter_object),
            number(self.size),
            self.packet,
            if self.renew { "renew" } else { "once" },
        );
        if let Some(between) = self.inter_session {
            let _ = write!(text, " intersession {}", time(between));
        }
        text
    }

    /// Starts of sessions from `first` on, if they are given by times between them: each start is
    /// one such time after the one before, the first one after `first`.
    pub fn session_starts(&self, key: Key, first: Nanos) -> Option<impl Iterator<Item = Nanos>> {
        let between = self.inter_session?;
        let mut stream = key.stream("session");
        let mut at = first;
        Some(std::iter::repeat_with(move || {
            at += between.sample_nanos(&mut stream);
            at
        }))
    }
}

/// An object of a session; pages count on through renewed sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectId {
    /// Number of the page, from 0.
    pub page: u32,
    /// Number of the object within the page, from 0.
    pub object: u32,
}

/// An object to be fetched: open a connection from the client to the server, send the request, and
/// answer on a new connection once it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When.
    pub at: Nanos,
    /// Which.
    pub object: ObjectId,
    /// Index of the server.
    pub server: u32,
    /// Bytes of the request: one packet.
    pub request: Bytes,
    /// Packets of the answer.
    pub packets: u64,
    /// Bytes of the answer.
    pub bytes: Bytes,
}

/// A page that has come wholly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its number.
    pub number: u32,
    /// When its first object was requested.
    pub started: Nanos,
    /// When its last object had come.
    pub finished: Nanos,
    /// Its objects.
    pub objects: u32,
    /// Its packets.
    pub packets: u64,
}

#[derive(Clone, Debug)]
struct Loading {
    page: Page,
    server: u32,
    requested: u32,
    completed: u32,
    /// When the next object is requested; none is left if `None`.
    next_request: Option<Nanos>,
}

/// One session, or with renewal a sequence of them.
#[derive(Clone, Debug)]
pub struct Session {
    params: Params,
    servers: u32,
    counts: Stream,
    gaps: Stream,
    choices: Stream,
    object_counts: Stream,
    object_gaps: Stream,
    sizes: Stream,
    pages_left: u64,
    pages_begun: u32,
    next_page: Option<Nanos>,
    /// Pages begun and not complete: one, unless they overlap.
    loading: Vec<Loading>,
    sessions_finished: u32,
}

impl Session {
    /// A session that requests its first page at `start` from one of `servers`.
    ///
    /// # Panics
    /// If there are no servers.
    pub fn new(params: &Params, key: Key, servers: u32, start: Nanos) -> Self {
        assert!(servers > 0, "a Web session needs a server");
        let mut session = Self {
            params: *params,
            servers,
            counts: key.stream("pages"),
            gaps: key.stream("interpage"),
            choices: key.stream("server"),
            object_counts: key.stream("objects"),
            object_gaps: key.stream("interobject"),
            sizes: key.stream("size"),
            pages_left: 0,
            pages_begun: 0,
            next_page: None,
            loading: Vec::with_capacity(1),
            sessions_finished: 0,
        };
        session.begin(start);
        session
    }

    fn begin(&mut self, at: Nanos) {
        self.pages_left = self.params.pages.sample_count(&mut self.counts);
        self.next_page = Some(at);
    }

    /// When [`Session::poll`] has something to say, if time alone decides.
    pub fn next_event(&self) -> Option<Nanos> {
        let requests = self.loading.iter().filter_map(|page| page.next_request);
        requests.chain(self.next_page).min()
    }

    /// The next request that is due by `now`. Call it until it gives `None`.
    pub fn poll(&mut self, now: Nanos) -> Option<Request> {
        let due = self.next_event().filter(|at| *at <= now)?;
        let next = match self.loading.iter().position(|page| page.next_request == Some(due)) {
            Some(index) => index,
            None => self.begin_page(due),
        };
        Some(self.request(next, due))
    }

    fn begin_page(&mut self, at: Nanos) -> usize {
        let objects = self.params.objects.sample_count(&mut self.object_counts);
        let page = Page {
            number: self.pages_begun,
            started: at,
            finished: 0,
            objects: u32::try_from(objects).unwrap_or(u32::MAX),
            packets: 0,
        };
        let server = self.choices.below(u64::from(self.servers)) as u32;
        self.loading.push(Loading {
            page,
            server,
            requested: 0,
            completed: 0,
            next_request: Some(at),
        });
        self.pages_begun += 1;
        self.pages_left -= 1;
        let gap_counts = self.params.gap_from == GapFrom::Start && self.pages_left > 0;
        self.next_page =
            gap_counts.then(|| at + self.params.inter_page.sample_nanos(&mut self.gaps));
        self.loading.len() - 1
    }

    fn request(&mut self, index: usize, at: Nanos) -> Request {
        let packets = self.params.size.sample_count(&mut self.sizes);
        let loading = &mut self.loading[index];
        let object = ObjectId { page: loading.page.number, object: loading.requested };
        loading.requested += 1;
        loading.page.packets = loading.page.packets.saturating_add(packets);
        loading.next_request = (loading.requested < loading.page.objects)
            .then(|| at + self.params.inter_object.sample_nanos(&mut self.object_gaps));
        let packet = Bytes::from(self.params.packet);
        Request {
            at,
            object,
            server: loading.server,
            request: packet,
            packets,
            bytes: packets.saturating_mul(packet),
        }
    }

    /// Reports that `object` has come wholly at `now`; gives its page if that was the last of it.
    ///
    /// # Panics
    /// If no such object is being fetched.
    pub fn complete(&mut self, now: Nanos, object: ObjectId) -> Option<Page> {
        let index = self.loading.iter().position(|page| page.page.number == object.page);
        let index = index.expect("a completed object belongs to a page that is loading");
        let loading = &mut self.loading[index];
        assert!(object.object < loading.requested, "{object:?} was not requested");
        loading.completed += 1;
        if loading.completed < loading.page.objects {
            return None;
        }
        let page = Page { finished: now, ..self.loading.swap_remove(index).page };
        if self.pages_left > 0 {
            if self.params.gap_from == GapFrom::End {
                self.next_page = Some(now + self.params.inter_page.sample_nanos(&mut self.gaps));
            }
        } else if self.loading.is_empty() {
            self.sessions_finished += 1;
            if self.params.renew {
                self.begin(now);
            }
        }
        Some(page)
    }

    /// Sessions that have ended.
    pub fn sessions_finished(&self) -> u32 {
        self.sessions_finished
    }

    /// Whether there is nothing more to come.
    pub fn is_finished(&self) -> bool {
        self.next_page.is_none() && self.loading.is_empty()
    }
}
