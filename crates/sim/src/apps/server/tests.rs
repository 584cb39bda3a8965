use super::*;
use crate::server::run;
use sojourn_random::Pause;
use sojourn_units::MILLISECOND;

fn open(policy: &str, rate: u64) -> Params {
    Params {
        duration: 20 * SECOND,
        warmup: 2 * SECOND,
        policy: policy.to_owned(),
        ask: 0,
        sockets: 1,
        clients: 10,
        message: 8192,
        load: Load::Open { rates: vec![(0, rate / 10)], burst: 1, random: true },
        handler: handler::Params {
            rate: 37_500_000,
            per_message: 0,
            random: false,
            pauses: Vec::new(),
        },
        port: 0,
        memory: 0,
        used: 0,
        samples: 0,
    }
}

fn closed(policy: &str, clients: u32) -> Params {
    Params {
        clients,
        message: 64 << 10,
        load: Load::Closed {
            window: 1,
            acknowledged: Acknowledged::Processed,
            rtt: MILLISECOND,
            rto: 200 * MILLISECOND,
            jitter: 0.2,
            link: 100_000_000,
        },
        port: 1_000_000_000,
        ..open(policy, 0)
    }
}

/// In M/D/1 the mean wait is rho / (2 (1 - rho)) service times; the sojourn time in the buffer is
/// the wait.
#[test]
fn waits_as_theory_says() {
    let mut params = open("static size 100mb", 30_000_000);
    params.duration = 200 * SECOND;
    let outcome = run(&params, 1).unwrap();
    assert_eq!(outcome.discarded, 0);
    let rho = 0.8;
    assert!((outcome.utilisation - rho).abs() < 0.01, "{}", outcome.utilisation);
    // At a load of 0.8 the median wait in M/D/1 is 1.22 service times (from the transform of the
    // distribution); the mean is 2.
    let service = 8192.0 / 37.5e6;
    let p50 = outcome.sojourn_p50.unwrap() / service;
    assert!((0.9..1.6).contains(&p50), "{p50}");
    assert!((outcome.throughput - 30e6).abs() < 0.3e6);
}

/// M/M/1/K has a closed form of the loss probability. The message in service occupies one of the K
/// places.
#[test]
fn loses_as_theory_says() {
    let mut params = open("static size 81920", 33_750_000);
    params.handler.random = true;
    params.duration = 400 * SECOND;
    let outcome = run(&params, 3).unwrap();
    let (rho, k) = (0.9f64, 10);
    let power = (0..k).fold(1.0, |p, _| p * rho);
    let expected = (1.0 - rho) * power / (1.0 - power * rho);
    assert!((outcome.exhaustion / expected - 1.0).abs() < 0.03, "{}", outcome.exhaustion);
}

#[test]
fn the_same_seed_gives_the_same_and_another_does_not() {
    let mut params = closed("elastic", 20);
    params.handler.pauses = vec![Pause { every: SECOND, length: SECOND / 4, jitter: 0.5 }];
    params.samples = SECOND;
    let first = run(&params, 7).unwrap();
    assert_eq!(first, run(&params, 7).unwrap());
    assert_ne!(first, run(&params, 8).unwrap());
    assert_eq!(first.samples.len(), 20);
}

/// If messages are acknowledged after processing, a static buffer is exhausted only if the number
/// of clients times the message length exceeds the buffer's size.
#[test]
fn the_message_size_decides() {
    let discarded = |message: Bytes| {
        let mut params = closed("static size 1mb", 35);
        params.message = message;
        run(&params, 1).unwrap().discarded
    };
    assert_eq!(discarded(29 << 10), 0);
    assert!(discarded(40 << 10) > 0);
}

#[test]
fn pauses_are_met_on_demand_and_not_by_a_static_buffer() {
    let exhaustion = |policy: &str| {
        let mut params = open(policy, 20_000_000);
        params.handler.pauses = vec![Pause { every: SECOND, length: SECOND / 4, jitter: 0.0 }];
        run(&params, 1).unwrap()
    };
    assert!(exhaustion("static size 1mb").exhaustion > 0.1);
    for policy in ["on-demand", "elastic"] {
        let outcome = exhaustion(policy);
        assert_eq!(outcome.discarded, 0, "{policy}");
        assert!(outcome.peak_size < 12 << 20, "{policy}: {}", outcome.peak_size);
        assert!(outcome.sojourn_p99.unwrap() < 0.26, "{policy}");
    }
}

/// If the handler is slower than the load, a larger buffer only increases the wait, so the policy
/// `elastic` does not enlarge it.
#[test]
fn overload_does_not_fill_memory() {
    let overloaded = |policy: &str| {
        let mut params = open(policy, 75_000_000);
        params.duration = 60 * SECOND;
        params.warmup = 20 * SECOND;
        run(&params, 1).unwrap()
    };
    let (elastic, rrda) = (overloaded("elastic"), overloaded("rrda"));
    assert!((elastic.throughput / 37.5e6 - 1.0).abs() < 0.01);
    assert!((elastic.exhaustion - 0.5).abs() < 0.01);
    assert!(elastic.sojourn_p99.unwrap() < 0.12, "{elastic:?}");
    assert!(elastic.mean_size < 5e6, "{elastic:?}");
    assert!(rrda.mean_size > 100e6 && rrda.sojourn_p50.unwrap() > 1.0, "{rrda:?}");
}

#[test]
fn many_sockets_share_the_memory() {
    let mut params = open("elastic", 1_500_000);
    params.sockets = 50;
    params.handler.rate = 3_000_000;
    params.handler.pauses = vec![Pause { every: SECOND, length: SECOND / 4, jitter: 0.9 }];
    (params.memory, params.used) = (1 << 30, 1 << 29);
    let outcome = run(&params, 1).unwrap();
    assert_eq!(outcome.discarded, 0);
    assert!(outcome.peak_size >= outcome.peak_occupied);
    assert!(outcome.peak_size < 50 << 21, "{}", outcome.peak_size);
}

#[test]
fn rates_change_on_the_way_and_bad_parameters_are_named() {
    let mut params = open("static size 10mb", 0);
    params.load =
        Load::Open { rates: vec![(0, 0), (10 * SECOND, 1_250_000)], burst: 1, random: false };
    params.samples = SECOND;
    let outcome = run(&params, 1).unwrap();
    assert!(outcome.samples[8].arrived == 0 && outcome.samples[11].arrived > 10_000_000);
    let error = |change: fn(&mut Params)| {
        let mut params = open("elastic", 1000);
        change(&mut params);
        run(&params, 1).unwrap_err()
    };
    assert!(error(|p| p.policy = "elastik".to_owned()).contains("elastic"));
    assert!(error(|p| p.message = 0).contains("`message`"));
    assert!(error(|p| p.handler.rate = 0).contains("rate"));
    assert!(error(|p| p.sockets = u32::MAX).contains("too many"));
    assert!(error(|p| p.duration = 0).contains("`duration`"));
}
