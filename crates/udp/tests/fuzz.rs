//! The inputs of the fuzz target `udp` crash neither a server nor a client, and violate no invariant.
#![cfg(target_os = "linux")]

mod common;

use std::path::Path;

#[test]
fn no_datagrams_of_the_corpus_crash_either_side() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/udp");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
    assert!(files.len() > 5);
    for file in files {
        let path = file.unwrap().path();
        println!("{}", path.display());
        common::play(&std::fs::read(path).unwrap(), || {});
    }
}
