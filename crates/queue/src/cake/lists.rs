//! The three scheduling lists of a tin's queues. A queue is on at most one list and can be removed
//! from any position.

/// List of queues in their first turn, served first.
pub const NEW: usize = 0;
/// List of queues that have used up a turn.
pub const OLD: usize = 1;
/// List of empty queues whose COBALT has state that must decay.
pub const DECAYING: usize = 2;

const NONE: u16 = u16::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u16,
    after: u16,
    /// List that contains the queue; `NONE` without a list.
    list: u16,
}

/// The lists of one tin.
#[derive(Clone, Debug)]
pub struct Lists {
    links: Vec<Link>,
    heads: [u16; 3],
    tails: [u16; 3],
}

impl Lists {
    /// Returns empty lists over `queues` queues.
    pub fn new(queues: usize) -> Self {
        let link = Link { before: NONE, after: NONE, list: NONE };
        Self { links: vec![link; queues], heads: [NONE; 3], tails: [NONE; 3] }
    }

    /// Returns the first queue of a list; `None` if the list is empty.
    #[inline]
    pub fn head(&self, list: usize) -> Option<usize> {
        let head = self.heads[list];
        (head != NONE).then_some(head.into())
    }

    /// Moves a queue from its present list, if any, to the tail of `list`.
    #[inline]
    pub fn push(&mut self, list: usize, queue: usize) {
        self.remove(queue);
        let before = self.tails[list];
        self.links[queue] = Link { before, after: NONE, list: list as u16 };
        match before {
            NONE => self.heads[list] = queue as u16,
            _ => self.links[usize::from(before)].after = queue as u16,
        }
        self.tails[list] = queue as u16;
    }

    /// Removes a queue from its list, if any.
    #[inline]
    pub fn remove(&mut self, queue: usize) {
        let Link { before, after, list } = self.links[queue];
        if list == NONE {
            return;
        }
        match before {
            NONE => self.heads[usize::from(list)] = after,
            _ => self.links[usize::from(before)].after = after,
        }
        match after {
            NONE => self.tails[usize::from(list)] = before,
            _ => self.links[usize::from(after)].before = before,
        }
        self.links[queue].list = NONE;
    }

    /// Returns the queues of a list from the head on.
    pub fn iter(&self, list: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.head(list), |&queue| {
            let after = self.links[queue].after;
            (after != NONE).then_some(after.into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_are_what_vectors_would_be(
            steps in prop::collection::vec((0usize..12, 0usize..4), 0..200)
        ) {
            let mut lists = Lists::new(12);
            let mut plain = vec![Vec::new(); 3];
            for (queue, list) in steps {
                for list in &mut plain {
                    list.retain(|other| *other != queue);
                }
                if list < 3 {
                    lists.push(list, queue);
                    plain[list].push(queue);
                } else {
                    lists.remove(queue);
                }
                for (list, expected) in plain.iter().enumerate() {
                    prop_assert_eq!(&lists.iter(list).collect::<Vec<_>>(), expected);
                    prop_assert_eq!(lists.head(list), expected.first().copied());
                }
            }
        }
    }
}
