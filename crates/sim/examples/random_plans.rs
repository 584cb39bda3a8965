//! Prints random plans, one line of JSON for each: `random_plans COUNT SEED`. Equal arguments give
//! equal plans.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/plans.rs"]
mod plans;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let count: usize = numbers.next().expect("the number of plans");
    let seed: usize = numbers.next().expect("a seed");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&(seed as u64).to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let plans = prop_oneof![3 => plans::dumbbells(), 1 => plans::lans()];
    for _ in 0..count {
        let plan = plans.new_tree(&mut runner).expect("no plan is rejected").current();
        println!("{}", serde_json::to_string(&plan).expect("a plan can be written"));
    }
}
