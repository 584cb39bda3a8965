//! No sequence of datagrams crashes a server or a client, or violates an invariant.
//!
//! Inputs are mutated from a recorded corpus for `SOJOURN_FUZZ_SECONDS` seconds (default 2). An
//! input with new results joins the corpus. `SOJOURN_FUZZ_SEED` repeats a run.
//! `SOJOURN_FUZZ_RECORD` is the path of a folder to which inputs with new results are written. An
//! input that fails is written to a file in the build folder, and the message contains its path.

mod common;

use sojourn_random::Stream;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

fn mutate(draws: &mut Stream, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut pick = |n: usize| draws.below(n as u64) as usize;
    let mut input = corpus[pick(corpus.len())].clone();
    for _ in 0..=pick(6) {
        let at = pick(input.len() + 1);
        match pick(6) {
            0 => input.truncate(at),
            1 => input.insert(at, pick(256) as u8),
            2 if at < input.len() => input[at] ^= 1 << pick(8),
            3 if at < input.len() => input[at] = [0, 1, 2, 7, 127, 255][pick(6)],
            4 => {
                let other = &corpus[pick(corpus.len())];
                let from = pick(other.len() + 1);
                let length = pick(200).min(other.len() - from);
                input.splice(at..at, other[from..from + length].iter().copied());
            }
            _ => input.extend((0..pick(40)).map(|_| pick(256) as u8)),
        }
    }
    input.truncate(4000);
    input
}

fn tried(input: &[u8], seed: u64) -> Vec<u32> {
    std::panic::catch_unwind(|| common::play(input, || {})).unwrap_or_else(|failure| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz-failure.bin");
        std::fs::write(&path, input).unwrap();
        eprintln!("seed {seed}; put {} into tests/corpus", path.display());
        std::panic::resume_unwind(failure)
    })
}

#[test]
fn no_datagrams_crash_either_side() {
    let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let seed = setting("SOJOURN_FUZZ_SEED").unwrap_or(clock.as_nanos() as u64);
    let seconds: f64 = setting("SOJOURN_FUZZ_SECONDS").unwrap_or(2.0);
    let record: Option<PathBuf> = setting("SOJOURN_FUZZ_RECORD");
    let mut draws = Stream::new(seed, "fuzz", "inputs");
    let mut corpus = corpus();
    assert!(!corpus.is_empty());
    let mut reached = BTreeSet::new();
    for input in &corpus {
        reached.extend(tried(input, seed));
    }
    let (begin, mut runs) = (Instant::now(), 0u64);
    while begin.elapsed() < Duration::from_secs_f64(seconds) {
        let input = mutate(&mut draws, &corpus);
        let new = tried(&input, seed).into_iter().filter(|&f| reached.insert(f)).count();
        runs += 1;
        if new > 0 {
            if let Some(folder) = &record {
                std::fs::write(folder.join(format!("{seed:016x}-{runs}.bin")), &input).unwrap();
            }
            corpus.push(input);
        }
    }
    println!("{runs} inputs, seed {seed}, {} features, {} kept", reached.len(), corpus.len());
    assert!(runs > 0);
}
