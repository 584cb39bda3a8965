//! Parameters of HTB, with the words of `tc`, and HTB's constants in the kernel's units.

use crate::classes::{
    About, Class, ClassParams, Classful, Fault, TREE, Tree, default_class, tree_of,
};
use crate::device::Device;
use crate::kinds::{bytes, link_layer, one_size, optional_rate, required_rate};
use crate::speed::{LinkLayer, Speed};
use sojourn_units::clocking::rounded;
use sojourn_units::declare::{Param, group, integer};
use sojourn_units::words::{Given, Kind, Value, Word, WordError};
use sojourn_units::{Nanos, Rate, SECOND, params, words};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum time for which a class accumulates tokens, in nanoseconds.
pub const MBUFFER: i64 = 60 * SECOND as i64;

/// Frame length in bytes that `tc` assumes for default bursts.
const FRAME: u32 = 1600;

const BURST: &[Word] = words! {
    "burst", Kind::Size, "1600b", "Bytes that may leave in a burst at ceil, beyond rate.";
    "buffer", Kind::Size, "", "Another word for burst.";
    "maxburst", Kind::Size, "", "Another word for burst.";
};

const CBURST: &[Word] = words! {
    "cburst", Kind::Size, "1600b", "Bytes that may leave in a burst at the speed of the link, beyond ceil.";
    "cbuffer", Kind::Size, "", "Another word for cburst.";
    "cmaxburst", Kind::Size, "", "Another word for cburst.";
};

params! {
    /// Parameters of a class.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Bucket on Device {
        /// Guaranteed rate of the class and its children together; required.
        rate: Rate = required_rate(),
        /// Maximum rate of the class including borrowed rate; the default is the value of rate.
        ceil: Option<Rate> = optional_rate(),
        /// Depth of the token bucket of rate, in bytes.
        burst: u32 = group(BURST, |_| FRAME, set_burst, |burst, text| text.value("burst", burst)),
        /// Depth of the token bucket of ceil, in bytes.
        cburst: u32 = group(CBURST, |_| FRAME, set_cburst, |cburst, text| text.value("cburst", cburst)),
        /// Priority, 0 first. Classes that need not borrow are served before all that borrow.
        prio: u8 = integer(0, 7, "0"),
        /// Bytes that the class sends per turn; 0 computes them from rate and r2q.
        quantum: u32 = bytes("0b"),
        /// Bytes that the line adds to each packet.
        overhead: u16 = integer(0, 65_535, "0"),
        /// Minimum size of a packet on the line in bytes, overhead included.
        mpu: u16 = integer(0, 65_535, "0"),
        /// Framing that determines a packet's size on the line: its bytes (ethernet), or cells of
        /// 53 bytes (atm).
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
        // `tc`'s default is a frame plus the bytes that are sent in one tick (1 ns) of the kernel's
        // clock.
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
    "htb": "hierarchical token buckets: classes with guaranteed rates that borrow unused rate from each other",
    from "Linux sch_htb.c";

    /// Parameters of `htb`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Params on Device {
        /// Class of packets that no filter sends to a class, in hexadecimal; by default they bypass
        /// all classes.
        default: u16 = default_class(),
        /// Divisor that gives a class's quantum: rate in bytes per second over r2q.
        r2q: u32 = integer(1, u32::MAX as u64, "10"),
        /// Maximum number of packets in the queue that bypasses all classes; by default txqueuelen.
        direct_qlen: Option<u32> = Param::word(
            Kind::Packets,
            "",
            |value| u32::try_from(value.integer()).map(Some).map_err(|_| "is too large".to_owned()),
            |limit| limit.map(|limit| Value::Integer(limit.into())),
        )
        .initially(|_| None),
        /// Classes and filters.
        tree: Tree<Bucket> = group(TREE, |_| Tree::default(), Tree::set, Tree::write),
    }
}

