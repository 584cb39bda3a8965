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
        /// A kernel without the fix of `fq_codel` of March 2026 (commit 815980fe). The first
        /// releases with it are 6.1.191, 6.12.115, 6.19.11 and 7.0.
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
    /// The names of the versions that differ for other disciplines than `fq_codel`. The last packet
    /// of a CoDel without flows leaves less than an MTU, and makes it forget in all versions.
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

    /// As [`of_release`](Self::of_release), for `fq_codel`: kernels without its fix are
    /// [`V2025`](Self::V2025).
    pub fn of_fq_codel(release: &str) -> Option<Self> {
        let found = Self::of_release(release)?;
        Some(if is_fixed(release) { found } else { Self::V2025 })
    }
}

/// The first release with `fq_codel`'s fix of March 2026 in each stable series that has it.
const FIXED: [((u32, u32), u32); 3] = [((6, 1), 191), ((6, 12), 115), ((6, 19), 11)];

/// Returns whether a release has `fq_codel`'s fix of March 2026. Of a series that is not in
/// [`FIXED`] no release before 7.0 counts as one.
fn is_fixed(release: &str) -> bool {
    let Some(version) = numbers(release) else { return true };
    let patch = || {
        let text = release.split('.').nth(2)?;
        text.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
    };
    let first = FIXED.iter().find(|(series, _)| *series == version);
    version >= (7, 0) || first.is_some_and(|&(_, first)| patch().unwrap_or(0) >= first)
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

    #[test]
    fn a_release_has_the_fix_of_fq_codel_from_a_patch_of_its_series_on() {
        for (release, linux) in [
            ("6.1.192-2", Some(Linux::V6_1)),
            ("6.1.190-1", Some(Linux::V2025)),
            ("6.12.117 (Debian)", Some(Linux::V6_12)),
            ("6.12.107-1~deb12u1", Some(Linux::V2025)),
            ("6.12", Some(Linux::V2025)),
            ("6.17.3", Some(Linux::V2025)),
            ("6.19.10", Some(Linux::V2025)),
            ("6.19.11", Some(Linux::V6_12)),
            ("7.0", Some(Linux::V6_12)),
            ("7.3.4", Some(Linux::V7_3)),
            ("by hand", None),
        ] {
            assert_eq!(Linux::of_fq_codel(release), linux, "{release}");
        }
    }
}
