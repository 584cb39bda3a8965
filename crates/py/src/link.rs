//! Links that carry the packets of a program in Python: the crate `sojourn_link`'s paths.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sojourn_link::presets::{PRESETS, Preset};
use sojourn_link::{Corrupt, Direction, Ecn, Nanos, Packet, Params, Path};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone)]
struct Carried {
    bytes: u32,
    flow: u32,
    ecn: Ecn,
    damaged: bool,
    packet: Arc<Py<PyAny>>,
}

impl Packet for Carried {
    fn len(&self) -> u32 {
        self.bytes
    }

    fn flow_hash(&self) -> u32 {
        // The disciplines take a flow's queue from the upper bits.
        self.flow.wrapping_mul(0x9e37_79b9)
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ce(&mut self) -> bool {
        self.ecn.mark()
    }
}

impl Corrupt for Carried {
    fn corrupt(&mut self, _: u32) {
        self.damaged = true;
    }
}

/// Links in both directions between two ends, for packets of your own. Nothing happens by itself:
/// each call passes the time, in nanoseconds since the beginning, which must not go back.
///
/// `forward` and `reverse` are the links in the order in which packets cross them. Each is a triple:
/// rate, impairments in netem's words, queue in `tc`'s words; an empty text is an unlimited rate, no
/// impairment, a `pfifo`. A direction without links delivers at once. The same calls with the same
/// `seed` have the same results. Raises `ValueError` if a text is wrong.
#[pyclass(module = "sojourn")]
pub(crate) struct Link {
    path: Path<Carried>,
    now: Nanos,
}

/// A packet that has arrived.
#[pyclass(module = "sojourn._core", frozen, get_all)]
pub(crate) struct Arrival {
    /// Time of the arrival in nanoseconds.
    at: Nanos,
    /// The object that was sent.
    packet: Py<PyAny>,
    /// ECN field: 3 if a queue marked the packet.
    ecn: u8,
    /// Whether the wire flipped a bit of the packet.
    damaged: bool,
    /// Whether the packet travelled in the reverse direction.
    reverse: bool,
}

type Words = (String, String, String);

fn refused(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn way(reverse: bool) -> Direction {
    if reverse { Direction::Reverse } else { Direction::Forward }
}

impl Link {
    fn at(&mut self, now: Nanos) -> PyResult<Nanos> {
        if now < self.now || now > Nanos::MAX / 2 {
            let latest = Nanos::MAX / 2;
            return Err(refused(format!("`now` must be from {} to {latest}: {now}", self.now)));
        }
        self.now = now;
        Ok(now)
    }
}

#[pymethods]
impl Link {
    #[new]
    #[pyo3(signature = (forward, reverse=Vec::new(), *, seed=1))]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 passes arguments by value")]
    fn new(forward: Vec<Words>, reverse: Vec<Words>, seed: u64) -> PyResult<Self> {
        let links = |words: &[Words]| {
            let link = |(rate, netem, queue): &Words| Params::parse(rate, netem, queue);
            words.iter().map(link).collect::<Result<Vec<_>, _>>().map_err(refused)
        };
        Ok(Self { path: Path::new(&links(&forward)?, &links(&reverse)?, seed), now: 0 })
    }

    /// Returns a typical line by its name: `dsl`, `cable`, `lte`, `satellite`, `pod`, `datacentre`.
    /// `forward` leads to the user. Raises `ValueError` for another name.
    #[staticmethod]
    #[pyo3(signature = (name, *, seed=1))]
    fn preset(name: &str, seed: u64) -> PyResult<Self> {
        let preset = Preset::find(name).ok_or_else(|| {
            let names: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
            refused(format!("no preset `{name}`: there are {}", names.join(", ")))
        })?;
        let (forward, reverse) = preset.params().map_err(refused)?;
        Ok(Self { path: Path::new(&forward, &reverse, seed), now: 0 })
    }

    /// Sends `packet`, any object, as a frame of `nbytes` bytes, Ethernet's header included.
    ///
    /// Queues with a queue for each flow use the number `flow`. An ECN field `ecn` of 1 (L4S) or 2
    /// lets queues mark the packet instead of dropping it. Raises `ValueError` if `now` goes back.
    #[pyo3(signature = (now, nbytes, packet=None, *, flow=0, ecn=0, reverse=false))]
    #[expect(clippy::too_many_arguments, reason = "the fields of a packet")]
    fn send(
        &mut self,
        py: Python<'_>,
        now: u64,
        nbytes: u32,
        packet: Option<Py<PyAny>>,
        flow: u32,
        ecn: u8,
        reverse: bool,
    ) -> PyResult<()> {
        if nbytes == 0 || ecn > 3 {
            return Err(refused("`nbytes` must be at least 1, and `ecn` from 0 to 3"));
        }
        let packet = Arc::new(packet.unwrap_or_else(|| py.None()));
        let ecn = Ecn::from_bits(ecn);
        let carried = Carried { bytes: nbytes, flow, ecn, damaged: false, packet };
        let now = self.at(now)?;
        self.path.send(now, way(reverse), carried);
        Ok(())
    }

    /// Returns the next packet that has arrived by `now`, or `None`. Raises `ValueError` if `now`
    /// goes back.
    fn poll(&mut self, py: Python<'_>, now: u64) -> PyResult<Option<Arrival>> {
        let now = self.at(now)?;
        Ok(self.path.poll(now).map(|arrival| {
            let Carried { ecn, damaged, packet, .. } = arrival.packet;
            let reverse = arrival.direction == Direction::Reverse;
            Arrival {
                at: arrival.at,
                packet: packet.clone_ref(py),
                ecn: ecn as u8,
                damaged,
                reverse,
            }
        }))
    }

    /// Returns when `poll` must be called next; `None` if nothing moves.
    fn next_wakeup(&self) -> Option<u64> {
        self.path.next_wakeup()
    }

    /// Gives the link at `position` of a direction other words at `now`. Packets on the wire keep
    /// their arrival times. Raises `ValueError` if a text is wrong, the discipline is another one,
    /// `now` goes back or there is no such link.
    #[pyo3(signature = (now, rate, netem="", queue="", *, reverse=false, position=0))]
    fn change(
        &mut self,
        now: u64,
        rate: &str,
        netem: &str,
        queue: &str,
        reverse: bool,
        position: usize,
    ) -> PyResult<()> {
        let params = Params::parse(rate, netem, queue).map_err(refused)?;
        let links = self.path.links(way(reverse)).len();
        if position >= links {
            return Err(refused(format!("the direction has {links} links, none at {position}")));
        }
        let now = self.at(now)?;
        self.path.change(now, way(reverse), position, &params).map_err(refused)
    }

    /// Returns the numbers of a direction's packets: `sent`, `dropped` by queues, `marked`, `lost`
    /// and `duplicated` on the wire, `delivered`, and those that are `queued` or `on_wire` now.
    #[pyo3(signature = (*, reverse=false))]
    fn stats(&self, reverse: bool) -> BTreeMap<&'static str, u64> {
        let all = self.path.stats(way(reverse));
        let counts = [
            ("sent", all.offered),
            ("dropped", all.drops()),
            ("marked", all.marked),
            ("lost", all.lost),
            ("duplicated", all.duplicated),
            ("delivered", all.delivered),
            ("queued", all.queued()),
            ("on_wire", all.on_line()),
        ];
        counts.into_iter().map(|(name, count)| (name, count.packets)).collect()
    }
}
