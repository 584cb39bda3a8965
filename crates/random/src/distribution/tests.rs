use super::*;
use proptest::prelude::*;

/// All distributions, with typical parameters.
const ALL: [Distribution; 12] = [
    Distribution::Const { value: 3.0 },
    Distribution::Uniform { min: 1400.0, max: 1628.0 },
    Distribution::Exponential { mean: 15.0 },
    Distribution::Normal { mean: 10.0, deviation: 2.5 },
    Distribution::LogNormal { median: 8.0, sigma: 0.75 },
    Distribution::Pareto { mean: 12.0, shape: 1.2 },
    Distribution::Pareto { mean: 4.0, shape: 3.0 },
    Distribution::Lomax { mean: 12.0, shape: 1.2 },
    Distribution::BoundedPareto { min: 4.0, max: 200.0, shape: 1.2 },
    Distribution::Weibull { scale: 2.0, shape: 0.5 },
    Distribution::Weibull { scale: 2.0, shape: 3.0 },
    Distribution::Geometric { p: 0.25 },
];

const SAMPLES: usize = 50_000;

fn sorted_samples(distribution: &Distribution, index: u64) -> Vec<f64> {
    let mut stream = crate::Key::new(42, "distribution").child(index).stream("test");
    let mut all: Vec<f64> = (0..SAMPLES).map(|_| distribution.sample(&mut stream)).collect();
    all.sort_by(f64::total_cmp);
    all
}

#[test]
fn samples_follow_their_distribution_functions() {
    // Kolmogorov-Smirnov test: with probability 0.001 the largest distance is above 1.95 / sqrt(n).
    let critical = 1.95 / libm::sqrt(SAMPLES as f64);
    for (index, distribution) in ALL.iter().enumerate() {
        if matches!(distribution, Distribution::Const { .. }) {
            continue;
        }
        let samples = sorted_samples(distribution, index as u64);
        let discrete = matches!(distribution, Distribution::Geometric { .. });
        let mut distance: f64 = 0.0;
        for (i, x) in samples.iter().enumerate() {
            let expected = distribution.cdf(*x);
            let last_of_its_value = samples.get(i + 1) != Some(x);
            if last_of_its_value {
                distance = distance.max((expected - (i + 1) as f64 / SAMPLES as f64).abs());
            }
            if !discrete {
                distance = distance.max((expected - i as f64 / SAMPLES as f64).abs());
            }
        }
        assert!(distance < critical, "{distribution:?}: {distance} above {critical}");
    }
}

#[test]
fn sample_means_are_the_means() {
    for (index, distribution) in ALL.iter().enumerate() {
        // With a shape of at most 2 the variance is infinite, so the mean of samples has no useful
        // confidence interval.
        let heavy = matches!(
            distribution,
            Distribution::Pareto { shape, .. } | Distribution::Lomax { shape, .. } if *shape <= 2.0
        );
        if heavy {
            continue;
        }
        let samples = sorted_samples(distribution, 100 + index as u64);
        let n = SAMPLES as f64;
        let mean = samples.iter().sum::<f64>() / n;
        let variance = samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
        let error = 3.3 * libm::sqrt(variance / n);
        let expected = distribution.mean();
        assert!((mean - expected).abs() <= error + 1e-12, "{distribution:?}: {mean} +- {error}");
    }
}

#[test]
fn quantiles_invert_distribution_functions() {
    for distribution in &ALL[1..11] {
        for i in 1..1000 {
            let p = f64::from(i) / 1000.0;
            let back = distribution.cdf(distribution.quantile(p));
            assert!((back - p).abs() < 1e-12, "{distribution:?} at {p}: {back}");
        }
    }
}

#[test]
fn the_web_object_size_has_its_published_median() {
    // The median of ns-2's ParetoII(12, 1.2) is 2.4 (2^(1/1.2) - 1) = 1.876 packets.
    let size = Distribution::Lomax { mean: 12.0, shape: 1.2 };
    assert!((size.quantile(0.5) - 1.876_313_847).abs() < 1e-9, "{}", size.quantile(0.5));
    let samples = sorted_samples(&size, 7);
    assert!((samples[SAMPLES / 2] - 1.876).abs() < 0.06, "{}", samples[SAMPLES / 2]);
    // In theory P(X > x) = (1 + x / 2.4)^-1.2.
    assert!((size.cdf(24.0) - (1.0 - libm::pow(11.0, -1.2))).abs() < 1e-15);
}