/// Constants of a class, in the kernel's units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Bytes that the class sends per turn.
    pub quantum: i64,
    /// Depth of the token bucket of `rate`, as transmission time in nanoseconds.
    pub buffer: i64,
    /// Depth of the token bucket of `ceil`, as transmission time in nanoseconds.
    pub cbuffer: i64,
    /// Guaranteed rate.
    pub rate: Speed,
    /// Maximum rate.
    pub ceil: Speed,
}

impl Bucket {
    /// Returns the constants of the class; `r2q` is the discipline's parameter.
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

/// Number of levels of classes.
pub const LEVELS: usize = 8;

impl Params {
    /// Returns the level of a class: 0 for a leaf, `LEVELS` - 1 for an inner class without a parent
    /// class, and one less for each step below such a class.
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

    /// Returns the rate that all classes reach together if each has packets.
    pub fn classes_rate(&self) -> Option<Rate> {
        let mut children = BTreeMap::<u16, Vec<&Class<Bucket>>>::new();
        for class in &self.tree.classes {
            children.entry(class.parent).or_default().push(class);
        }
        Rate::new(together(&children, 0).1)
    }

    /// Returns the maximum number of packets in the queue that bypasses all classes.
    pub fn direct_limit(&self) -> u32 {
        self.direct_qlen.unwrap_or(self.tree.txqueuelen)
    }
}

/// Returns the rates in bit/s of the classes in `parent`, without and with what they borrow.
///
/// A class sends at its own rate even if its parent has none left, and borrows up to its ceiling. An
/// outermost class has nothing to borrow from.
fn together(children: &BTreeMap<u16, Vec<&Class<Bucket>>>, parent: u16) -> (u64, u64) {
    let rates = children.get(&parent).into_iter().flatten().map(|class| {
        let rate = class.words.rate.bits();
        let ceil = class.words.ceil.map_or(rate, Rate::bits);
        let most = if parent == 0 { rate.min(ceil) } else { ceil };
        if !children.contains_key(&class.id) {
            return (rate.min(ceil), most);
        }
        let (own, all) = together(children, class.id);
        (own, all.min(most.max(own)))
    });
    rates.fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1))
}

impl Classful for Params {
    tree_of!(Bucket);

    const UNCLASSIFIED: &'static str = "bypass all classes, at the full rate of the link";

    fn default_class(&self) -> u16 {
        self.default
    }

    fn surprises(&self) -> Vec<String> {
        let buckets = self.tree.classes.iter().map(|class| &class.words);
        let rates = buckets.flat_map(|bucket| {
            let ceil = bucket.ceil.filter(|ceil| *ceil != bucket.rate);
            [("rate", Some(bucket.rate)), ("ceil", ceil)]
        });
        let rates: BTreeSet<_> =
            rates.filter_map(|(word, rate)| Some((rate?.bits(), word))).collect();
        let time = |bits: u64| {
            let speed = Speed::new(bits / 8, 0, 0, LinkLayer::Ethernet);
            move |length| speed.time(length)
        };
        rates.iter().filter_map(|(bits, word)| rounded(word, *bits, time(*bits))).collect()
    }

    /// Returns the rate of all classes; `None` without a default class.
    fn total_rate(&self) -> Option<Rate> {
        self.tree.class(self.default).and_then(|_| self.classes_rate())
    }

    fn finish(&mut self, _given: &Given, _device: &Device) -> Vec<Fault> {
        let tree = &self.tree;
        let parents = tree.parents();
        let deep = parents.iter().filter(|id| **id != 0 && self.level(**id) == 0);
        let faults = deep.map(|id| Fault {
            about: About::Class(*id),
            message: format!(
                "`{}` is too deep: `htb` allows eight levels of classes",
                tree.name(*id)
            ),
        });
        // A filter whose target is the discipline itself sends packets past all classes.
        let holds = |id| id == 0 || tree.class(id).is_some() && !parents.contains(&id);
        faults.chain(tree.faults(holds)).collect()
    }
}

/// Maximum time to the next event, in nanoseconds.
pub const FAR: Nanos = 5 * SECOND;
