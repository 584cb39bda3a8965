//! The E-model: the quality of a call by ITU-T G.107 (06/2015), narrowband, with its default
//! values.

use sojourn_units::{MILLISECOND, Nanos};

/// Rating factor R without delay and loss, with all default values of G.107.
pub const DEFAULT_RATING: f64 = 93.2;

// Constants of the E-model with G.107's default values: first the basic signal-to-noise ratio Ro
// (7-2).
const RO: f64 = 94.77;
/// Sum of all noise sources No, in dBm0p (7-3).
const NO: f64 = -61.18;
/// Receive loudness rating, in dB.
const RLR: f64 = 2.0;
/// Weighted echo path loss, in dB.
const WEPL: f64 = 110.0;
/// Minimum perceivable delay mT, in milliseconds. The delay sensitivity sT is 1, that of the
/// default class.
const MT: f64 = 100.0;

/// The quality of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Rating factor R of the E-model; at most 93.2 here.
    pub rating: f64,
    /// Mean opinion score computed from the rating factor, from 1 to 4.5.
    pub mos: f64,
}

/// Returns the effective equipment impairment factor Ie,eff (7-29). `loss` is the share of lost
/// packets, 0 to 1. `burst_ratio` is 1 for random loss, and higher if losses are consecutive. `ie`
/// and `bpl` are the codec's factors Ie and Bpl (G.113).
pub fn equipment_impairment(loss: f64, ie: f64, bpl: f64, burst_ratio: f64) -> f64 {
    let percent = 100.0 * loss.clamp(0.0, 1.0);
    ie + (95.0 - ie) * percent / (percent / burst_ratio + bpl)
}

/// Returns the delay impairment factor Id = Idte + Idle + Idd (7-18) of a mouth-to-ear delay in
/// nanoseconds. `echo` is the talker echo loudness rating TELR in dB. With `None` the echo is
/// cancelled, and only Idd remains.
pub fn delay_impairment(mouth_to_ear: Nanos, echo: Option<f64>) -> f64 {
    let ms = mouth_to_ear as f64 / MILLISECOND as f64;
    let echo_impairment = echo.map_or(0.0, |telr| {
        // The default rating already contains the listener echo at a delay of 0.
        talker_echo(ms, telr) + listener_echo(2.0 * ms) - listener_echo(0.0)
    });
    echo_impairment + absolute_delay(ms)
}

/// Returns Idte (7-19 to 7-22) for a sidetone between 9 and 20 dB; below 1 ms an echo counts as
/// sidetone.
fn talker_echo(ms: f64, telr: f64) -> f64 {
    if ms < 1.0 {
        return 0.0;
    }
    let masked = libm::log10((1.0 + ms / 10.0) / (1.0 + ms / 150.0));
    let terv = telr - 40.0 * masked + 6.0 * libm::exp(-0.3 * ms * ms);
    let roe = -1.5 * (NO - RLR);
    let re = 80.0 + 2.5 * (terv - 14.0);
    let half = (roe - re) / 2.0;
    (half + libm::sqrt(half * half + 100.0) - 1.0) * (1.0 - libm::exp(-ms))
}

/// Returns Idle (7-25, 7-26) for a round-trip delay in milliseconds.
fn listener_echo(round_trip_ms: f64) -> f64 {
    let rle = 10.5 * (WEPL + 7.0) * libm::pow(round_trip_ms + 1.0, -0.25);
    let half = (RO - rle) / 2.0;
    half + libm::sqrt(half * half + 169.0)
}

/// Returns Idd (7-27, 7-28) for a mouth-to-ear delay in milliseconds.
fn absolute_delay(ms: f64) -> f64 {
    if ms <= MT {
        return 0.0;
    }
    let x = libm::log2(ms / MT);
    let norm = |x: f64| libm::pow(1.0 + libm::pow(x, 6.0), 1.0 / 6.0);
    25.0 * (norm(x) - 3.0 * norm(x / 3.0) + 2.0)
}

/// Returns the quality for the impairment factors Id and Ie,eff: R = 93.2 - Id - Ie,eff.
pub fn quality(id: f64, ie_eff: f64) -> Quality {
    let rating = DEFAULT_RATING - id - ie_eff;
    Quality { rating, mos: mos(rating) }
}

