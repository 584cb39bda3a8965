//! Traffic sources from outside this crate.
//!
//! A [`Policy`] states when its next packet is due and how long it is; [`External`] keeps the
//! contract in any case. A policy that breaks it, or returns a [`Fault`], is notified once
//! ([`Policy::on_fault`]) and not called again; its flow sends nothing more, so that the run can
//! end in order.
//!
//! `examples/policies/rust` has a complete policy with its own `main`.

use crate::Emission;
use crate::application::{AppParams, Source};
use crate::length::MAX_PAYLOAD;
use serde::{Deserialize, Serialize};
use sojourn_random::{Key, Stream};
use sojourn_units::declare::{derived, unset};
pub use sojourn_units::external::Fault;
use sojourn_units::external::{Code, Spec};
use sojourn_units::words::Table;
use sojourn_units::{Nanos, params};
use std::fmt;
use std::sync::Arc;

/// Packets of one source that may be due at one time.
pub const MOST_AT_ONCE: u32 = 1000;

/// The packets of one flow.
///
/// # Contract
/// - Times never decrease, and at most [`MOST_AT_ONCE`] packets are due at one time.
/// - A packet has from 1 byte to [`Params::longest`] bytes: the payload of a datagram over UDP, a write
///   over TCP.
/// - Times follow from the policy's own earlier times and draws alone: a source does not learn the fate
///   of its packets.
/// - The same calls and draws give the same packets.
pub trait Policy: Send + Sync {
    /// Returns the next packet, or `None` after the last. `now` is the time of the previous packet,
    /// at first the start of the flow.
    ///
    /// # Errors
    /// A fault of the policy's own code.
    fn next(&mut self, now: Nanos) -> Result<Option<Emission>, Fault>;

    /// Visits the state on which packets depend, as far as the policy reports it.
    fn state(&self, visit: &mut dyn FnMut(&str, i128));

    /// Returns a copy of the policy in its present state.
    fn copy(&self) -> Box<dyn Policy>;

    /// Invoked once, at the first fault, with the number of the requested packet: the policy is not
    /// called again.
    fn on_fault(&mut self, now: Nanos, packet: u64, fault: &Fault);
}

/// Makes the policies of one class and its parameters, one for each flow.
pub trait Factory: Send + Sync {
    /// Returns a policy for a flow that begins at `start`, with the stream that it draws from.
    ///
    /// # Errors
    /// A fault of the policy's own code.
    fn create(
        &self,
        params: &Params,
        start: Nanos,
        draws: Stream,
    ) -> Result<Box<dyn Policy>, Fault>;

    /// Invoked when [`Factory::create`] failed: the flow sends nothing.
    fn on_fault(&self, now: Nanos, fault: &Fault);
}

params! {
    /// An external source and its parameters.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Params {
        /// The policy and its values.
        spec: Spec = unset(),
        /// The longest payload of its packets.
        longest: u32 = derived(|()| 1472),
        /// The code.
        #[serde(skip)]
        code: Code<dyn Factory> = unset(),
    }
}

impl Params {
    /// Returns the parameters of a user's own policy in Rust, whose packets fit Ethernet's frames.
    pub fn bound(name: &str, factory: Arc<dyn Factory>) -> Self {
        Self { spec: Spec::named(name), code: Code::new(factory), ..Self::default() }
    }
}

impl AppParams for Params {
    const TABLE: Table = Table::external("external");

    type Source = External;

    fn check(&self) -> Result<(), String> {
        if (1..=MAX_PAYLOAD).contains(&self.longest) {
            return Ok(());
        }
        Err(format!("the longest payload of its packets must be from 1 to {MAX_PAYLOAD} bytes"))
    }

    fn longest_payload(&self) -> u32 {
        self.longest
    }

    fn source(&self, key: Key, start: Nanos) -> Option<External> {
        Some(External::new(self, key, start))
    }
}

/// A source whose policy is external.
pub struct External {
    /// The policy; `None` after the last packet.
    policy: Option<Box<dyn Policy>>,
    longest: u32,
    /// Time of the last packet, number of packets, and number of packets at that time.
    now: Nanos,
    packets: u64,
    at_once: u32,
}

impl Clone for External {
    fn clone(&self) -> Self {
        Self { policy: self.policy.as_ref().map(|policy| policy.copy()), ..*self }
    }
}

impl fmt::Debug for External {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("External")
            .field("now", &self.now)
            .field("packets", &self.packets)
            .finish_non_exhaustive()
    }
}

impl External {
    /// Returns a source whose flow begins at `start`.
    ///
    /// # Panics
    /// If the parameters are not bound to their code.
    pub fn new(params: &Params, key: Key, start: Nanos) -> Self {
        let factory = params.code.of(&params.spec);
        let made = factory.create(params, start, key.stream("policy"));
        let policy = made.map_err(|fault| factory.on_fault(start, &fault)).ok();
        Self { policy, longest: params.longest, now: start, packets: 0, at_once: 0 }
    }

    /// Visits the policy's state, as far as the policy reports it.
    pub fn policy_state(&self, visit: &mut dyn FnMut(&str, i128)) {
        if let Some(policy) = &self.policy {
            policy.state(visit);
        }
    }

