//! Names of disciplines and classes, and numbers as iproute2 reads them.

use crate::place::{Fault, Word};
use std::fmt;

/// The number of a discipline (`major`) and of a class in it; minor 0 is the discipline itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// Number of the discipline.
    pub major: u16,
    /// Number of the class.
    pub minor: u16,
}

impl Name {
    /// The place of a device's root discipline.
    pub const ROOT: Self = Self { major: 0xffff, minor: 0xffff };
    /// Major number of the ingress discipline of a device.
    pub(crate) const INGRESS: u16 = 0xffff;
    /// Minor number of the parent of filters for outgoing packets, at the same discipline.
    pub(crate) const EGRESS: u16 = 0xfff3;

    pub(crate) fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// Reads a name such as `1:10`, `1:`, `:10` or `root`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        if text == "root" {
            return Some(Self::ROOT);
        }
        let (major, minor) = text.split_once(':')?;
        if major.is_empty() && minor.is_empty() {
            return None;
        }
        let read = |part: &str| if part.is_empty() { Some(0) } else { hexadecimal(part) };
        Some(Self { major: read(major)?, minor: read(minor)? })
    }

    pub(crate) fn of(word: &Word) -> Result<Self, Fault> {
        Self::read(&word.text).ok_or_else(|| {
            word.fault(format!("`{}` is not the name of a class, such as 1:10", word.text))
        })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.minor {
            0 => write!(f, "{:x}:", self.major),
            minor => write!(f, "{:x}:{minor:x}", self.major),
        }
    }
}

/// Reads the hexadecimal number of a discipline or class.
pub(crate) fn hexadecimal(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let is_plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_plain.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

/// Reads the number of a class, which that of its discipline may precede.
pub(crate) fn minor(text: &str) -> Option<u16> {
    hexadecimal(text.rsplit(':').next()?)
}

/// Reads a handle: `1:`, `1`, `0x1:`, `1:0`.
pub(crate) fn handle(word: &Word) -> Result<u16, Fault> {
    let (major, minor) = word.text.split_once(':').unwrap_or((&word.text, ""));
    let read = hexadecimal(major).filter(|_| matches!(minor, "" | "0"));
    read.ok_or_else(|| {
        word.fault(format!("`{}` is not the handle of a discipline, such as 1:", word.text))
    })
}

/// Reads a number of at most 32 bits: hexadecimal after `0x`, octal after `0`, else decimal.
pub(crate) fn number(word: &Word) -> Result<u32, Fault> {
    let text = word.text.as_str();
    let (digits, base) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    digits_of(word, digits, base)
}

/// Reads a hexadecimal number of at most 32 bits, such as a mask of `u32`.
pub(crate) fn mask(word: &Word) -> Result<u32, Fault> {
    let text = word.text.as_str();
    digits_of(word, text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text), 16)
}

fn digits_of(word: &Word, digits: &str, base: u32) -> Result<u32, Fault> {
    let text = &word.text;
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return Err(word.fault(format!("`{text}` is not a number")));
    }
    u32::from_str_radix(digits, base)
        .map_err(|_| word.fault(format!("`{text}` has more than 32 bits")))
}
