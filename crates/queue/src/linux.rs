//! The versions of Linux whose decisions a discipline can reproduce.
//!
//! Linux's disciplines change from version to version. A discipline whose decisions have changed
//! has the word `linux` ([`crate::kinds::linux`]), whose help text lists the changes. A kernel
//! between two listed versions decides as the older one.

use sojourn_units::choices;
use sojourn_units::declare::Choices;

choices! {
    /// A version of Linux whose decisions were recorded, oldest first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Linux {
        /// A kernel of before March 2026 without that month's fix of CoDel (commit 815980fe), which
        /// the later stable kernels of all versions have.
        #[serde(rename = "2025")]
        V2025 = "2025",
        /// Version of Debian 12.
        #[serde(rename = "6.1")]
        V6_1 = "6.1",
        /// Version of Debian 13.
        #[serde(rename = "6.12")]
        V6_12 = "6.12",
        /// Newest version.
        #[serde(rename = "7.3")]
        V7_3 = "7.3",
    }
}

impl Linux {
    /// The names of the versions that differ for a queue without flows: CoDel forgets there by
    /// itself, because less than an MTU is left.
    pub const RELEASES: &[&str] = Self::NAMES.split_at(1).1;

    /// Returns the listed version that decides as the kernel with this release string, such as
    /// `6.1.192-2`. A kernel older than all listed versions counts as the oldest. Returns `None` if
    /// `release` does not begin with two numbers.
    pub fn of_release(release: &str) -> Option<Self> {
        let requested = numbers(release)?;
        let known = Self::ALL
            .iter()
            .rev()
            .find(|linux| numbers(linux.name()).is_some_and(|version| version <= requested));
        Some(known.copied().unwrap_or(Self::V6_1))
    }
}

/// Returns the major and minor version number.
fn numbers(release: &str) -> Option<(u32, u32)> {
    let (major, rest) = release.split_once('.')?;
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::Linux;

    #[test]
    fn a_release_decides_as_the_version_before_it() {
        for (release, linux) in [
            ("6.1.192-2", Some(Linux::V6_1)),
            ("5.10", Some(Linux::V6_1)),
            ("6.11.1", Some(Linux::V6_1)),
            ("6.12.117 (Debian)", Some(Linux::V6_12)),
            ("6.17", Some(Linux::V6_12)),
            ("7.3.4-1~bpo13+1 (Debian linux-source-7.3)", Some(Linux::V7_3)),
            ("7.10", Some(Linux::V7_3)),
            ("by hand", None),
            ("6", None),
            ("6.x", None),
        ] {
            assert_eq!(Linux::of_release(release), linux, "{release}");
        }
    }
}
