//! All policies by name: their texts, and which of them is asked.

use super::{
    Draws, Flow, Fresh, Known, Look, Needs, Pick, Policy, Sight, hash, iqlb, jiq, jsq,
    least_bandwidth, least_connections, least_packets, maglev, peak_ewma, power_of_d, qtm,
    queue_delay, random, round_robin, weighted_round_robin,
};
use serde::{Deserialize, Serialize};
use sojourn_units::Nanos;
use sojourn_units::quantity::format_time;
use sojourn_units::words::{self, Given, Table, WordError};

/// Calls `$do!` with every policy: its variant, its module, its type, and how it is made.
macro_rules! every {
    ($do:ident) => {
        $do! {
            /// A server at random.
            Random random: random::Random, |_p, _n| random::Random;
            /// One server after the other.
            RoundRobin round_robin: round_robin::RoundRobin,
                |_p, _n| round_robin::RoundRobin::default();
            /// Turns in proportion to the weights.
            WeightedRoundRobin weighted_round_robin: weighted_round_robin::WeightedRoundRobin,
                |_p, n| weighted_round_robin::WeightedRoundRobin::new(n);
            /// By the flow's hash.
            Hash hash: hash::Hash, |_p, _n| hash::Hash;
            /// By a table of hashes.
            Maglev maglev: maglev::Maglev, |p, _n| maglev::Maglev::new(p);
            /// Fewest bytes sent in the last period.
            LeastBandwidth least_bandwidth: least_bandwidth::Rates, |_p, n| least_bandwidth::new(n);
            /// Fewest packets sent in the last period.
            LeastPackets least_packets: least_packets::Rates, |_p, n| least_packets::new(n);
            /// Fewest open connections for the weight.
            LeastConnections least_connections: least_connections::LeastConnections,
                |_p, _n| least_connections::LeastConnections;
            /// Shortest queue below a threshold.
            Iqlb iqlb: iqlb::Iqlb, |p, _n| iqlb::Iqlb::new(p);
            /// Shortest average queue.
            Qtm qtm: qtm::Qtm, |p, n| qtm::Qtm::new(p, n);
            /// Shortest queue.
            Jsq jsq: jsq::Jsq, |_p, _n| jsq::Jsq;
            /// Shortest of some queues drawn.
            PowerOfD power_of_d: power_of_d::PowerOfD, |p, n| power_of_d::PowerOfD::new(p, n);
            /// Least backlog over rate.
            QueueDelay queue_delay: queue_delay::QueueDelay, |_p, _n| queue_delay::QueueDelay;
            /// Least latency times open requests.
            PeakEwma peak_ewma: peak_ewma::PeakEwma, |p, n| peak_ewma::PeakEwma::new(p, n);
            /// An idle server, else one at random.
            Jiq jiq: jiq::Jiq, |_p, n| jiq::Jiq::new(n);
        }
    };
}

