//! Features of links that an engine may lack.

use crate::Link;
use sojourn_link::{Impairments, Loss};

/// A feature of links.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// Name of the key or feature.
    pub name: &'static str,
    /// Noun for the feature in sentences.
    pub phrase: &'static str,
    /// Whether a link has the feature.
    pub of: fn(&Link) -> bool,
}

const fn feature(name: &'static str, phrase: &'static str, of: fn(&Link) -> bool) -> Feature {
    Feature { name, phrase, of }
}

/// Features of device, line and medium.
const DEVICE: &[Feature] = &[
    feature("a shared medium", "a shared medium", |link| {
        link.medium.is_some() || link.to.is_none()
    }),
    feature("ring", "a transmit ring", |link| link.ring > 0),
    feature("a late host", "a late host", |link| link.host.is_some()),
    feature("offload", "super-packets", |link| link.offload.is_some()),
    feature("cells", "ATM or PTM cells", |link| !link.params.cells.is_none()),
    feature("a trace", "a trace", |link| link.params.trace.is_some()),
    feature("changes during the run", "changes during the run", |link| !link.changes.is_empty()),
];

/// Effects of the wire other than its delay.
const WIRE: &[Feature] = &[
    feature("jitter", "jitter", |link| wire(link).jitter.is_some()),
    feature("loss", "loss", |link| wire(link).loss != Loss::None),
    feature("reorder", "reordering", |link| wire(link).reorder.is_some()),
    feature("duplicate", "duplication", |link| wire(link).duplicate.probability > 0.0),
    feature("corrupt", "corruption", |link| wire(link).corrupt.probability > 0.0),
    feature("netem's rate", "netem's rate", |link| wire(link).rate.is_some()),
    feature("netem's limit", "netem's limit", |link| wire(link).limit.is_some()),
    feature("slot", "slots", |link| wire(link).slot.is_some()),
];

fn wire(link: &Link) -> &Impairments {
    &link.params.impairments
}

impl Link {
    /// Returns the features that the link has: first those of device, line and medium,
    /// then the effects of the wire other than its delay.
    pub fn features(&self) -> [Vec<&'static Feature>; 2] {
        [DEVICE, WIRE].map(|all| all.iter().filter(|feature| (feature.of)(self)).collect())
    }

    /// Returns whether the link transmits each packet from its queue as soon as its own transmitter
    /// is free: it has no transmit ring, no shared medium and no late host.
    pub fn has_own_transmitter(&self) -> bool {
        let is_punctual = self.host.as_ref().is_none_or(sojourn_link::host::Params::is_punctual);
        self.medium.is_none() && self.ring == 0 && is_punctual
    }
}
