//! Computes the engine's fingerprint, a hash of what affects results: the code of the crates that a
//! simulated run executes, without comments and tests, and the locked versions of the packages that
//! these crates depend on. Results of engines with different fingerprints are never mixed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// FNV-1a with 128 bits. It needs no dependency, and a fingerprint needs no protection against
/// attacks.
struct Hash(u128);

impl Hash {
    fn add(&mut self, text: &str) {
        for byte in text.bytes().chain([0]) {
            self.0 ^= u128::from(byte);
            self.0 = self.0.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013B);
        }
    }
}

/// Adds the sources in a folder, except tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_stem().is_some_and(|name| name == "tests") {
            continue;
        }
        if path.is_dir() {
            sources(&path, found)?;
        } else if path.extension().is_some_and(|e| e == "rs" || e == "toml" || e == "json") {
            found.push(path);
        }
    }
    Ok(())
}

/// Reads a file, on whose changes the fingerprint depends; line ends are `\n` on every platform.
fn read(path: &Path) -> io::Result<String> {
    println!("cargo::rerun-if-changed={}", path.display());
    Ok(fs::read_to_string(path)?.replace('\r', ""))
}

/// Returns the number of bytes of the literal with which a text begins; 0 without a literal.
fn literal(text: &str) -> usize {
    let raw = text.strip_prefix('b').unwrap_or(text).strip_prefix('r');
    if let Some(rest) = raw {
        let marks = rest.len() - rest.trim_start_matches('#').len();
        if rest[marks..].starts_with('"') {
            let begin = text.len() - rest.len() + marks + 1;
            let end = format!("\"{}", "#".repeat(marks));
            return text[begin..].find(&end).map_or(text.len(), |at| begin + at + end.len());
        }
    }
    let Some(quote) = text.chars().next().filter(|&c| c == '"' || c == '\'') else { return 0 };
    let mut inner = text.char_indices().skip(1);
    while let Some((at, character)) = inner.next() {
        match character {
            '\\' => drop(inner.next()),
            found if found == quote => return at + 1,
            // A lifetime has no second quote.
            _ if quote == '\'' && !text[at + character.len_utf8()..].starts_with('\'') => return 0,
            _ => {}
        }
    }
    0
}

/// Returns the code in a Rust source without comments, items for tests, and repeated white space.
fn code(source: &str) -> String {
    const TEST: &str = "#[cfg(test)]";
    let (mut out, mut rest) = (String::new(), source);
    let (mut item, mut depth, mut test) = (0, 0, None);
    while let Some(next) = rest.chars().next() {
        let named = out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let length = if named && next != '"' { 0 } else { literal(rest) };
        if length > 0 {
            out.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
            continue;
        }
        if rest.starts_with("/*") {
            rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
            continue;
        }
        rest = &rest[next.len_utf8()..];
        if !next.is_whitespace() {
            out.push(next);
        } else if !out.ends_with(char::is_whitespace) {
            out.push(' ');
        }
        let of_test = out[item..].trim_start().starts_with(TEST);
        match next {
            '{' => {
                if test.is_none() && of_test {
                    test = Some((item, depth));
                }
                depth += 1;
            }
            '}' => {
                depth -= 1;
                if let Some((begin, _)) = test.filter(|&(_, outer)| outer == depth) {
                    out.truncate(begin);
                    test = None;
                }
            }
            ';' if test.is_none() && of_test => out.truncate(item),
            _ => {}
        }
        if matches!(next, '{' | '}' | ';') {
            item = out.len();
        }
    }
    out
}

/// Returns the lines of the dependencies, and of the features, in the manifest of a crate.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut wanted = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            let name = line.trim_matches(['[', ']']);
            wanted = matches!(name, "dependencies" | "features" | "workspace.dependencies")
                || (name.starts_with("target.") && name.ends_with(".dependencies"));
        } else if wanted && !line.is_empty() && !line.starts_with('#') {
            found.push(line);
        }
    }
    found
}

/// Returns the name of the dependency in a line of a manifest.
fn name(line: &str) -> &str {
    line.split(['.', ' ', '=']).next().unwrap_or_default()
}

/// Returns the quoted texts in a line.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').skip(1).step_by(2)
}

fn main() -> io::Result<()> {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = own.join("../..");
    let mut hash = Hash(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    hash.add(&read(&root.join("rust-toolchain.toml"))?);
    let workspace = read(&root.join("Cargo.toml"))?;
    let shared = dependencies(&workspace);

    // The crate that runs simulations, and all crates of this project that it depends on.
    let mut crates = vec!["sojourn-sim".to_owned()];
    let (mut files, mut packages) = (Vec::new(), BTreeSet::new());
    let mut at = 0;
    while at < crates.len() {
        let line = shared.iter().find(|line| name(line) == crates[at]).expect("a shared crate");
        let folder = root.join(quoted(line).next().expect("its path"));
        let manifest = read(&folder.join("Cargo.toml"))?;
        for line in dependencies(&manifest) {
            hash.add(line);
            let name = name(line).to_owned();
            if !name.starts_with("sojourn-") {
                packages.insert(name);
            } else if !crates.contains(&name) {
                crates.push(name);
            }
        }
        sources(&folder.join("src"), &mut files)?;
        at += 1;
    }
    // The code that calls policies written in Python by users.
    sources(&root.join("crates/py/src/own"), &mut files)?;

    let lock = read(&root.join("Cargo.lock"))?;
    let locked: Vec<&str> = lock.split("[[package]]").skip(1).collect();
    let mut waiting: Vec<String> = packages.iter().cloned().collect();
    while let Some(wanted) = waiting.pop() {
        for package in &locked {
            let (about, needed) = package.split_once("dependencies").unwrap_or((package, ""));
            if quoted(about).next() == Some(&wanted) {
                for name in quoted(needed).filter_map(|text| text.split(' ').next()) {
                    if packages.insert(name.to_owned()) {
                        waiting.push(name.to_owned());
                    }
                }
            }
        }
    }
    let of = |text: &&&str| quoted(text).next().is_some_and(|name| packages.contains(name));
    locked.iter().filter(of).for_each(|package| hash.add(package));
    shared.iter().filter(|line| packages.contains(name(line))).for_each(|line| hash.add(line));

    // File names are relative to the root with `/`, so that the hash is the same on every platform.
    let mut named: Vec<(String, PathBuf)> = files
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&root).expect("a file below the root").to_string_lossy();
            (name.replace('\\', "/"), path.clone())
        })
        .collect();
    named.sort();
    for (name, path) in &named {
        let text = fs::read_to_string(path)?.replace('\r', "");
        hash.add(name);
        let rust = path.extension().is_some_and(|kind| kind == "rs");
        hash.add(&if rust { code(&text) } else { text });
    }
    println!("cargo::rustc-env=SOJOURN_FINGERPRINT={:032x}", hash.0);
    Ok(())
}
