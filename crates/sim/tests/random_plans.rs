//! Random plans run: the ledgers balance at every audit, and equal seeds give equal runs.

use crate::common::*;
use crate::plans::{dumbbells, lans};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn any_plan_runs(plan in dumbbells(), seed: u64) {
        let first = run(&plan, seed).unwrap();
        let second = run(&plan, seed).unwrap();
        prop_assert!(first.complete);
        prop_assert_eq!(first.trace_hash, second.trace_hash);
        prop_assert_eq!(&first.captures, &second.captures);
        prop_assert_eq!(format!("{:?}", first.flows), format!("{:?}", second.flows));
        prop_assert!(metric(&first, "utilisation").is_nan() || metric(&first, "utilisation") <= 1.0);
        prop_assert!(metric(&first, "loss").is_nan() || metric(&first, "loss") <= 1.0);
    }

    #[test]
    fn any_lan_runs(plan in lans(), seed: u64) {
        let first = run(&plan, seed).unwrap();
        let second = run(&plan, seed).unwrap();
        prop_assert!(first.complete);
        prop_assert_eq!(first.trace_hash, second.trace_hash);
        prop_assert_eq!(format!("{:?}", first.summary), format!("{:?}", second.summary));
        let occupancy = metric(&first, "lan.occupancy");
        prop_assert!((0.0..=1.0).contains(&occupancy));
        prop_assert!((metric(&first, "utilisation") - occupancy).abs() < 1e-9);
        prop_assert!(metric(&first, "lan.attempts") >= metric(&first, "lan.deferrals"));
    }
}