#[test]
fn golden_samples() {
    let table: Vec<String> = ALL
        .iter()
        .map(|distribution| {
            let mut stream = Stream::new(1, "golden", "samples");
            let samples: Vec<f64> = (0..3).map(|_| distribution.sample(&mut stream)).collect();
            format!("{} {samples:?}", distribution.format(Unit::Number))
        })
        .collect();
    assert_eq!(table, GOLDEN);
}

/// First samples of each distribution. An independent program gives the same values to the last
/// digit.
const GOLDEN: [&str; 12] = [
    "const(3) [3.0, 3.0, 3.0]",
    "uniform(1400,1628) [1624.8246532902701, 1515.0715974114535, 1587.1936477307447]",
    "exp(15) [64.10893203985077, 10.538874246988954, 25.807618001839497]",
    "normal(10,2.5) [15.498344264525802, 10.029453492430546, 12.298193677849323]",
    "lognormal(8,0.75) [41.63515244057774, 8.071001606668014, 15.941083505284078]",
    "pareto(12,1.2) [70.43952329744823, 3.591752318018726, 8.388852458531282]",
    "pareto(4,3) [11.083662610723266, 3.370383238428055, 4.731923953389969]",
    "pareto2(12,1.2) [82.12742795693788, 1.9101027816224718, 7.666622950237539]",
    "bpareto(4,200,1.2) [92.92712509217938, 7.128187129751967, 16.21279503991782]",
    "weibull(2,0.5) [36.53293482035737, 0.9872699590564177, 5.920294639367735]",
    "weibull(2,3) [3.245680428545964, 1.777996834585145, 2.3965263947631152]",
    "geometric(0.25) [15.0, 3.0, 6.0]",
];

#[test]
fn one_draw_a_sample() {
    for distribution in &ALL[1..] {
        let (mut a, mut b) = (Stream::new(1, "a", ""), Stream::new(1, "a", ""));
        distribution.sample(&mut a);
        b.next_u64();
        assert_eq!(a.next_u64(), b.next_u64(), "{distribution:?}");
    }
}

#[test]
fn spans_are_rounded_and_never_negative() {
    let mut stream = Stream::new(1, "a", "");
    let below = Distribution::constant(-5.0);
    assert_eq!(below.sample_nanos(&mut stream), 0);
    assert_eq!(Distribution::constant(2.5).sample_nanos(&mut stream), 3);
    assert_eq!(Distribution::constant(0.2).sample_count(&mut stream), 1);
    assert_eq!(Distribution::constant(3.2).sample_count(&mut stream), 4);
}

#[test]
fn reads_words() {
    let time = |text| Distribution::parse(text, Unit::Time).unwrap();
    assert_eq!(time("exp(15s)"), Distribution::Exponential { mean: 15e9 });
    assert_eq!(time("20ms"), Distribution::constant(2e7));
    assert_eq!(time("pareto2(500ms,1.5)"), Distribution::Lomax { mean: 5e8, shape: 1.5 });
    assert_eq!(time("lognormal(1s,0.5)"), Distribution::LogNormal { median: 1e9, sigma: 0.5 });
    let size = |text| Distribution::parse(text, Unit::Size).unwrap();
    assert_eq!(size("uniform(1400,1628)"), Distribution::Uniform { min: 1400.0, max: 1628.0 });
    assert_eq!(size("pareto(30kb,1.2)"), Distribution::Pareto { mean: 30_720.0, shape: 1.2 });
    let number = |text| Distribution::parse(text, Unit::Number).unwrap();
    assert_eq!(number("const(3)"), Distribution::constant(3.0));
    assert_eq!(number("normal(-1,2)"), Distribution::Normal { mean: -1.0, deviation: 2.0 });
}