macro_rules! define {
    ($($(#[$doc:meta])* $variant:ident $module:ident: $kind:ty, $make:expr;)*) => {
        /// Which policy, and its settings.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case", tag = "name")]
        pub enum Params {
            $($(#[$doc])* $variant($module::Params),)*
        }

        const TABLES: &[&Table] = &[$(&$module::TABLE),*];

        impl Params {
            /// The words of its policy.
            pub fn table(&self) -> &'static Table {
                match self {
                    $(Self::$variant(_) => &$module::TABLE,)*
                }
            }
        }

        /// A policy by static dispatch.
        #[derive(Clone, Debug)]
        pub(super) enum Any {
            $($variant($kind),)*
        }

        impl Any {
            pub fn new(params: &Params, servers: usize) -> Self {
                match *params {
                    $(Params::$variant(p) => {
                        let make: fn($module::Params, usize) -> $kind = $make;
                        Self::$variant(make(p, servers))
                    })*
                }
            }

            pub fn observe(&mut self, now: Nanos, servers: &[Known]) {
                match self {
                    $(Self::$variant(policy) => policy.observe(now, &Sight::new(servers)),)*
                }
            }

            pub fn choose(
                &mut self,
                now: Nanos,
                flow: &Flow,
                servers: &[Known],
                draws: &mut Draws<'_>,
            ) -> Option<Pick> {
                match self {
                    $(Self::$variant(policy) => {
                        policy.choose(now, flow, &Sight::new(servers), draws)
                    })*
                }
            }

            pub fn finished(
                &mut self,
                now: Nanos,
                server: usize,
                latency: Option<Nanos>,
                servers: &[Known],
            ) {
                match self {
                    $(Self::$variant(policy) => {
                        policy.finished(now, server, latency, &Sight::new(servers));
                    })*
                }
            }

            pub fn changed(&mut self, servers: &[Known]) {
                match self {
                    $(Self::$variant(policy) => policy.changed(&Sight::new(servers)),)*
                }
            }

            pub fn state(&self, visit: &mut dyn FnMut(usize, &'static str, f64)) {
                match self {
                    $(Self::$variant(policy) => policy.state(visit),)*
                }
            }
        }
    };
}

every!(define);

/// The words of every policy.
pub fn tables() -> &'static [&'static Table] {
    TABLES
}

impl Params {
    /// Reads a description such as `iqlb threshold 80% period 100ms`.
    ///
    /// # Errors
    /// Where and why it cannot be read.
    pub fn parse(text: &str) -> Result<Self, WordError> {
        let (table, given) = words::describe("balancing policy", TABLES, text)?;
        Self::read(table.name, &given)
    }

    fn read(name: &str, given: &Given) -> Result<Self, WordError> {
        Ok(match name {
            "random" => Self::Random(random::Params {}),
            "round-robin" => Self::RoundRobin(round_robin::Params {}),
            "weighted-round-robin" => Self::WeightedRoundRobin(weighted_round_robin::Params {}),
            "hash" => Self::Hash(hash::Params {}),
            "maglev" => Self::Maglev(maglev::Params::read(given)?),
            "least-bandwidth" => Self::LeastBandwidth(least_bandwidth::Params::read(given)?),
            "least-packets" => Self::LeastPackets(least_packets::Params::read(given)?),
            "least-connections" => Self::LeastConnections(least_connections::Params {}),
            "iqlb" => Self::Iqlb(iqlb::Params::read(given)?),
            "qtm" => Self::Qtm(qtm::Params::read(given)?),
            "jsq" => Self::Jsq(jsq::Params::read(given)?),
            "power-of-d" => Self::PowerOfD(power_of_d::Params::read(given)?),
            "queue-delay" => Self::QueueDelay(queue_delay::Params::read(given)?),
            "peak-ewma" => Self::PeakEwma(peak_ewma::Params::read(given)?),
            _ => Self::Jiq(jiq::Params {}),
        })
    }

    /// The policy's name.
    pub fn name(&self) -> &'static str {
        self.table().name
    }

    /// Says what is wrong with parameters that do not come from a text, if anything is.
    ///
    /// # Errors
    /// A value outside its bounds.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Maglev(p) => p.check(),
            Self::PowerOfD(p) => p.check(),
            Self::PeakEwma(p) => p.check(),
            Self::LeastBandwidth(least_bandwidth::Params { period: 0 })
            | Self::LeastPackets(least_packets::Params { period: 0 })
            | Self::Qtm(qtm::Params { period: 0, .. }) => {
                Err("`period` must be above 0s".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// What the policy needs of the one who drives it.
    pub fn needs(&self) -> Needs {
        let unread = |look| (look, Fresh::Unread);
        let (look, fresh) = match self {
            Self::Random(_) | Self::RoundRobin(_) | Self::WeightedRoundRobin(_) => {
                unread(Look::Nothing)
            }
            Self::Hash(_) | Self::Maglev(_) => unread(Look::Nothing),
            Self::LeastConnections(_) | Self::Jiq(_) => unread(Look::Connections),
            Self::PeakEwma(_) => unread(Look::Latency),
            Self::LeastBandwidth(p) | Self::LeastPackets(p) => {
                (Look::Counters, Fresh::Sampled { period: p.period })
            }
            Self::Qtm(p) => (Look::Backlog, Fresh::Averaged { period: p.period }),
            Self::Iqlb(p) => (Look::Backlog, p.fresh()),
            Self::Jsq(p) => (Look::Backlog, p.fresh()),
            Self::PowerOfD(p) => (Look::Backlog, p.fresh()),
            Self::QueueDelay(p) => (Look::Backlog, p.fresh()),
        };
        Needs {
            look,
            fresh,
            limits: matches!(self, Self::Iqlb(_)),
            rates: matches!(self, Self::QueueDelay(_)),
            weights: matches!(
                self,
                Self::Random(_)
                    | Self::WeightedRoundRobin(_)
                    | Self::Maglev(_)
                    | Self::LeastConnections(_)
                    | Self::PeakEwma(_)
            ),
        }
    }
}

/// The description that [`Params::parse`] reads back.
impl std::fmt::Display for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Maglev(p) => p.fmt(f),
            Self::LeastBandwidth(p) | Self::LeastPackets(p) => {
                write!(f, "{} period {}", self.name(), format_time(p.period))
            }
            Self::Iqlb(p) => p.fmt(f),
            Self::Qtm(p) => p.fmt(f),
            Self::Jsq(p) => p.fmt(f),
            Self::PowerOfD(p) => p.fmt(f),
            Self::QueueDelay(p) => p.fmt(f),
            Self::PeakEwma(p) => p.fmt(f),
            _ => f.write_str(self.name()),
        }
    }
}
