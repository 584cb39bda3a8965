//! Typical paths by name. The values are round numbers of common products, chosen by this project;
//! they describe no particular network. A preset is a place to start: change what you know.

use crate::description::DescriptionError;
use crate::params::Params;
use sojourn_queue::cake::framing::Cells;

/// A link in words: rate, netem and queue, as for [`Params::parse`].
type Words = (&'static str, &'static str, &'static str);

/// A path by name.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// The kind of line, and its rates.
    pub summary: &'static str,
    /// The links towards the user (or the receiving server), in the order of a packet.
    pub forward: &'static [Words],
    /// The links in the opposite direction.
    pub reverse: &'static [Words],
    /// Bytes that each packet occupies beyond its Ethernet frame, and the cells of the line.
    pub framing: (i32, Cells),
}

/// All presets.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "dsl",
        summary: "VDSL2 with PPPoE: 50 and 10 Mbit/s, 10 ms each way, a plain buffer on both sides",
        forward: &[("50mbit", "delay 10ms", "bfifo limit 640kb")],
        reverse: &[("10mbit", "delay 10ms", "bfifo limit 256kb")],
        framing: (16, Cells::Ptm),
    },
    Preset {
        name: "cable",
        summary: "DOCSIS 3.1: 300 and 30 Mbit/s; PIE both ways, and upstream grants every 2 ms",
        forward: &[("300mbit", "delay 6ms", "pie target 10ms limit 10000p")],
        reverse: &[("30mbit", "delay 6ms slot 2ms", "pie target 10ms limit 1000p")],
        framing: (4, Cells::None),
    },
    Preset {
        name: "lte",
        summary: "4G: 40 and 10 Mbit/s, 25 ms each way with jitter of the radio, a deep buffer",
        forward: &[("40mbit", "delay 25ms 5ms keeporder", "bfifo limit 1500kb")],
        reverse: &[("10mbit", "delay 25ms 8ms keeporder", "bfifo limit 500kb")],
        framing: (0, Cells::None),
    },
    Preset {
        name: "satellite",
        summary: "a geostationary satellite: 30 and 3 Mbit/s, 280 ms each way, bursts of loss",
        forward: &[(
            "30mbit",
            "delay 280ms 5ms keeporder loss gemodel 0.1% 30%",
            "bfifo limit 2mb",
        )],
        reverse: &[("3mbit", "delay 280ms 5ms keeporder", "bfifo limit 250kb")],
        framing: (0, Cells::None),
    },
    Preset {
        name: "pod",
        summary: "a Kubernetes pod with 100 Mbit/s and a burst of 10 ms (bandwidth plugin of CNI)",
        forward: &[
            ("10gbit", "delay 250us", "pfifo limit 1000p"),
            ("10gbit", "delay 20us", "tbf rate 100mbit burst 125kb latency 25ms"),
        ],
        reverse: &[
            ("10gbit", "delay 20us", "tbf rate 100mbit burst 125kb latency 25ms"),
            ("10gbit", "delay 250us", "pfifo limit 1000p"),
        ],
        framing: (24, Cells::None),
    },
    Preset {
        name: "datacentre",
        summary: "server, switch, server at 25 Gbit/s; the switch marks above 25 us of queue (DCTCP)",
        forward: &[
            ("25gbit", "delay 5us", "fq_codel"),
            ("25gbit", "delay 5us", "codel limit 1000p ce_threshold 25us"),
        ],
        reverse: &[
            ("25gbit", "delay 5us", "fq_codel"),
            ("25gbit", "delay 5us", "codel limit 1000p ce_threshold 25us"),
        ],
        framing: (24, Cells::None),
    },
];

impl Preset {
    /// Returns the preset with this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// Returns the links of both directions, for [`Path::new`](crate::Path::new).
    ///
    /// # Errors
    /// Those of [`Params::parse`]; the presets of this crate have none.
    pub fn params(&self) -> Result<(Vec<Params>, Vec<Params>), DescriptionError> {
        let (overhead, cells) = self.framing;
        let link = |&(rate, netem, queue): &Words| {
            Ok(Params { overhead, cells, ..Params::parse(rate, netem, queue)? })
        };
        let links = |words: &[Words]| words.iter().map(link).collect::<Result<Vec<_>, _>>();
        Ok((links(self.forward)?, links(self.reverse)?))
    }
}
