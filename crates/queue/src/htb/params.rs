//! The user's settings of HTB: `tc`'s words, and the kernel's numbers.

use crate::classes::{ClassParams, Classful, TREE, Tree, default_class};
use crate::device::Device;
use crate::kinds::{bytes, link_layer, one_size, optional_rate, required_rate};
use crate::speed::{LinkLayer, Speed};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Param, group, integer};
use sojourn_units::words::{Given, Kind, Table, Value, Word, WordError};
use sojourn_units::{Nanos, Rate, SECOND, params, words};

/// The words of `htb`.
pub const TABLE: Table = Table {
    name: "htb",
    summary: "hierarchical token buckets: classes with rates, which lend to each other",
    source: "Linux sch_htb.c",
    words: <Params as sojourn_units::declare::Parameters>::WORDS,
};

/// The longest time that a class saves tokens for.
pub const MBUFFER: i64 = 60 * SECOND as i64;

/// Bytes that `tc` takes for a frame.
const FRAME: u32 = 1600;

const BURST: &[Word] = words! {
    "burst", Kind::Size, "1600b", "Bytes that may leave at once at ceil, beyond rate.";
    "buffer", Kind::Size, "", "The same as burst.";
    "maxburst", Kind::Size, "", "The same as burst.";
};

const CBURST: &[Word] = words! {
    "cburst", Kind::Size, "1600b", "Bytes that may leave at once beyond ceil.";
    "cbuffer", Kind::Size, "", "The same as cburst.";
    "cmaxburst", Kind::Size, "", "The same as cburst.";
};

params! {
    /// A class.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Bucket on Device {
        /// Rate that the class has for itself and its classes; required.
        rate: Rate = required_rate(),
        /// Rate that it never exceeds; rate, unless it is given.
        ceil: Option<Rate> = optional_rate(),
        /// Bytes that may leave at once, beyond rate.
        burst: u32 = group(BURST, |_| FRAME, set_burst, |burst, text| text.value("burst", burst)),
        /// Bytes that may leave at once, beyond ceil.
        cburst: u32 = group(CBURST, |_| FRAME, set_cburst, |cburst, text| text.value("cburst", cburst)),
        /// Rank where classes borrow: 0 is served first.
        prio: u8 = integer(0, 7, "0"),
        /// Bytes that a borrowing class sends in its turn; 0 is a share of rate.
        quantum: u32 = bytes("0b"),
        /// Bytes that the line adds to each packet.
        overhead: u16 = integer(0, 65_535, "0"),
        /// The least that a packet counts, with its overhead.
        mpu: u16 = integer(0, 65_535, "0"),
        /// Size of a packet on the line: its bytes, or with atm cells of 53 bytes.
        layer as "linklayer": LinkLayer = link_layer(),
    }
}

fn set_burst(burst: &mut u32, given: &Given) -> Result<(), WordError> {
    *burst = one_size(given, BURST)?.unwrap_or(*burst);
    Ok(())
}

fn set_cburst(cburst: &mut u32, given: &Given) -> Result<(), WordError> {
    *cburst = one_size(given, CBURST)?.unwrap_or(*cburst);
    Ok(())
}

impl ClassParams for Bucket {
    const DISCIPLINE: &'static str = "htb";
    const NESTED: bool = true;
    const RESTATED: bool = true;

    fn settle(&mut self, given: &Given, _device: &Device) -> Result<(), WordError> {
        if !given.has("rate") {
            return Err(given.error("", "a class of `htb` needs `rate`, such as `rate 10mbit`"));
        }
        // As `tc` computes them, by the kernel's clock of nanoseconds.
        let usual = |rate: Rate| FRAME.saturating_add((rate.bits() / 8 / SECOND) as u32);
        if !BURST.iter().any(|word| given.has(word.name)) {
            self.burst = usual(self.rate);
        }
        if !CBURST.iter().any(|word| given.has(word.name)) {
            self.cburst = usual(self.ceil.unwrap_or(self.rate));
        }
        Ok(())
    }
}

