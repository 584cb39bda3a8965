//! `web`: sessions of Web pages, whose objects are fetched by HTTP/1.0.
//!
//! Source: Feldmann, Gilbert, Huang, Willinger, "Dynamics of IP traffic: a study of the role of
//! variability and the impact of control", SIGCOMM 1999, as implemented in ns-2
//! (`webcache/webtraf`).
//!
//! A session is a sequence of pages that one client requests. Each page comes from one server,
//! drawn uniformly, and has a number of objects. An object is requested by one packet on its own
//! connection, and answered by a number of packets on a new connection. The objects of a page are
//! requested one inter-object time after another, regardless of the arrival of earlier ones. The
//! next page follows one inter-page time after the arrival of this page's last object or, with
//! `gapfrom start`, after this page's start. Counts are rounded up.

use crate::application::{AppParams, check_length};
use crate::kinds::{bytes, named_rows, number, optional_time, positive, time};
use sojourn_random::{Distribution, Key, Stream};
use sojourn_units::declare::{Choices, Parameters, choice, switch};
use sojourn_units::words::{Given, Kind, Word};
use sojourn_units::{Bytes, Nanos, choices, params, words};
use std::convert::Infallible;

/// A published set of parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// Name of the set in a description.
    pub name: &'static str,
    /// Parameters, as words of a description.
    pub words: &'static str,
    /// Source of the numbers, and which of the numbers are a choice of this project.
    pub source: &'static str,
}

/// The published sets. A session has 250 pages if the source does not say how many; the number is
/// that of ns-2's large example, and its use here is a choice of this project.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "pareto-2",
        words: "pages 250 interpage pareto2(10s,2) objects pareto2(3,1.5) \
                interobject pareto2(500ms,1.5) size pareto2(12,1.2) packet 1460",
        source: "Feldmann's `Pareto 2` in the values of a DOCSIS script for ns-2; the name is cited from memory; \
                 pages per session and packet length are chosen here",
    },
    Preset {
        name: "pareto-1",
        words: "pages 250 interpage pareto(50s,2) objects pareto(4,1.2) \
                interobject pareto(500ms,1.5) size pareto(12,1.2) packet 1460",
        source: "Feldmann's `Pareto 1`: objects, inter-object and size from a DOCSIS script for ns-2; \
                 inter-page and the name are cited from memory; pages per session and packet length are chosen here",
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
                 other numbers are those of ns2-large; the script's sessions start uniformly over the run",
    },
    Preset {
        name: "mice-elephants",
        words: "pages 250 interpage exp(9.5s) objects exp(2) interobject exp(50ms) \
                size bpareto(4,200,1.2) packet 1000",
        source: "Guo and Matta, cited from memory: 4 to 200 KB in packets of 1000 bytes; pages per session are chosen here",
    },
];

named_rows!(Preset in PRESETS);

choices! {
    /// Start of the time between two pages (`interpage`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum GapFrom {
        /// `interpage` starts at the arrival of the page's last object.
        #[default]
        End = "end",
        /// `interpage` starts at the page's start. Pages then overlap if the network is slow, which
        /// gives more load.
        Start = "start",
    }
}

const PRESET: &[Word] = words! {
    "preset", Kind::Choice { of: Preset::NAMES }, "pareto-2",
        "Published set of parameters, which other words override.";
};

params! {
    "web": "Web sessions: pages of objects, each object on its own connection (HTTP/1.0)",
    from "Feldmann, Gilbert, Huang, Willinger, SIGCOMM 1999; ns-2 webcache/webtraf";

    /// Parameters of `web`.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    pub struct Params after PRESET {
        /// Number of pages in a session.
        pages: Distribution = number("250").check(positive),
        /// Time between two pages; it starts at the event that `gapfrom` selects.
        inter_page as "interpage": Distribution = time("pareto2(10s,2)"),
        /// Event that starts `interpage`: the arrival of all objects of a page, or the page's
        /// start.
        gap_from as "gapfrom": GapFrom = choice("end"),
        /// Number of objects in a page, rounded up.
        objects: Distribution = number("pareto2(3,1.5)").check(positive),
        /// Time between two requests of a page.
        inter_object as "interobject": Distribution = time("pareto2(500ms,1.5)"),
        /// Number of packets in an object, rounded up.
        size: Distribution = number("pareto2(12,1.2)").check(positive),
        /// Application bytes in a packet.
        packet: u32 = bytes::<1, 65_535>("1460"),
        /// Time between the starts of two sessions; without it the key `start` of the flow group
        /// sets the starts.
        inter_session as "intersession": Option<Distribution> = optional_time(),
        /// Whether a new session begins when a session ends, so that the number of sessions is
        /// constant.
        renew: bool = switch("once", "renew"),
    }
}

