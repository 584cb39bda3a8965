//! Division of messages into fragments.

/// Returns the number of fragments of a message. An empty message has one fragment.
pub(crate) fn fragments(length: u32, chunk: u16) -> u32 {
    length.div_ceil(u32::from(chunk)).max(1)
}

/// Returns offset and length in bytes of a fragment of a message; `None` if the message has no such
/// fragment.
pub(crate) fn fragment(length: u32, chunk: u16, index: u32) -> Option<(usize, usize)> {
    if chunk == 0 || index >= fragments(length, chunk) {
        return None;
    }
    let at = index as usize * usize::from(chunk);
    Some((at, (length as usize - at).min(usize::from(chunk))))
}

/// The set of a message's fragments that have arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fragments {
    /// Bit set of the fragments.
    arrived: Vec<u64>,
    missing: u32,
}

impl Fragments {
    /// Returns the set of a message with `count` fragments, none of which has arrived. It uses the
    /// memory of `self`.
    #[must_use]
    pub(crate) fn renewed(mut self, count: u32) -> Self {
        self.arrived.clear();
        self.arrived.resize(count.div_ceil(64) as usize, 0);
        self.missing = count;
        self
    }

    pub(crate) fn is_missing(&self, index: u32) -> bool {
        self.arrived[(index / 64) as usize] & (1 << (index % 64)) == 0
    }

    /// Adds a fragment. Returns whether it was missing.
    pub(crate) fn add(&mut self, index: u32) -> bool {
        let is_new = self.is_missing(index);
        self.arrived[(index / 64) as usize] |= 1 << (index % 64);
        self.missing -= u32::from(is_new);
        is_new
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.missing == 0
    }
}
