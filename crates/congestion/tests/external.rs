//! Tests of external controls: decisions that the contract permits, and faults.

use sojourn_congestion::external::{Factory, Fault, Params as Own, Policy};
use sojourn_congestion::{Ack, Cause, Congestion, Host, Params, Start, Window, hystart, reno};
use sojourn_units::{MILLISECOND, Nanos, SECOND};
use std::sync::{Arc, Mutex};

const HOST: Host = Host {
    slow_start: hystart::Params {
        kind: hystart::Kind::None,
        limit: 1000,
        byte_counting: true,
        count: hystart::Count::Bytes,
    },
    hz: 0,
};

type Change = fn(&mut Window, &Ack);
type Faults = Arc<Mutex<Vec<String>>>;

/// Changes the window at each acknowledgement, and returns a fixed ssthresh on congestion.
#[derive(Clone)]
struct Simple {
    change: Change,
    ssthresh: u64,
    faults: Faults,
}

impl Policy for Simple {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) -> Result<(), Fault> {
        (self.change)(window, ack);
        Ok(())
    }

    fn reduce(&mut self, _: &Window, _: u64, _: Cause, _: Nanos) -> Result<u64, Fault> {
        Ok(self.ssthresh)
    }

    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        visit("ssthresh", self.ssthresh.into());
    }

    fn copy(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }

    fn on_fault(&mut self, _now: Nanos, fault: &Fault) {
        self.faults.lock().unwrap().push(fault.0.clone());
    }
}

impl Factory for Simple {
    fn create(&self, _: &mut Window, _: Nanos, _: u32) -> Result<Box<dyn Policy>, Fault> {
        Ok(self.copy())
    }

    fn on_fault(&self, _now: Nanos, _fault: &Fault) {}
}

fn started(change: Change, ssthresh: u64) -> (Congestion, Window, Faults) {
    let faults = Faults::default();
    let factory = Simple { change, ssthresh, faults: faults.clone() };
    let params = Params::from(Own::bound("simple", Arc::new(factory)));
    let mut window = Window::new(1000, 10);
    let mut control = Congestion::new(&params, HOST, &window);
    control.on_start(&mut window, &Start { now: SECOND, srtt: 0, draw: 7 });
    (control, window, faults)
}

fn ack(acked: u64) -> Ack {
    Ack { acked, may_grow: true, cwnd_limited: true, rtt: MILLISECOND, ..Ack::default() }
}

#[test]
fn valid_decisions_are_accepted() {
    let (mut control, mut window, faults) = started(|window, ack| window.cwnd += ack.acked, 5000);
    control.on_ack(&mut window, &ack(1000));
    assert_eq!(window.cwnd, 11_000);
    assert_eq!(control.reduce(&window, 11_000, Cause::Loss, 2 * SECOND), 5000);
    let mut copy = control.clone();
    copy.on_ack(&mut window, &ack(500));
    assert_eq!(window.cwnd, 11_500);
    assert!(faults.lock().unwrap().is_empty());
}

#[test]
fn breaches_of_the_contract_are_reported_once_and_undone() {
    let cases: [(Change, Ack, &str); 6] = [
        (|window, _| window.cwnd = 999, ack(1000), "at least one segment (1000)"),
        (|window, _| window.cwnd = u64::MAX, ack(1000), "at most 1073741824"),
        (|window, _| window.ssthresh = 1999, ack(1000), "at least two segments (2000)"),
        (|window, _| window.mss = 1, ack(1000), "only the transport may set the segment size"),
        (|window, _| window.cwnd += 1, Ack { cwnd_limited: false, ..ack(9) }, "RFC 7661"),
        (|window, _| window.cwnd -= 1, Ack { in_recovery: true, ..ack(9) }, "recovers from losses"),
    ];
    for (change, ack, expected) in cases {
        let (mut control, mut window, faults) = started(change, 5000);
        let before = window;
        control.on_ack(&mut window, &ack);
        control.on_ack(&mut window, &ack);
        assert_eq!(window, before);
        let faults = faults.lock().unwrap();
        assert!(faults.len() == 1 && faults[0].contains(expected), "{faults:?}");
        // After a fault, ssthresh is half of the bytes in flight.
        assert_eq!(control.reduce(&window, 8000, Cause::Loss, 2 * SECOND), 4000);
        assert_eq!(control.pacing_rate(), None);
    }
    let (mut control, window, faults) = started(|_, _| (), 1999);
    assert_eq!(control.reduce(&window, 8000, Cause::Loss, 2 * SECOND), 4000);
    assert!(faults.lock().unwrap()[0].contains("at least two segments (2000)"));
}

#[test]
fn congestion_never_raises_the_window() {
    let (mut control, window, _) = started(|_, _| (), 10_001);
    assert_eq!(control.reduce(&window, 30_000, Cause::Loss, 2 * SECOND), 10_000);
}

#[test]
fn a_plan_names_it_without_its_code() {
    let text = r#"{"name":"external","spec":{"policy":"mine.py:Mine","source":"ab",
        "params":{"gain":1.5}},"owns_window":false,"answers_marks":true}"#;
    let params: Params = serde_json::from_str(text).unwrap();
    let Params::External(own) = &params else { panic!("{params:?}") };
    assert!(own.answers_marks && own.code.get().is_none());
    assert_eq!(
        serde_json::from_str::<Params>(&serde_json::to_string(&params).unwrap()).unwrap(),
        params
    );
    assert_eq!(Params::named("external"), None);
    assert_ne!(params, Params::Reno(reno::Params {}));
}