impl AppParams for Params {
    const OPENS_SESSIONS: bool = true;

    type Source = Infallible;

    fn initial(given: &Given) -> Self {
        let preset = given.text("preset").and_then(Preset::named);
        preset.map_or_else(Self::default, Self::preset)
    }

    fn distributions(&self) -> Vec<Distribution> {
        let mut all = vec![self.pages, self.inter_page, self.objects, self.inter_object, self.size];
        all.extend(self.inter_session);
        all
    }

    fn check(&self) -> Result<(), String> {
        check_length(self.packet)
    }
}

impl Params {
    /// Returns the parameters of a published set.
    fn preset(preset: Preset) -> Self {
        let mut params = Self::default();
        words::read(&Self::TABLE, &words::tokens(preset.words), preset.words.len())
            .and_then(|given| params.set(&given))
            .unwrap_or_else(|error| panic!("preset `{}`: {error}", preset.name));
        params
    }

    /// Returns the starts of sessions; `None` without `intersession`. The first session starts one
    /// drawn time after `first`, and each later session one drawn time after the previous one.
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

/// Identifier of an object. With renewal, the sessions of a client share one sequence of page
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectId {
    /// Number of the page, from 0.
    pub page: u32,
    /// Number of the object within the page, from 0.
    pub object: u32,
}

/// A request for an object: the client opens a connection to the server and sends the request;
/// after its arrival the server answers on a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Time of the request.
    pub at: Nanos,
    /// Requested object.
    pub object: ObjectId,
    /// Index of the server.
    pub server: u32,
    /// Length of the request in bytes: one packet.
    pub request: Bytes,
    /// Number of packets in the answer.
    pub packets: u64,
    /// Length of the answer in bytes.
    pub bytes: Bytes,
}

/// A page whose objects have all arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Number of the page, from 0.
    pub number: u32,
    /// Time of the request for the first object.
    pub started: Nanos,
    /// Time of the arrival of the last object.
    pub finished: Nanos,
    /// Number of objects.
    pub objects: u32,
    /// Number of packets in all objects.
    pub packets: u64,
}

#[derive(Clone, Debug)]
struct Loading {
    page: Page,
    server: u32,
    requested: u32,
    completed: u32,
    /// Time of the request for the next object; `None` after the last object.
    next_request: Option<Nanos>,
}

/// A session or, with renewal, a sequence of sessions.
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
    /// Pages whose objects have not all arrived; more than one only if pages overlap.
    loading: Vec<Loading>,
    sessions_finished: u32,
}

impl Session {
    /// Returns a session that requests its first page at `start` from one of `servers`.
    ///
    /// # Panics
    /// If `servers` is 0.
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

    /// Returns the time of the next request; `None` if it depends on the arrival of an object, or
    /// if the session has ended.
    pub fn next_event(&self) -> Option<Nanos> {
        let requests = self.loading.iter().filter_map(|page| page.next_request);
        requests.chain(self.next_page).min()
    }

    /// Returns the next request that is due at `now`; `None` if no request is due. Several requests
    /// may be due at one time: call it until it returns `None`.
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

