//! The versions of Linux whose decisions a discipline can make.
//!
//! Linux's disciplines change with time. A discipline that decided otherwise in an older version has the word
//! `linux` ([`crate::kinds::linux`]), whose documentation says what it changes. A version decides as the one
//! before it until the next one that is listed.

use serde::{Deserialize, Serialize};
use sojourn_units::choices;
use sojourn_units::declare::Choices;

choices! {
    /// A version of Linux from which decisions were recorded, oldest first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Linux {
        /// Debian 12's.
        #[serde(rename = "6.1")]
        V6_1 = "6.1",
        /// Debian 13's.
        #[serde(rename = "6.12")]
        V6_12 = "6.12",
        /// The newest.
        #[serde(rename = "7.3")]
        V7_3 = "7.3",
    }
}

impl Linux {
    /// Returns the version that decides as the kernel called `release`, such as `6.1.192-2`; none
    /// if that is no release of a kernel.
    pub fn of_release(release: &str) -> Option<Self> {
        let asked = numbers(release)?;
        let known = Self::ALL
            .iter()
            .rev()
            .find(|linux| numbers(linux.name()).is_some_and(|version| version <= asked));
        Some(known.copied().unwrap_or(Self::V6_1))
    }
}

/// Returns the major and minor number.
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
