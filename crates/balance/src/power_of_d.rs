//! Power of d choices, with memory.
//!
//! `d` servers are drawn and the one with the fewest packets is taken, together with the `memory`
//! least loaded ones of the time before (DRILL's (d, m)). Two choices shorten the longest queues
//! exponentially against one, and since the drawn ones differ from flow to flow, old lengths do not
//! make all flows herd; with memory they do, for what is remembered is the shortest as it was. The fraction of queues with at least k jobs tends to
//! `rho^((d^k - 1)/(d - 1))` (memory 0, many servers).

use super::{Backlog, Draws, Flow, Fresh, Pick, Policy, Sight, period, period_word};
use serde::{Deserialize, Serialize};
use sojourn_units::Nanos;
use sojourn_units::quantity::format_time;
use sojourn_units::words::{Given, Kind, Table, Word, WordError};

/// The most servers that may be drawn, or remembered.
const MOST: u64 = 16;

/// The words of `power-of-d`.
pub const TABLE: Table = Table {
    name: "power-of-d",
    summary: "the shortest of d queues drawn at random and of those remembered",
    source: "Mitzenmacher 2001; Ghorbani et al. 2017 (DRILL)",
    words: &[
        Word {
            name: "d",
            kind: Kind::Integer { min: 1, max: MOST },
            default: "2",
            doc: "Servers drawn for each flow, all different.",
        },
        Word {
            name: "memory",
            kind: Kind::Integer { min: 0, max: MOST },
            default: "1",
            doc: "Servers remembered as the least loaded ones of those looked at before.",
        },
        period_word("0s"),
    ],
};

/// How many choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Servers drawn for each flow.
    pub d: u64,
    /// Servers remembered.
    pub memory: u64,
    /// Time from one reading to the next; 0 for one at each choice.
    pub period: Nanos,
}

impl Default for Params {
    fn default() -> Self {
        Self { d: 2, memory: 1, period: 0 }
    }
}

impl Params {
    pub(super) fn read(given: &Given) -> Result<Self, WordError> {
        let default = Self::default();
        Ok(Self {
            d: given.integer("d").unwrap_or(default.d),
            memory: given.integer("memory").unwrap_or(default.memory),
            period: period(given, default.period, 0)?,
        })
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.d == 0 || self.d > MOST || self.memory > MOST {
            return Err(format!("`d` must be from 1 to {MOST}, `memory` from 0 to {MOST}"));
        }
        Ok(())
    }

    pub(super) fn fresh(&self) -> Fresh {
        Fresh::every(self.period)
    }
}

impl std::fmt::Display for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { d, memory, period } = self;
        write!(f, "power-of-d d {d} memory {memory} period {}", format_time(*period))
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct PowerOfD {
    params: Params,
    /// The least loaded servers of those looked at last.
    remembered: Vec<usize>,
    /// Those looked at for one flow.
    looked: Vec<usize>,
    /// All that are up, for drawing without putting back.
    urn: Vec<usize>,
}

impl PowerOfD {
    /// A new one for so many servers.
    pub fn new(params: Params, servers: usize) -> Self {
        Self {
            params,
            remembered: Vec::with_capacity(params.memory as usize),
            looked: Vec::with_capacity((params.d + params.memory) as usize),
            urn: Vec::with_capacity(servers),
        }
    }
}

/// Draws `d` of the urn's elements into its front.
pub(super) fn draw_front(urn: &mut [usize], d: usize, draws: &mut Draws<'_>) {
    let n = urn.len();
    // Drawing all of them needs no draw.
    for k in 0..d.min(n.saturating_sub(1)) {
        if d >= n {
            break;
        }
        urn.swap(k, k + draws((n - k) as u64) as usize);
    }
}

impl Policy for PowerOfD {
    type View = Backlog;

    fn choose(
        &mut self,
        _now: Nanos,
        _flow: &Flow,
        sight: &Sight<'_, Backlog>,
        draws: &mut Draws<'_>,
    ) -> Option<Pick> {
        self.urn.clear();
        self.urn.extend(sight.up());
        let d = (self.params.d as usize).min(self.urn.len());
        draw_front(&mut self.urn, d, draws);
        self.looked.clear();
        self.looked.extend_from_slice(&self.urn[..d]);
        for &server in &self.remembered {
            if sight.is_up(server) && !self.looked.contains(&server) {
                self.looked.push(server);
            }
        }
        let packets = |i| sight.get(i).map(|backlog: Backlog| backlog.packets);
        let picked = sight
            .least_of(self.looked.iter().copied(), packets, draws)
            .or_else(|| sight.least(packets, draws));
        // Those drawn stand in front in their order: of several as short, any may be remembered.
        self.looked.sort_by_key(|&i| packets(i).unwrap_or(u64::MAX));
        self.remembered.clear();
        self.remembered.extend(self.looked.iter().take(self.params.memory as usize));
        picked
    }
}