    /// Returns the starts of the pages whose objects have not all arrived, without pages that
    /// would request objects at `stop` or later.
    pub fn loading(&self, stop: Nanos) -> impl Iterator<Item = Nanos> + '_ {
        let goes_on = move |page: &&Loading| page.next_request.is_none_or(|at| at < stop);
        self.loading.iter().filter(goes_on).map(|page| page.page.started)
    }

    /// Records that `object` has arrived completely at `now`. Returns its page if it was the page's
    /// last missing object.
    ///
    /// # Panics
    /// If `object` was not requested, or its page is already complete.
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

    /// Returns the number of sessions that have ended.
    pub fn sessions_finished(&self) -> u32 {
        self.sessions_finished
    }

    /// Returns whether all pages of the session have arrived and no new session begins.
    pub fn is_finished(&self) -> bool {
        self.next_page.is_none() && self.loading.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::App;
    use sojourn_units::{EPOCH, MILLISECOND, SECOND};

    fn params(text: &str) -> Params {
        let App::Web(params) = App::parse(text).unwrap() else { panic!("{text}") };
        params
    }

    /// Runs a session until `until`, on a network that fetches each object in the time that `fetch`
    /// returns.
    fn browse(
        session: &mut Session,
        fetch: impl Fn(&Request) -> Nanos,
        until: Nanos,
    ) -> (Vec<Request>, Vec<Page>) {
        let (mut requests, mut pages) = (Vec::new(), Vec::new());
        let mut pending: Vec<(Nanos, ObjectId)> = Vec::new();
        loop {
            let done = pending.iter().min().copied();
            let next = [done.map(|(at, _)| at), session.next_event()].into_iter().flatten().min();
            let Some(now) = next.filter(|now| *now <= until) else { break };
            if let Some((at, object)) = done.filter(|(at, _)| *at == now) {
                pending.retain(|(_, other)| *other != object);
                pages.extend(session.complete(at, object));
            }
            while let Some(request) = session.poll(now) {
                pending.push((request.at + fetch(&request), request.object));
                requests.push(request);
            }
        }
        (requests, pages)
    }

    #[test]
    fn every_preset_is_complete() {
        for preset in PRESETS {
            let tokens = words::tokens(preset.words);
            let given = words::read(&Params::TABLE, &tokens, preset.words.len()).unwrap();
            for word in ["pages", "interpage", "objects", "interobject", "size", "packet"] {
                assert!(given.has(word), "{} lacks {word}", preset.name);
            }
            let params = params(&format!("web preset {}", preset.name));
            assert_eq!(params, Params::preset(*preset));
        }
        assert_eq!(params("web"), params("web preset pareto-2"));
        let large = params("web preset ns2-large packet 1460");
        assert_eq!(large.size, Distribution::Lomax { mean: 12.0, shape: 1.2 });
        assert_eq!(large.inter_page, Distribution::Exponential { mean: 15e9 });
        assert_eq!(large.packet, 1460);
    }

    #[test]
    fn objects_overlap_and_pages_wait_for_the_last() {
        let words = params(
            "web pages 2 interpage 10s objects 3 interobject 100ms size 2.5 packet 1000 once",
        );
        let mut session = Session::new(&words, Key::new(1, "web"), 1, EPOCH);
        // The first object takes 5 s, the others 1 s.
        let fetch = |r: &Request| if r.object.object == 0 { 5 * SECOND } else { SECOND };
        let (requests, pages) = browse(&mut session, fetch, Nanos::MAX);
        let times: Vec<Nanos> = requests.iter().map(|r| (r.at - EPOCH) / MILLISECOND).collect();
        assert_eq!(times, [0, 100, 200, 15_000, 15_100, 15_200]);
        assert!(requests.iter().all(|r| (r.request, r.packets, r.bytes) == (1000, 3, 3000)));
        assert_eq!(
            pages[0],
            Page {
                number: 0,
                started: EPOCH,
                finished: EPOCH + 5 * SECOND,
                objects: 3,
                packets: 9
            }
        );
        assert_eq!(pages.len(), 2);
        assert!(session.is_finished());
        assert_eq!(session.sessions_finished(), 1);
    }

    #[test]
    fn pages_may_count_from_start_to_start() {
        let words =
            params("web pages 3 interpage 1s gapfrom start objects 1 interobject 0 size 1 once");
        let mut session = Session::new(&words, Key::new(1, "web"), 1, EPOCH);
        let (requests, pages) = browse(&mut session, |_| 5 * SECOND, Nanos::MAX);
        let times: Vec<Nanos> = requests.iter().map(|r| (r.at - EPOCH) / SECOND).collect();
        assert_eq!(times, [0, 1, 2]);
        assert_eq!(pages.len(), 3);
        assert!(session.is_finished());
    }

    #[test]
    fn sessions_are_renewed_when_they_end() {
        let words = params("web pages 2 interpage 1s objects 1 interobject 0 size 1");
        let mut session = Session::new(&words, Key::new(1, "web"), 3, EPOCH);
        let (requests, pages) = browse(&mut session, |_| SECOND, EPOCH + 10 * SECOND);
        let times: Vec<Nanos> = requests.iter().map(|r| (r.at - EPOCH) / SECOND).collect();
        assert_eq!(times, [0, 2, 3, 5, 6, 8, 9]);
        assert!(pages.iter().enumerate().all(|(i, page)| page.number == i as u32));
        assert_eq!(session.sessions_finished(), 3);
        assert!(!session.is_finished());
    }

    #[test]
    fn one_server_serves_a_page_and_all_serve_alike() {
        let words =
            params("web pages 100 interpage 1s objects exp(10) interobject exp(10ms) size 1");
        let mut session = Session::new(&words, Key::new(5, "web"), 4, EPOCH);
        let (requests, pages) = browse(&mut session, |_| MILLISECOND, EPOCH + 4000 * SECOND);
        let mut per_server = [0u32; 4];
        let mut page_server = std::collections::BTreeMap::new();
        for request in &requests {
            let server = *page_server.entry(request.object.page).or_insert(request.server);
            assert_eq!(server, request.server);
        }
        for server in page_server.values() {
            per_server[*server as usize] += 1;
        }
        let expected = page_server.len() as f64 / 4.0;
        let chi: f64 = per_server
            .iter()
            .map(|&n| (f64::from(n) - expected) * (f64::from(n) - expected) / expected)
            .sum();
        assert!(chi < 16.3, "{per_server:?}");
        // ceil(Exp(10)) has mean 1 / (1 - e^-0.1) = 10.51.
        let objects =
            pages.iter().map(|page| f64::from(page.objects)).sum::<f64>() / pages.len() as f64;
        assert!((objects - 10.51).abs() < 3.3 * 10.0 / libm::sqrt(pages.len() as f64), "{objects}");
    }

    #[test]
    fn requests_do_not_depend_on_the_network() {
        let words = params("web preset pareto-2");
        let contents = |fetch: Nanos| -> Vec<(ObjectId, u32, u64)> {
            let mut session = Session::new(&words, Key::new(7, "web"), 10, EPOCH);
            let (requests, _) = browse(&mut session, |_| fetch, EPOCH + 3000 * SECOND);
            let mut all: Vec<_> =
                requests.iter().map(|r| (r.object, r.server, r.packets)).collect();
            all.truncate(500);
            all
        };
        assert_eq!(contents(MILLISECOND), contents(300 * MILLISECOND));
    }

    #[test]
    fn object_sizes_are_those_of_ns2() {
        let words = params("web preset ns2-large");
        let mut packets = Vec::new();
        for index in 0..20 {
            let mut session = Session::new(&words, Key::new(1, "web").child(index), 1, EPOCH);
            let (requests, _) = browse(&mut session, |_| MILLISECOND, EPOCH + 15_000 * SECOND);
            packets.extend(requests.iter().map(|r| r.packets));
        }
        // P(ceil X > n) = P(X > n) = (1 + n / 2.4)^-1.2.
        for n in [1u64, 2, 5, 20, 100] {
            let expected = libm::pow(1.0 + n as f64 / 2.4, -1.2);
            let ratio = packets.iter().filter(|p| **p > n).count() as f64 / packets.len() as f64;
            let margin = 3.3 * libm::sqrt(expected * (1.0 - expected) / packets.len() as f64);
            assert!((ratio - expected).abs() < margin, "{n}: {ratio} for {expected} +- {margin}");
        }
    }

    #[test]
    fn a_late_poll_does_not_move_the_schedule() {
        let words = params("web pages 1 objects 5 interobject exp(50ms) interpage 1s size 1 once");
        let at = |late: Nanos| -> Vec<Nanos> {
            let mut session = Session::new(&words, Key::new(2, "web"), 1, EPOCH);
            let mut all = Vec::new();
            while let Some(next) = session.next_event() {
                while let Some(request) = session.poll(next + late) {
                    all.push(request.at);
                }
            }
            all
        };
        assert_eq!(at(0).len(), 5);
        assert_eq!(at(0), at(70 * MILLISECOND));
    }

    #[test]
    fn sessions_start_one_after_the_other() {
        let small = params("web preset ns2-small");
        let starts: Vec<Nanos> =
            small.session_starts(Key::new(1, "web"), EPOCH).unwrap().take(2).collect();
        assert_eq!(starts, [EPOCH + 100 * MILLISECOND, EPOCH + 200 * MILLISECOND]);
        assert!(params("web").session_starts(Key::new(1, "web"), EPOCH).is_none());
    }

    #[test]
    fn golden_session() {
        let mut session = Session::new(&params("web preset red-pd"), Key::new(1, "web"), 5, EPOCH);
        let (requests, _) = browse(&mut session, |_| 40 * MILLISECOND, EPOCH + 100 * SECOND);
        let first: Vec<(Nanos, u32, u64)> =
            requests[..3].iter().map(|r| (r.at - EPOCH, r.server, r.packets)).collect();
        assert_eq!(
            (requests.len(), first),
            (73, vec![(0, 0, 2), (12_426_507, 0, 2), (15_126_795_435, 0, 3)])
        );
    }
}
