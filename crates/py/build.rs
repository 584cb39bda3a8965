//! Computes the engine's fingerprint, a hash of all sources that affect results. Results of engines
//! with different fingerprints are never mixed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Crates whose code a simulated run executes.
const DECIDING: [&str; 14] = [
    "units",
    "random",
    "measure",
    "queue",
    "congestion",
    "buffer",
    "balance",
    "replication",
    "link",
    "tcp",
    "traffic",
    "plan",
    "network",
    "sim",
];
const SHARED: [&str; 3] = ["Cargo.lock", "Cargo.toml", "rust-toolchain.toml"];

/// FNV-1a with 128 bits. It needs no dependency, and a fingerprint needs no protection against
/// attacks.
struct Hash(u128);

impl Hash {
    fn add(&mut self, bytes: impl Iterator<Item = u8>) {
        for byte in bytes {
            self.0 ^= u128::from(byte);
            self.0 = self.0.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013B);
        }
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, found)?;
        } else if path.extension().is_some_and(|e| e == "rs" || e == "toml" || e == "json") {
            found.push(path);
        }
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files: Vec<PathBuf> = Vec::new();
    for name in SHARED {
        let path = root.join(name);
        println!("cargo::rerun-if-changed={}", path.display());
        if path.exists() {
            files.push(path);
        }
    }
    for name in DECIDING {
        let folder = root.join("crates").join(name);
        println!("cargo::rerun-if-changed={}", folder.join("src").display());
        println!("cargo::rerun-if-changed={}", folder.join("Cargo.toml").display());
        files.push(folder.join("Cargo.toml"));
        sources(&folder.join("src"), &mut files)?;
    }
    // Include the code that calls policies written in Python by users.
    let own = root.join("crates/py/src/own");
    println!("cargo::rerun-if-changed={}", own.display());
    sources(&own, &mut files)?;
    // File names are relative to the root with `/`, and line ends are `\n`, so that the hash is the
    // same on every platform.
    let mut named: Vec<(String, Vec<u8>)> = Vec::new();
    for path in files {
        let name = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        named.push((name, fs::read(&path)?));
    }
    named.sort();
    let mut hash = Hash(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    for (name, content) in &named {
        let text = content.iter().copied().filter(|&byte| byte != b'\r');
        hash.add(name.bytes().chain([0]).chain(text).chain([0]));
    }
    println!("cargo::rustc-env=SOJOURN_FINGERPRINT={:032x}", hash.0);
    Ok(())
}
