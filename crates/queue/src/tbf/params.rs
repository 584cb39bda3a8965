//! Parameters of TBF, with the words of `tc`, and TBF's constants in the kernel's units.

use crate::device::Device;
use crate::kinds::{bytes, link_layer, one_size, optional_rate, required_rate, whole_micros};
use crate::params::Params as Child;
use crate::speed::{LinkLayer, Speed};
use sojourn_units::declare::{Parameters, derived, group, integer};
use sojourn_units::words::{Given, Kind, Word, WordError};
use sojourn_units::{Rate, params, words};

const BURST: &[Word] = words! {
    "burst", Kind::Size, "", "Depth of the bucket: bytes that may leave in a burst; required. A longer packet is dropped.";
    "buffer", Kind::Size, "", "Another word for burst.";
    "maxburst", Kind::Size, "", "Another word for burst.";
};

const LIMIT: &[Word] = words! {
    "limit", Kind::Size, "", "Maximum number of bytes in the default child, a bfifo; required unless latency or child is given.";
    "latency", Kind::Time, "", "Maximum time that a packet waits for tokens, from which limit is computed.";
};

const MTU: &[Word] = words! {
    "mtu", Kind::Size, "", "Depth of the bucket of peakrate in bytes, required with peakrate; should be at least the largest frame.";
    "minburst", Kind::Size, "", "Another word for mtu.";
};

const CHILD: &[Word] = words! {
    "child", Kind::Rest, "", "Discipline that queues the packets, followed by its words up to the end; by default a bfifo with the same limit.";
};

params! {
    "tbf": "TBF: a token bucket limits the rate; any discipline may queue the packets",
    from "Linux sch_tbf.c";

    /// Parameters of TBF, with the words of `tc`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Params on Device {
        /// Rate at which the bucket fills; required.
        rate: Rate = required_rate(),
        /// Depth of the bucket, in bytes.
        burst: u32 = group(BURST, |_| 0, set_burst, |burst, text| text.value("burst", burst)),
        /// Limit of the default child, in bytes; 0 with a child.
        limit: u32 = group(LIMIT, |_| 0, set_limit, |limit, text| {
            text.optional("limit", (*limit != 0).then_some(*limit))
        }),
        /// Maximum rate of bursts, above rate; by default the rate of bursts is not limited.
        peakrate: Option<Rate> = optional_rate(),
        /// Depth of the bucket of peakrate, in bytes; 0 without peakrate.
        mtu: u32 = group(MTU, |_| 0, set_mtu, |mtu, text| {
            text.optional("mtu", (*mtu != 0).then_some(*mtu))
        }),
        /// Bytes that the line adds to each packet.
        overhead: u16 = integer(0, 65_535, "0"),
        /// Minimum size of a packet on the line in bytes, overhead included.
        mpu: u16 = integer(0, 65_535, "0"),
        /// Framing that determines a packet's size on the line: its bytes (ethernet), or cells of
        /// 53 bytes (atm).
        layer as "linklayer": LinkLayer = link_layer(),
        /// Discipline that queues the packets; by default a bfifo with the same limit.
        child: Option<Box<Child>> = group(CHILD, |_| None, |_, _| Ok(()), |child, text| match child {
            Some(child) => text.value("child", child.to_text()),
            None => text,
        }),
        /// Largest frame of the device, in bytes.
        frame: u32 = derived(|device: &Device| device.psched_mtu),
    }
}

fn set_burst(burst: &mut u32, given: &Given) -> Result<(), WordError> {
    *burst = one_size(given, BURST)?.unwrap_or(*burst);
    Ok(())
}

fn set_mtu(mtu: &mut u32, given: &Given) -> Result<(), WordError> {
    *mtu = one_size(given, MTU)?.unwrap_or(*mtu);
    Ok(())
}

fn set_limit(limit: &mut u32, given: &Given) -> Result<(), WordError> {
    bytes::<Device>("0b").above_zero().named("limit", "").set(limit, given)
}

/// Parameters in the units of TBF's decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Depth of the bucket, as transmission time in nanoseconds.
    pub buffer: i64,
    /// Depth of the peak rate's bucket, as transmission time in nanoseconds.
    pub mtu: i64,
    /// Length of the longest packet that is accepted, in bytes.
    pub max_size: u32,
    /// Rate at which the bucket fills.
    pub rate: Speed,
    /// Rate at which the peak rate's bucket fills; `None` without peak rate.
    pub peak: Option<Speed>,
}

impl Params {
    fn speed(&self, rate: Rate) -> Speed {
        Speed::new(rate.bits() / 8, self.overhead, self.mpu, self.layer)
    }

    /// Returns the constants that a present `tc` sets.
    pub fn constants(&self) -> Constants {
        let rate = self.speed(self.rate);
        let peak = self.peakrate.map(|peak| self.speed(peak));
        Constants {
            buffer: rate.time(self.burst) as i64,
            mtu: peak.map_or(0, |peak| peak.time(self.mtu) as i64),
            max_size: peak.map_or(self.burst, |_| self.burst.min(self.mtu)),
            rate,
            peak,
        }
    }