#[test]
fn errors_say_what_was_found_and_what_is_allowed() {
    let error = |text, unit| Distribution::parse(text, unit).unwrap_err();
    let unknown = error("pareto3(12,1.2)", Unit::Number);
    assert_eq!(unknown.to_string(), "unknown distribution `pareto3`: did you mean `pareto`?");
    assert_eq!(unknown.found, "pareto3");
    assert!(unknown.allowed.contains(&"pareto2".to_owned()));
    assert_eq!(
        error("exp(15)", Unit::Time).to_string(),
        "`mean` needs a time with its unit, such as 15s; found `15`"
    );
    assert_eq!(
        error("pareto2(12)", Unit::Number).to_string(),
        "`pareto2` takes 2 arguments, found 1; write pareto2(mean,shape), without spaces"
    );
    assert_eq!(
        error("pareto2(12,1)", Unit::Number).to_string(),
        "`pareto2(12,1)`: the shape must be above 1, since otherwise the mean is infinite; write \
         pareto2(mean,shape), without spaces"
    );
    for bad in [
        "",
        "exp",
        "exp(",
        "exp()",
        "exp(-1)",
        "exp(0)",
        "exp(nan)",
        "exp(inf)",
        "exp(1e999)",
        "uniform(3,2)",
        "geometric(2)",
        "bpareto(2,2,1)",
        "normal(1,0)",
        "-",
        "1x",
    ] {
        let error = error(bad, Unit::Number);
        assert!(!error.message.is_empty(), "{bad}");
    }
}

fn any_distribution() -> impl Strategy<Value = Distribution> {
    let number = || prop_oneof![0.001f64..1e6, (1u32..1_000_000).prop_map(f64::from)];
    prop_oneof![
        any::<i32>().prop_map(|value| Distribution::constant(f64::from(value) / 8.0)),
        (number(), number()).prop_map(|(a, b)| Distribution::Uniform { min: a, max: a + b }),
        number().prop_map(|mean| Distribution::Exponential { mean }),
        (number(), number()).prop_map(|(mean, deviation)| Distribution::Normal { mean, deviation }),
        (number(), 0.01f64..5.0)
            .prop_map(|(median, sigma)| Distribution::LogNormal { median, sigma }),
        (number(), 1.01f64..5.0).prop_map(|(mean, shape)| Distribution::Pareto { mean, shape }),
        (number(), 1.01f64..5.0).prop_map(|(mean, shape)| Distribution::Lomax { mean, shape }),
        (number(), number(), 0.1f64..5.0).prop_map(|(min, more, shape)| {
            Distribution::BoundedPareto { min, max: min + more, shape }
        }),
        (number(), 0.1f64..5.0).prop_map(|(scale, shape)| Distribution::Weibull { scale, shape }),
        (0.001f64..1.0).prop_map(|p| Distribution::Geometric { p }),
    ]
}

proptest! {
    #[test]
    fn texts_read_back(distribution in any_distribution()) {
        for unit in [Unit::Number, Unit::Size] {
            let text = distribution.format(unit);
            prop_assert_eq!(Distribution::parse(&text, unit).unwrap(), distribution, "{}", text);
        }
    }

    #[test]
    fn times_read_back(mean in 1u64..1 << 62, shape in 1.01f64..9.0) {
        let distribution = Distribution::Lomax { mean: mean as f64, shape };
        let text = distribution.format(Unit::Time);
        prop_assert_eq!(Distribution::parse(&text, Unit::Time).unwrap(), distribution);
    }

    #[test]
    fn samples_stay_in_the_support(distribution in any_distribution(), seed: u64) {
        let mut stream = Stream::new(seed, "support", "");
        for _ in 0..20 {
            let x = distribution.sample(&mut stream);
            prop_assert!(x.is_finite());
            match distribution {
                Distribution::Const { value } => prop_assert_eq!(x.to_bits(), value.to_bits()),
                Distribution::Uniform { min, max } | Distribution::BoundedPareto { min, max, .. } => {
                    prop_assert!(min <= x && x <= max);
                }
                Distribution::Geometric { .. } => prop_assert!(x >= 1.0),
                Distribution::Normal { .. } => {}
                _ => prop_assert!(x >= 0.0),
            }
        }
    }

    #[test]
    fn never_panics(text in "\\PC{0,40}", name in 0usize..10, inside in "[-0-9.,a-z]{0,12}") {
        for unit in [Unit::Number, Unit::Time, Unit::Size] {
            let _ = Distribution::parse(&text, unit);
            let _ = Distribution::parse(&format!("{}({inside})", FORMS[name].0), unit);
        }
    }
}