    fn ask(&mut self) -> Result<Option<Emission>, Fault> {
        let Some(policy) = &mut self.policy else { return Ok(None) };
        let Some(next) = policy.next(self.now)? else { return Ok(None) };
        self.at_once = if next.at == self.now { self.at_once + 1 } else { 1 };
        let wrong = if next.at < self.now {
            let (at, now) = (next.at, self.now);
            format!(
                "it is due at {at} ns, before the time of the call ({now} ns): times never decrease"
            )
        } else if !(1..=self.longest).contains(&next.payload) {
            let (bytes, longest) = (next.payload, self.longest);
            format!("it has {bytes} bytes: packets of this source have from 1 to {longest}")
        } else if self.at_once > MOST_AT_ONCE {
            format!("more than {MOST_AT_ONCE} packets are due at one time ({} ns)", self.now)
        } else {
            self.now = next.at;
            self.packets += 1;
            return Ok(Some(next));
        };
        Err(Fault(wrong))
    }
}

impl Source for External {
    /// Returns the next packet; at the end of time after the last one.
    fn next_packet(&mut self) -> Emission {
        let next = self.ask().unwrap_or_else(|fault| {
            if let Some(policy) = &mut self.policy {
                policy.on_fault(self.now, self.packets, &fault);
            }
            None
        });
        next.unwrap_or_else(|| {
            self.policy = None;
            Emission::NONE
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::App;
    use sojourn_units::EPOCH;
    use std::sync::Mutex;

    /// A packet a step with this gap and length, `None` at the end; faults are kept.
    #[derive(Clone)]
    struct Listed {
        gaps: Vec<Option<(i64, u32)>>,
        next: usize,
        faults: Arc<Mutex<Vec<String>>>,
    }

    impl Policy for Listed {
        fn next(&mut self, now: Nanos) -> Result<Option<Emission>, Fault> {
            let Some(next) = self.gaps.get(self.next) else {
                return Err(Fault("the list is over".to_owned()));
            };
            self.next += 1;
            Ok(next.map(|(gap, payload)| Emission { at: now.saturating_add_signed(gap), payload }))
        }

        fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
            visit("next", self.next as i128);
        }

        fn copy(&self) -> Box<dyn Policy> {
            Box::new(self.clone())
        }

        fn on_fault(&mut self, _now: Nanos, packet: u64, fault: &Fault) {
            self.faults.lock().unwrap().push(format!("{packet}: {fault}"));
        }
    }

    impl Factory for Listed {
        fn create(&self, _: &Params, _: Nanos, _: Stream) -> Result<Box<dyn Policy>, Fault> {
            if self.gaps.is_empty() { Err(Fault("nothing".to_owned())) } else { Ok(self.copy()) }
        }

        fn on_fault(&self, _now: Nanos, fault: &Fault) {
            self.faults.lock().unwrap().push(fault.to_string());
        }
    }

    /// What is sent, times since the start, and the faults.
    fn sent(gaps: &[Option<(i64, u32)>]) -> (Vec<(Nanos, u32)>, Vec<String>) {
        let faults = Arc::default();
        let list = Listed { gaps: gaps.to_vec(), next: 0, faults: Arc::clone(&faults) };
        let app = App::External(Params::bound("listed", Arc::new(list)));
        assert_eq!((app.check(), app.sends_packets(), app.ends()), (Ok(()), true, false));
        let mut source = app.packet_source(Key::new(1, "x"), EPOCH).unwrap();
        let mut sent = Vec::new();
        loop {
            let mut copy = source.clone();
            let next = source.next_packet();
            assert!(next == Emission::NONE || copy.next_packet() == next);
            if next == Emission::NONE {
                assert_eq!(source.next_packet(), next);
                let faults = faults.lock().unwrap().clone();
                return (sent, faults);
            }
            sent.push((next.at - EPOCH, next.payload));
        }
    }

    #[test]
    fn packets_are_the_policys_until_it_ends() {
        let gaps = [Some((0, 1)), Some((5, 1472)), Some((0, 7)), None, Some((1, 1))];
        assert_eq!(sent(&gaps), (vec![(0, 1), (5, 1472), (5, 7)], vec![]));
    }

    #[test]
    fn a_broken_contract_ends_it() {
        let ok = Some((1, 100));
        let faults = |gaps: &[_]| sent(gaps).1;
        assert!(faults(&[ok, Some((-1, 100))])[0].starts_with("1: it is due at"));
        assert!(faults(&[Some((1, 0))])[0].starts_with("0: it has 0 bytes"));
        assert!(faults(&[ok, Some((1, 1473))])[0].starts_with("1: it has 1473 bytes"));
        assert_eq!(faults(&[ok])[0], "1: the list is over");
        assert_eq!(faults(&[]), ["nothing"]);
        let many = vec![Some((0, 1)); MOST_AT_ONCE as usize + 1];
        assert!(sent(&many).1[0].starts_with("1000: more than 1000 packets"));
        assert_eq!(sent(&many).0.len(), 1000);
    }

    #[test]
    fn no_text_names_it_and_its_code_is_no_part_of_a_plan() {
        assert!(App::parse("external").is_err());
        let json = r#"{"name":"external","spec":{"policy":"a.py:A"},"longest":9999}"#;
        let app: App = serde_json::from_str(json).unwrap();
        assert!(app.check().unwrap_err().contains("must be from 1 to 8972"));
        let written = serde_json::to_string(&app).unwrap();
        assert_eq!(serde_json::from_str::<App>(&written).unwrap(), app);
    }
}
