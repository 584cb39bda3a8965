//! Traffic sources whose policy is code outside this crate.
//!
//! A [`Policy`] determines the time and the length of each packet. [`External`] checks that the
//! policy keeps to its contract. A policy that violates the contract, or returns a [`Fault`],
//! receives the fault once ([`Policy::on_fault`]) and is not called again. Its flow then sends
//! nothing more, so that the run can end.
//!
//! `examples/policies/rust` has a complete policy with its own `main`.

use crate::Emission;
use crate::application::{AppParams, Source};
use crate::length::MAX_PAYLOAD;
use sojourn_random::{Key, Stream};
use sojourn_units::declare::{derived, unset};
pub use sojourn_units::external::Fault;
use sojourn_units::external::{Code, Spec};
use sojourn_units::{Nanos, params};
use std::fmt;
use std::sync::Arc;

/// Maximum number of packets of one source that may be due at one time.
pub const MOST_AT_ONCE: u32 = 1000;

/// A policy: code that determines the packets of one flow.
///
/// # Contract
/// - Times never decrease, and at most [`MOST_AT_ONCE`] packets are due at one time.
/// - A packet has 1 to [`Params::longest`] bytes. Over UDP it is the payload of a datagram, over
///   TCP a write.
/// - Times depend only on the policy's own earlier times and draws: a source does not learn what
///   happens to its packets.
/// - Equal calls and draws give equal packets.
pub trait Policy: Send + Sync {
    /// Returns the next packet; `None` after the last one. `now` is the time of the previous
    /// packet; in the first call it is the start of the flow.
    ///
    /// # Errors
    /// A fault of the policy's own code.
    fn next(&mut self, now: Nanos) -> Result<Option<Emission>, Fault>;

    /// Visits the state on which packets depend; the policy decides which values it reports.
    fn state(&self, visit: &mut dyn FnMut(&str, i128));

    /// Returns a copy of the policy in its present state.
    fn copy(&self) -> Box<dyn Policy>;

    /// Receives the first fault, with the number of the requested packet, counted from 0; the
    /// policy is not called again.
    fn on_fault(&mut self, now: Nanos, packet: u64, fault: &Fault);
}

/// Creates policies of one class with one set of parameters, one policy for each flow.
pub trait Factory: Send + Sync {
    /// Returns a policy for a flow that begins at `start`. The policy takes its random numbers from
    /// `draws`.
    ///
    /// # Errors
    /// A fault of the policy's own code.
    fn create(
        &self,
        params: &Params,
        start: Nanos,
        draws: Stream,
    ) -> Result<Box<dyn Policy>, Fault>;

    /// Receives the fault of a failed [`Factory::create`]. The flow then sends nothing.
    fn on_fault(&self, now: Nanos, fault: &Fault);
}

params! {
    "external": "";

    /// Parameters of an external source.
    #[derive(Clone, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    pub struct Params {
        /// Name, source and parameters of the policy.
        spec: Spec = unset(),
        /// Maximum UDP payload of the packets, in bytes.
        longest: u32 = derived(|()| 1472),
        /// Code of the policy.
        #[serde(skip)]
        code: Code<dyn Factory> = unset(),
    }
}

impl Params {
    /// Returns parameters with default values for a policy in Rust; `name` identifies the policy.
    /// Packets fit in Ethernet frames.
    pub fn bound(name: &str, factory: Arc<dyn Factory>) -> Self {
        Self { spec: Spec::named(name), code: Code::new(factory), ..Self::default() }
    }
}

impl AppParams for Params {
    type Source = External;

    fn check(&self) -> Result<(), String> {
        if (1..=MAX_PAYLOAD).contains(&self.longest) {
            return Ok(());
        }
        Err(format!(
            "`longest`, the maximum payload of packets, must be from 1 to {MAX_PAYLOAD} bytes"
        ))
    }

    fn longest_payload(&self) -> u32 {
        self.longest
    }

    fn source(&self, key: Key, start: Nanos) -> Option<External> {
        Some(External::new(self, key, start))
    }
}

/// A source with an external policy.
pub struct External {
    /// The policy; `None` after the last packet or a fault.
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
    /// Returns the source of a flow that starts at `start`.
    ///
    /// # Panics
    /// If no code is bound to the parameters.
    pub fn new(params: &Params, key: Key, start: Nanos) -> Self {
        let factory = params.code.of(&params.spec);
        let created = factory.create(params, start, key.stream("policy"));
        let policy = created.map_err(|fault| factory.on_fault(start, &fault)).ok();
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
                "it is due at {at} ns, before the previous packet ({now} ns); times must not decrease"
            )
        } else if !(1..=self.longest).contains(&next.payload) {
            let (bytes, longest) = (next.payload, self.longest);
            format!("it has {bytes} bytes; packets of this source must have 1 to {longest}")
        } else if self.at_once > MOST_AT_ONCE {
            format!(
                "more than {MOST_AT_ONCE} packets are due at one time ({} ns); at most {MOST_AT_ONCE} may be",
                self.now
            )
        } else {
            self.now = next.at;
            self.packets += 1;
            return Ok(Some(next));
        };
        Err(Fault(wrong))
    }
}

impl Source for External {
    /// Returns the next packet; [`Emission::NONE`] after the last one and after a fault.
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

    /// A policy that returns one packet per step with this gap and length, `None` at the end.
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

    /// Returns the packets sent, with times since the start, and the faults.
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