    /// Returns the constants that a `tc` before 3.14 sets, which passes the depths only as times.
    pub fn constants_by_times(&self) -> Constants {
        let size = |speed: &Speed, depth: u64| speed.length(depth).min(u32::MAX.into()) as u32;
        let constants = self.constants();
        let buffer = constants.rate.depth(self.burst);
        let mtu = constants.peak.map_or(0, |peak| peak.depth(self.mtu));
        let max_size = size(&constants.rate, buffer);
        Constants {
            buffer: buffer as i64,
            mtu: mtu as i64,
            max_size: constants.peak.map_or(max_size, |peak| max_size.min(size(&peak, mtu))),
            ..constants
        }
    }

    /// Returns the given child, or the default FIFO in bytes.
    pub(super) fn child(&self) -> Child {
        match &self.child {
            Some(child) => (**child).clone(),
            None => Child::bytes(self.limit),
        }
    }

    /// Checks required words, and computes the values that depend on other words.
    pub(super) fn complete(&mut self, given: &Given, device: &Device) -> Result<(), WordError> {
        let required = |message: &str| Err(given.error("", message));
        if !given.has("rate") {
            return required("`tbf` needs `rate`, such as `rate 10mbit`");
        }
        if self.burst == 0 {
            return required("`tbf` needs `burst`, such as `burst 16kb`");
        }
        if self.peakrate.is_some_and(|peak| peak.bits() / 8 <= self.rate.bits() / 8) {
            return Err(given.error("peakrate", "`peakrate` must be above `rate`"));
        }
        if self.peakrate.is_some() && self.mtu == 0 {
            return Err(given.error("peakrate", "`peakrate` needs `mtu`, such as `mtu 1600`"));
        }
        self.set_latency(given)?;
        self.set_child(given, device)?;
        if self.limit == 0 && self.child.is_none() {
            return required("`tbf` needs `limit` or `latency`, such as `latency 50ms`");
        }
        Ok(())
    }

    /// Computes `limit` from `latency`, as `tc` does.
    fn set_latency(&mut self, given: &Given) -> Result<(), WordError> {
        let Some(value) = given.find("latency") else { return Ok(()) };
        if given.has("limit") {
            return Err(given.error("latency", "`limit` and `latency` exclude each other"));
        }
        let micros = whole_micros(value)
            .and_then(|us| if us == 0 { Err("must be above 0".to_owned()) } else { Ok(us) })
            .map_err(|why| given.error("latency", format!("`latency` {why}")))?;
        let carried = |rate: Rate, burst: u32| {
            (rate.bits() / 8) as f64 * f64::from(micros) / 1e6 + f64::from(burst)
        };
        let bytes = carried(self.rate, self.burst);
        let bytes = self.peakrate.map_or(bytes, |peak| bytes.min(carried(peak, self.mtu)));
        if bytes > f64::from(u32::MAX) {
            return Err(given
                .error("latency", "`latency` is too long: the resulting limit must be below 4gb"));
        }
        self.limit = bytes as u32;
        Ok(())
    }

    fn set_child(&mut self, given: &Given, device: &Device) -> Result<(), WordError> {
        let Some(text) = given.text("child") else { return Ok(()) };
        let read = Child::read_within(self.child.as_deref(), text, device);
        let child = read.map_err(|error| given.within("child", error))?;
        self.child = Some(Box::new(child));
        Ok(())
    }

    /// Returns the parameters after a change, which states all values anew except the child. If the
    /// child is a FIFO that the change does not name, a given limit becomes its limit, in its unit.
    pub(super) fn after(&self, given: &Given, device: &Device) -> Result<Self, WordError> {
        let mut changed = Self { child: self.child.clone(), ..Self::new(device) };
        changed.set(given)?;
        changed.complete(given, device)?;
        let name = |params: &Self| params.child.as_ref().map(|child| child.name());
        if name(self) != name(&changed) {
            let message = "`child` cannot be changed into another discipline";
            return Err(given.error("child", message));
        }
        if !given.has("child")
            && changed.limit != 0
            && let Some(Child::Fifo(fifo)) = changed.child.as_deref_mut()
        {
            fifo.limit = changed.limit;
        }
        changed.drop_idle_limit();
        Ok(changed)
    }

    /// Removes `limit` if there is a child, because it has no effect then.
    pub(super) fn drop_idle_limit(&mut self) {
        if self.child.is_some() {
            self.limit = 0;
        }
    }

    /// Returns the kernel's warning if the bucket is smaller than a frame; otherwise `None`.
    pub(super) fn small_bucket(&self) -> Option<String> {
        let max_size = self.constants().max_size;
        (max_size < self.frame).then(|| {
            let frame = self.frame;
            format!("packets longer than {max_size} bytes are dropped: `burst` (and `mtu`) should be at least {frame}b")
        })
    }
}

impl Child {
    /// Returns a FIFO with a limit in bytes.
    fn bytes(limit: u32) -> Self {
        use crate::fifo;
        use crate::limit::Unit;
        Self::Fifo(fifo::Params { unit: Unit::Bytes, limit })
    }
}
