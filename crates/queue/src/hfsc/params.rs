//! Parameters of HFSC, with the words of `tc`.

use crate::classes::{ClassParams, Classful, Fault, TREE, Tree, default_class, tree_of};
use crate::device::Device;
use crate::typed::with_unit;
use sojourn_units::declare::{Param, group};
use sojourn_units::quantity::{format_rate, parse_rate, parse_size, parse_time};
use sojourn_units::words::{Given, Kind, Value, WordError, tokens};
use sojourn_units::{MICROSECOND, Rate, data, params, words};

/// A service curve: a first rate for some time, and a second rate from then on.
#[data]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Curve {
    /// First rate, in bytes per second.
    pub m1: u64,
    /// Time for which the first rate applies, in microseconds.
    pub d: u32,
    /// Second rate, in bytes per second.
    pub m2: u64,
}

/// Words of a curve.
const CURVE: [&str; 6] = ["m1", "d", "m2", "umax", "dmax", "rate"];

impl Curve {
    fn read(text: &str) -> Result<Self, WordError> {
        let words = tokens(text);
        let whole = |message: &str| WordError {
            message: message.to_owned(),
            at: 0..text.len(),
            found: text.to_owned(),
            allowed: CURVE.map(str::to_owned).to_vec(),
            nearest: None,
        };
        let mut given: [Option<u64>; 6] = [None; 6];
        for pair in words.chunks(2) {
            let place = CURVE.iter().position(|word| *word == pair[0].text);
            let (Some(place), Some(value)) = (place, pair.get(1)) else {
                return Err(whole(
                    "needs m1, d and m2; umax, dmax and rate; or rate, such as `rate 2mbit`",
                ));
            };
            let read = match CURVE[place] {
                "d" | "dmax" => {
                    parse_time(&with_unit(Kind::Time, value.text)).map(|span| span / MICROSECOND)
                }
                "umax" => parse_size(value.text),
                // A rate of 0 is allowed, for a part of the curve without service.
                _ if value.text.trim_end_matches(char::is_alphabetic) == "0" => Ok(0),
                _ => parse_rate(&with_unit(Kind::Rate, value.text)).map(|rate| rate.bits() / 8),
            };
            let read = read.map_err(|_| {
                whole(&format!("`{}` cannot have the value `{}`", pair[0].text, value.text))
            })?;
            if given[place].replace(read).is_some() {
                return Err(whole(&format!("`{}` is given twice", pair[0].text)));
            }
        }
        let short = |micros: u64| {
            u32::try_from(micros).map_err(|_| whole("the time is too long; it must be below 4295s"))
        };
        let curve = match given {
            [m1, d, Some(m2), None, None, None] => {
                Self { m1: m1.unwrap_or_default(), d: short(d.unwrap_or_default())?, m2 }
            }
            [None, None, None, umax, dmax, Some(rate)] => {
                Self::by_delay(umax.unwrap_or_default(), short(dmax.unwrap_or_default())?, rate)
                    .ok_or_else(|| whole("`umax` needs `dmax`, and the rate must be above 0"))?
            }
            _ => {
                return Err(whole(
                    "needs m1, d and m2; umax, dmax and rate; or rate, such as `rate 2mbit`",
                ));
            }
        };
        if curve.m1 == 0 && curve.m2 == 0 {
            return Err(whole("needs a rate above 0"));
        }
        Ok(curve)
    }

    /// Returns the curve that serves `umax` bytes within `dmax` microseconds, and has the rate
    /// `rate` afterwards; `None` for contradictory values.
    fn by_delay(umax: u64, dmax: u32, rate: u64) -> Option<Self> {
        if umax > 0 && dmax == 0 || rate == 0 {
            return None;
        }
        let micros = umax as f64 * 1e6;
        if dmax > 0 && libm::ceil(micros / f64::from(dmax)) > rate as f64 {
            return Some(Self {
                m1: libm::ceil(micros / f64::from(dmax)) as u64,
                d: dmax,
                m2: rate,
            });
        }
        let d = libm::ceil(f64::from(dmax) - micros / rate as f64) as u32;
        Some(Self { m1: 0, d, m2: rate })
    }

    fn write(self) -> String {
        let rate = |bytes: u64| Rate::new(bytes * 8).map_or("0bit".to_owned(), format_rate);
        match self {
            Self { m1: 0, d: 0, m2 } => format!("rate {}", rate(m2)),
            Self { m1, d, m2 } => format!("m1 {} d {d}us m2 {}", rate(m1), rate(m2)),
        }
    }
}