/// Returns the mean opinion score of a rating factor (G.107, Annex B). Where the cubic formula
/// falls below 1, the score is 1.
pub fn mos(rating: f64) -> f64 {
    if rating <= 0.0 {
        return 1.0;
    }
    if rating >= 100.0 {
        return 4.5;
    }
    let cubic = rating * (rating - 60.0) * (100.0 - rating) * 7e-6;
    (1.0 + 0.035 * rating + cubic).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_opinion_scores_of_known_ratings() {
        // G.107's table of ratings and scores, which rounds up here and there.
        for (rating, score) in
            [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)]
        {
            assert!((mos(rating) - score).abs() < 0.007, "{rating}: {}", mos(rating));
        }
        assert!((mos(93.2) - 4.41).abs() < 0.005);
        assert!((mos(0.0) - 1.0).abs() < 1e-12 && (mos(-5.0) - 1.0).abs() < 1e-12);
        assert!((mos(100.0) - 4.5).abs() < 1e-12 && (mos(120.0) - 4.5).abs() < 1e-12);
        let all: Vec<f64> = (0..1000).map(|r| mos(f64::from(r) / 10.0)).collect();
        assert!(all.windows(2).all(|w| w[0] <= w[1]));
    }

    #[test]
    fn a_delay_with_its_echo_cancelled_costs_idd() {
        let id = |ms| delay_impairment(ms * MILLISECOND, None);
        assert!(id(0).abs() < 1e-12 && id(100).abs() < 1e-12);
        // X is 1 at 200 ms: 25 (2^(1/6) - 3 (1 + 3^-6)^(1/6) + 2).
        assert!((id(200) - 3.0442).abs() < 1e-3, "{}", id(200));
        assert!((id(586) - 34.7).abs() < 0.05, "{}", id(586));
        // It flattens out: the second half of a second costs less than half as much as the first.
        assert!(id(1000) - id(500) < id(500) / 2.0, "{} {}", id(500), id(1000));
        let half_a_second = quality(id(586), equipment_impairment(0.012, 0.0, 25.1, 1.0));
        assert!((half_a_second.rating - 54.2).abs() < 0.1, "{half_a_second:?}");
        assert!((half_a_second.mos - 2.8).abs() < 0.05, "{half_a_second:?}");
    }

    #[test]
    fn constants_are_those_of_the_default_values() {
        let (slr, ds, room, lstr, nc, nfor) = (8.0, 3.0, 35.0, 18.0, -70.0, -64.0);
        let power = |level: f64| libm::pow(10.0, level / 10.0);
        let sender = room - slr - ds - 100.0 + 0.004 * libm::pow(room - slr - RLR - ds - 14.0, 2.0);
        let pre = room + 10.0 * libm::log10(1.0 + power(10.0 - lstr));
        let receiver = RLR - 121.0 + pre + 0.008 * (pre - 35.0) * (pre - 35.0);
        let all = power(nc) + power(sender) + power(receiver) + power(nfor + RLR);
        let no = 10.0 * libm::log10(all);
        assert!((no - NO).abs() < 0.005, "{no}");
        assert!((15.0 - 1.5 * (slr + no) - RO).abs() < 0.005);
    }

    #[test]
    fn an_echo_costs_more_the_later_and_the_louder_it_is() {
        let id = |ms, telr| delay_impairment(ms * MILLISECOND, Some(telr));
        assert!(id(0, 65.0).abs() < 1e-12, "the default rating");
        assert!(id(300, 65.0) < id(300, 45.0) && id(100, 45.0) < id(300, 45.0));
        // TERV = 45 - 40 log10(31/3) = 4.43, Re = 56.08, Roe = 94.77: Idte = 40.13; the listener's
        // echo adds 0.95 to its 0.15, and Idd is 14.76.
        assert!((id(300, 45.0) - 55.83).abs() < 0.05, "{}", id(300, 45.0));
    }

    #[test]
    fn loss_impairs_by_the_codec() {
        // 2 % random loss: 95 x 2 / 27.1.
        assert!((equipment_impairment(0.02, 0.0, 25.1, 1.0) - 190.0 / 27.1).abs() < 1e-9);
        // Bursts are worse than random loss, and no concealment is worse than any.
        let g711 = equipment_impairment(0.02, 0.0, 25.1, 1.0);
        assert!(equipment_impairment(0.02, 0.0, 25.1, 2.0) > g711);
        assert!(equipment_impairment(0.02, 0.0, 4.3, 1.0) > g711 + 20.0);
        assert!((equipment_impairment(0.0, 11.0, 19.0, 1.0) - 11.0).abs() < 1e-12);
    }
}