params! {
    /// Parameters of HTB.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Params on Device {
        /// Class of packets that no filter sends to one, in hexadecimal; without it they bypass all
        /// classes.
        default: u16 = default_class(),
        /// Divisor of a class's rate in bytes a second, which gives its quantum.
        r2q: u32 = integer(1, u32::MAX as u64, "10"),
        /// Packets in the queue that bypasses all classes; by default txqueuelen.
        direct_qlen: Option<u32> = Param::word(
            Kind::Packets,
            "",
            |value| u32::try_from(value.integer()).map(Some).map_err(|_| "is too large".to_owned()),
            |limit| limit.map(|limit| Value::Integer(limit.into())),
        )
        .initially(|_| None),
        /// The classes and the filters.
        tree: Tree<Bucket> = group(TREE, |_| Tree::default(), Tree::set, Tree::write),
    }
}

/// The numbers that a class decides with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Bytes of a turn.
    pub quantum: i64,
    /// Depth of the bucket of `rate`, in time.
    pub buffer: i64,
    /// Depth of the bucket of `ceil`, in time.
    pub cbuffer: i64,
    /// Rate.
    pub rate: Speed,
    /// Ceiling.
    pub ceil: Speed,
}

impl Bucket {
    /// Returns the numbers that it decides with; `r2q` is the discipline's.
    pub fn constants(&self, r2q: u32) -> Constants {
        let speed = |rate: Rate| Speed::new(rate.bits() / 8, self.overhead, self.mpu, self.layer);
        let (rate, ceil) = (speed(self.rate), speed(self.ceil.unwrap_or(self.rate)));
        let quantum = match self.quantum {
            0 => (rate.bytes / u64::from(r2q)).clamp(1000, 200_000) as i64,
            quantum => quantum.into(),
        };
        let depth = |speed: &Speed, bytes: u32| speed.depth(bytes) as i64;
        Constants {
            quantum,
            buffer: depth(&rate, self.burst),
            cbuffer: depth(&ceil, self.cburst),
            rate,
            ceil,
        }
    }
}

/// Levels of classes.
pub const LEVELS: usize = 8;

impl Params {
    /// Returns the level of a class: 0 of a leaf; below others one less than that of its parent.
    pub fn level(&self, id: u16) -> usize {
        if self.tree.is_leaf(id) {
            return 0;
        }
        let (mut level, mut id) = (LEVELS - 1, id);
        while let Some(parent) = self.tree.class(id).map(|class| class.parent).filter(|p| *p != 0) {
            level = level.saturating_sub(1);
            id = parent;
        }
        level
    }

    /// Packets in the queue that bypasses all classes.
    pub fn direct_limit(&self) -> u32 {
        self.direct_qlen.unwrap_or(self.tree.txqueuelen)
    }
}

impl Classful for Params {
    const TABLE: &'static Table = &TABLE;

    type Class = Bucket;

    fn tree(&self) -> &Tree<Bucket> {
        &self.tree
    }

    fn tree_mut(&mut self) -> &mut Tree<Bucket> {
        &mut self.tree
    }

    /// Returns the rate of the outermost classes together, unless packets bypass them.
    fn total_rate(&self) -> Option<Rate> {
        let tops = self.tree.classes.iter().filter(|class| class.parent == 0);
        let ceils = tops.map(|class| class.words.ceil.unwrap_or(class.words.rate).bits());
        self.tree.class(self.default).and_then(|_| Rate::new(ceils.sum()))
    }

    fn complete(&mut self, given: &Given, device: &Device) -> Result<(), WordError> {
        self.tree.read(given, device)?;
        for class in &self.tree.classes {
            if !self.tree.is_leaf(class.id) && self.level(class.id) == 0 {
                let message =
                    format!("`{}` is too deep: `htb` has eight levels", self.tree.name(class.id));
                return Err(self.tree.class_error(given, class.id, message));
            }
        }
        let tree = &self.tree;
        // The discipline's own name sends past all classes.
        tree.check(given, |id| id == 0 || tree.class(id).is_some() && tree.is_leaf(id))
    }
}

/// The longest wait for an event of no class.
pub const FAR: Nanos = 5 * SECOND;