const fn curve<On>() -> Param<Option<Curve>, On> {
    let from = |value: &Value| Curve::read(value.text()).map(Some);
    let to = |curve: &Option<Curve>| curve.map(|curve| Value::Text(curve.write()));
    Param::nested(Kind::Name, "", from, to).initially(|_| None)
}

params! {
    /// Service curves of a class.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Curves on Device {
        /// Real-time curve: the service that the class is guaranteed, regardless of other classes.
        rt: Option<Curve> = curve(),
        /// Link-sharing curve: the class's share of the remaining capacity of its parent.
        ls: Option<Curve> = curve(),
        /// Upper-limit curve: the maximum service of the class by link sharing.
        ul: Option<Curve> = curve(),
    } also words! {
        "sc", Kind::Name, "", "Sets rt and ls to one curve.";
    }
}

impl ClassParams for Curves {
    const DISCIPLINE: &'static str = "hfsc";
    const NESTED: bool = true;
    const INNER: &'static [&'static str] = &CURVE;

    fn settle(&mut self, given: &Given, _device: &Device) -> Result<(), WordError> {
        if let Some(value) = given.find("sc") {
            for word in ["rt", "ls"] {
                if given.has(word) {
                    return Err(given.error(word, format!("`sc` and `{word}` exclude each other")));
                }
            }
            let both = Curve::read(value.text()).map_err(|error| given.nested("sc", error))?;
            (self.rt, self.ls) = (Some(both), Some(both));
        }
        if self.rt.is_none() && self.ls.is_none() {
            return Err(given
                .error("", "a class of `hfsc` needs `rt`, `ls` or `sc`, such as `sc rate 2mbit`"));
        }
        if self.ul.is_some() && self.ls.is_none() {
            return Err(given.error("ul", "`ul` needs `ls` or `sc`"));
        }
        Ok(())
    }
}

params! {
    "hfsc": "hierarchical fair service curves: classes with independent delays and shares",
    from "Linux sch_hfsc.c";

    /// Parameters of `hfsc`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Params on Device {
        /// Class of packets that no filter sends to a class, in hexadecimal; by default they are
        /// dropped.
        default: u16 = default_class(),
        /// Classes and filters.
        tree: Tree<Curves> = group(TREE, |_| Tree::default(), Tree::set, Tree::write),
    }
}

/// Returns the rates in byte/s of the classes in `parent`: what real-time curves give to leaves, and
/// with link sharing, which upper limits bound on all levels; `None` without a bound.
fn together(tree: &Tree<Curves>, parent: u16) -> (u64, Option<u64>) {
    let inside = tree.classes.iter().filter(|class| class.parent == parent);
    let rates = inside.map(|class| {
        let Curves { rt, ls, ul } = class.words;
        let limit = ul.map(|curve| curve.m2);
        let (sure, shared) = if tree.is_leaf(class.id) {
            (rt.map_or(0, |curve| curve.m2), if ls.is_some() { None } else { Some(0) })
        } else {
            together(tree, class.id)
        };
        let bounds = [shared, limit].into_iter().flatten();
        (sure, bounds.min().map(|most| most.max(sure)))
    });
    rates.fold((0, Some(0)), |sum, each| {
        (sum.0 + each.0, sum.1.zip(each.1).map(|(all, more)| all + more))
    })
}

impl Classful for Params {
    tree_of!(Curves);

    const UNCLASSIFIED: &'static str = "are dropped";

    fn default_class(&self) -> u16 {
        self.default
    }

    /// Returns the rate that all classes reach; `None` if upper limits do not bound it.
    fn total_rate(&self) -> Option<Rate> {
        together(&self.tree, 0).1.and_then(|bytes| Rate::new(bytes * 8))
    }

    fn finish(&mut self, _given: &Given, _device: &Device) -> Vec<Fault> {
        // An inner class without a link-sharing curve uses its real-time curve for link sharing.
        let parents = self.tree.parents();
        for class in &mut self.tree.classes {
            if parents.contains(&class.id) && class.words.ls.is_none() {
                class.words.ls = class.words.rt;
            }
        }
        let tree = &self.tree;
        tree.faults(|id| tree.class(id).is_some() && !parents.contains(&id))
    }

    fn check_change(&self, before: &Self, given: &Given) -> Result<(), WordError> {
        self.tree.check_change(&before.tree, given)
    }
}
