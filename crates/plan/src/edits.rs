//! Edits of a resolved plan: changes of a few values, given as texts, such as by the controls of a
//! Web page.
//!
//! Names, templates and files are already resolved. An edit refers to links and groups by number,
//! and its texts are parsed like those of a scenario.

use crate::{Path, Plan, PlanError, PlanErrors, at};
use serde::Deserialize;
use sojourn_queue::Device;
use sojourn_units::quantity::{parse_rate, parse_time};
use sojourn_units::{MILLISECOND, Nanos, Rate, quantity_error};

/// Edits of a plan. Omitted values stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Edits {
    /// New length of the run. The warm-up keeps its share of the length, rounded down to whole
    /// milliseconds.
    pub duration: Option<String>,
    /// Changes of links.
    pub links: Vec<LinkEdit>,
    /// Changes of round-trip times.
    pub paths: Vec<PathEdit>,
    /// Changes of numbers of flows.
    pub groups: Vec<GroupEdit>,
}

/// A change of one direction of a link.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkEdit {
    /// Index of the link.
    pub link: usize,
    /// New rate.
    #[serde(default)]
    pub rate: Option<String>,
    /// New queue. Its defaults may depend on the rate, so an edit of the rate must repeat the text
    /// of the queue.
    #[serde(default)]
    pub queue: Option<String>,
}

/// A change of the round-trip time of a link's two directions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathEdit {
    /// Index of the link in one direction.
    pub there: usize,
    /// Index of the link in the other direction.
    pub back: usize,
    /// New sum of both delays. Each direction keeps its share of the sum.
    pub rtt: String,
}

/// A change of a group of flows.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupEdit {
    /// Index of the group.
    pub group: usize,
    /// New number of flows, or of Web sessions. They use the pairs of nodes in the plan.
    pub count: u32,
}

/// Returns the warm-up of a run of length `duration`: the same share of the run as `warmup` is of
/// the previous length `before`, rounded down to whole milliseconds.
pub fn scaled_warmup(warmup: Nanos, before: Nanos, duration: Nanos) -> Nanos {
    let share = u128::from(warmup) * u128::from(duration) / u128::from(before.max(1));
    let whole = share / u128::from(MILLISECOND) * u128::from(MILLISECOND);
    Nanos::try_from(whole).unwrap_or(Nanos::MAX)
}

/// Returns delays of two directions whose sum is `rtt`, in the ratio of the previous delays
/// `before`. The delays are equal if both were 0.
pub fn shared_delays(rtt: Nanos, before: (Nanos, Nanos)) -> (Nanos, Nanos) {
    let sum = u128::from(before.0) + u128::from(before.1);
    let there = match sum {
        0 => rtt / 2,
        _ => (u128::from(rtt) * u128::from(before.0) / sum) as Nanos,
    };
    (there, rtt - there)
}

impl Plan {
    /// Applies edits. The changed plan is not validated.
    ///
    /// # Errors
    /// If a text is invalid, the plan does not have a link or group, or a link with a trace gets a
    /// rate: the first such error, with its path. The plan may then contain some of the edits.
    pub fn edit(&mut self, edits: &Edits) -> Result<(), PlanErrors> {
        if let Some(text) = &edits.duration {
            let duration = time(at!["duration"], text)?;
            self.warmup = scaled_warmup(self.warmup, self.duration, duration);
            self.duration = duration;
        }
        for (i, edit) in edits.links.iter().enumerate() {
            self.edit_link(&at!["links", i], edit)?;
        }
        for (i, edit) in edits.paths.iter().enumerate() {
            self.edit_path(&at!["paths", i], edit)?;
        }
        for (i, edit) in edits.groups.iter().enumerate() {
            let at = at!["groups", i, "group"];
            exists(at, "group", edit.group, self.groups.len())?;
            self.groups[edit.group].count = edit.count;
        }
        Ok(())
    }

    fn edit_link(&mut self, at: &Path, edit: &LinkEdit) -> Result<(), PlanErrors> {
        exists(at.join("link"), "link", edit.link, self.links.len())?;
        let params = &mut self.links[edit.link].params;
        if let Some(text) = &edit.rate {
            let at = at.join("rate");
            if params.trace.is_some() {
                return Err(PlanError::new(at, "the link's rate follows a trace").into());
            }
            params.rate = Some(rate(at, text)?);
        }
        if let Some(text) = &edit.queue {
            let rate = params.rate.or_else(|| params.trace.as_ref().map(sojourn_link::Trace::mean));
            let device = Device { rate, ..Device::default() };
            let queue = sojourn_queue::Params::parse(text, &device);
            params.queue = queue.map_err(|e| PlanError::new(at.join("queue"), e.to_string()))?;
        }
        Ok(())
    }

    fn edit_path(&mut self, at: &Path, edit: &PathEdit) -> Result<(), PlanErrors> {
        exists(at.join("there"), "link", edit.there, self.links.len())?;
        exists(at.join("back"), "link", edit.back, self.links.len())?;
        let rtt = time(at.join("rtt"), &edit.rtt)?;
        let before = [edit.there, edit.back].map(|link| self.links[link].params.delay);
        let (there, back) = shared_delays(rtt, before.into());
        self.links[edit.there].params.delay = there;
        self.links[edit.back].params.delay = back;
        Ok(())
    }
}

fn exists(at: Path, what: &str, number: usize, count: usize) -> Result<(), PlanError> {
    if number < count {
        return Ok(());
    }
    Err(PlanError::new(at, format!("there is no {what} {number}; there are only {count}")))
}

fn time(at: Path, text: &str) -> Result<Nanos, PlanError> {
    parse_time(text)
        .map_err(|e| PlanError::new(at, quantity_error(text, &e, "a time", "5ms").message))
}

fn rate(at: Path, text: &str) -> Result<Rate, PlanError> {
    parse_rate(text).map_err(|e| {
        PlanError::new(at, quantity_error(text, &e, "a rate above zero", "10mbit").message)
    })
}
