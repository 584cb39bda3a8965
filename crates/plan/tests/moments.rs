//! Texts of starts and times: their meanings, and the positions of their errors.

use sojourn_plan::{Moments, Starts};
use sojourn_units::SECOND;

#[test]
fn starts_are_one_time_a_span_or_one_after_the_other() {
    let starts = |text: &str| Starts::parse(text).map(|s| (s.first, s.spread, s.every));
    assert_eq!(starts("2s"), Ok((2 * SECOND, 0, 0)));
    assert_eq!(starts(" .5s "), Ok((SECOND / 2, 0, 0)));
    assert_eq!(starts("uniform 1s 10s"), Ok((SECOND, 9 * SECOND, 0)));
    assert_eq!(starts("every 1s"), Ok((0, 0, SECOND)));
    assert_eq!(starts("every 1s from 3s"), Ok((3 * SECOND, 0, SECOND)));
}

#[test]
fn moments_are_one_time_or_come_again() {
    let moments = |text: &str| Moments::parse(text).map(|m| (m.first, m.every));
    assert_eq!(moments("20s"), Ok((20 * SECOND, 0)));
    assert_eq!(moments("every 40s from 20s"), Ok((20 * SECOND, 40 * SECOND)));
    assert_eq!(moments("every 40s"), Ok((0, 40 * SECOND)));
}

#[test]
fn errors_point_at_the_word() {
    for (text, at, message) in [
        ("every 1", 6..7, "a time needs its unit, such as 5ms; found `1`"),
        ("uniform 2s 1s", 11..13, "the second time, 1s, is before the first, 2s"),
        ("every 1s from 3", 14..15, "needs its unit"),
        ("uniform 2s", 0..10, "\"uniform\" needs two times"),
        ("every 1s from", 0..13, "\"every\" needs a time"),
        ("5 parsec", 0..8, "needs a time such as \"2s\""),
        ("", 0..0, "found \"\""),
    ] {
        let error = Starts::parse(text).unwrap_err();
        assert_eq!(error.at, at, "{text}");
        assert!(error.message.contains(message), "{error}");
    }
    assert_eq!(Starts::parse("evry 1s").unwrap_err().nearest.as_deref(), Some("every"));
    for (text, at, message) in [
        ("every 0s", 0..8, "needs a time above zero"),
        ("every 1", 6..7, "needs its unit"),
        ("every 30s form 2s", 0..17, "needs a time such as \"20s\""),
        ("soon", 0..4, "expected a time"),
    ] {
        let error = Moments::parse(text).unwrap_err();
        assert_eq!(error.at, at, "{text}");
        assert!(error.message.contains(message), "{error}");
    }
}
