//! The traits by which an application declares its parameters and its packet source.

use crate::Emission;
use sojourn_random::{Distribution, Key};
use sojourn_units::Nanos;
use sojourn_units::declare::Parameters;
use sojourn_units::words::{Given, WordError};
use std::convert::Infallible;
use std::fmt::Debug;

/// A transport that can carry an application's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// TCP, in which a packet of the application is a write.
    Tcp,
    /// UDP, in which a packet of the application is a datagram.
    Udp,
}

/// A packet source: packets on their own schedule.
pub trait Source: Clone + Debug {
    /// Whether the source sends packets. It is false only for [`Infallible`], the source of
    /// applications without a packet schedule.
    const SENDS: bool = true;

    /// Returns the next packet. Times never decrease; after the last packet the result is
    /// [`Emission::NONE`].
    fn next_packet(&mut self) -> Emission;
}

impl Source for Infallible {
    const SENDS: bool = false;

    fn next_packet(&mut self) -> Emission {
        match *self {}
    }
}

/// Parameters of an application, and its properties for code that handles all applications.
pub trait AppParams: Parameters<On = ()> + Clone {
    /// A word that a description must contain, and an example of a description with this word.
    const REQUIRED: Option<(&'static str, &'static str)> = None;

    /// Whether a flow is a session of its receiver, the client, which opens several connections to
    /// the senders.
    const OPENS_SESSIONS: bool = false;

    /// Whether a balancer may select the server of a flow.
    const IS_BALANCED: bool = true;

    /// Packet source of the application; [`Infallible`] if it [sends](Source::SENDS) no packets.
    type Source: Source;

    /// Returns the initial values, which the given words then change.
    fn initial(_given: &Given) -> Self {
        Self::new(&())
    }

    /// Computes values that depend on other values, after all given words are read.
    ///
    /// # Errors
    /// Values that contradict each other.
    fn settle(&mut self, _given: &Given) -> Result<(), WordError> {
        Ok(())
    }

    /// Returns the description that an alias abbreviates; `None` for an application that is no
    /// alias.
    fn stands_for(&self) -> Option<String> {
        None
    }

    /// Returns the transports that can carry the application; the first one is the default.
    fn carriers(&self) -> &'static [Carrier] {
        if Self::Source::SENDS { &[Carrier::Udp, Carrier::Tcp] } else { &[Carrier::Tcp] }
    }

    /// Returns the distributions among the parameters, for a check of their validity.
    fn distributions(&self) -> Vec<Distribution> {
        Vec::new()
    }

    /// Checks parameters that were not parsed from a text, such as those of a plan.
    ///
    /// # Errors
    /// The first value that is not allowed.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Returns the longest UDP payload that the application may send, in bytes, at most that of a
    /// jumbo frame; 0 if it sends no packets.
    fn longest_payload(&self) -> u32 {
        0
    }

    /// Returns whether the application's flows end by themselves.
    fn ends(&self) -> bool {
        false
    }

    /// Returns the packet source of a flow that starts at `start`; `None` if the application sends
    /// no packets.
    fn source(&self, _key: Key, _start: Nanos) -> Option<Self::Source> {
        None
    }
}

/// Rejects packets without a byte.
pub(crate) fn check_length(length: u32) -> Result<(), String> {
    if length > 0 { Ok(()) } else { Err("a packet must have at least one byte".to_owned()) }
}
