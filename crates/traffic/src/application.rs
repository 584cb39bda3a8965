//! The contract of applications: the declaration of each.

use crate::Emission;
use sojourn_random::{Distribution, Key};
use sojourn_units::Nanos;
use sojourn_units::declare::Parameters;
use sojourn_units::words::{Given, Table, WordError};
use std::convert::Infallible;
use std::fmt::Debug;

/// Carriers of an application's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Packets on a schedule of their own.
pub trait Source: Clone + Debug {
    /// Whether it sends packets. False only for [`Infallible`], the source of applications that
    /// have no packet schedule of their own.
    const SENDS: bool = true;

    /// Returns the next packet; times never decrease.
    fn next_packet(&mut self) -> Emission;
}

impl Source for Infallible {
    const SENDS: bool = false;

    fn next_packet(&mut self) -> Emission {
        match *self {}
    }
}

/// The parameters of one application, and the facts about it that the family needs.
pub trait AppParams: Parameters<On = ()> + Clone {
    /// Its name and words.
    const TABLE: Table;

    /// A required word, and a description that has it.
    const REQUIRED: Option<(&'static str, &'static str)> = None;

    /// Its packets, if it [sends](Source::SENDS) any.
    type Source: Source;

    /// Returns the values changed by the given words.
    fn initial(_given: &Given) -> Self {
        Self::new(&())
    }

    /// Settles values that depend on each other, after all given words.
    ///
    /// # Errors
    /// Values that contradict each other.
    fn settle(&mut self, _given: &Given) -> Result<(), WordError> {
        Ok(())
    }

    /// Returns the description of another application for which this one is an alias.
    fn stands_for(&self) -> Option<String> {
        None
    }

    /// Returns its carriers, the usual one first.
    fn carriers(&self) -> &'static [Carrier] {
        if Self::Source::SENDS { &[Carrier::Udp, Carrier::Tcp] } else { &[Carrier::Tcp] }
    }

    /// Returns the distributions among its parameters, which must be valid.
    fn distributions(&self) -> Vec<Distribution> {
        Vec::new()
    }

    /// Checks parameters that do not come from a text.
    ///
    /// # Errors
    /// The first error.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Returns the longest UDP payload that it may send, at most that of a frame; 0 if it sends no
    /// packets.
    fn longest_payload(&self) -> u32 {
        0
    }

    /// Returns whether its flows end by themselves.
    fn ends(&self) -> bool {
        false
    }

    /// Returns the packets of one flow from `start` on, if it sends any.
    fn source(&self, _key: Key, _start: Nanos) -> Option<Self::Source> {
        None
    }
}

/// Refuses packets without a byte.
pub(crate) fn check_length(length: u32) -> Result<(), String> {
    if length > 0 { Ok(()) } else { Err("a packet has at least one byte".to_owned()) }
}
