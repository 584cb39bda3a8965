//! Rows of classes that take turns: the classes of a level, or the children that one class lends
//! to.

/// Classes of one priority, sorted by number, and the class whose turn it is.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Number and index of each class, sorted.
    members: Vec<(u16, usize)>,
    /// Number of the class whose turn it is; `None` after the last class.
    turn: Option<u16>,
    /// Number of the class that `remove_lender` removed during its turn.
    left: Option<u16>,
}

impl Row {
    /// Returns whether the row has no classes.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Adds a class, without effect if the row has it.
    pub fn add(&mut self, id: u16, place: usize) {
        if let Err(n) = self.members.binary_search(&(id, place)) {
            self.members.insert(n, (id, place));
        }
    }

    /// Removes a class; its turn passes to the next class.
    pub fn remove(&mut self, id: u16) {
        if self.turn == Some(id) {
            self.advance();
        }
        self.members.retain(|(member, _)| *member != id);
    }

    /// Removes a class; if it had the turn, the next class is determined only when `next` is
    /// called.
    pub fn remove_lender(&mut self, id: u16) {
        if self.turn == Some(id) {
            (self.turn, self.left) = (None, Some(id));
        }
        self.members.retain(|(member, _)| *member != id);
    }

    /// Passes the turn to the next class, or to no class after the last one.
    pub fn advance(&mut self) {
        let Some(turn) = self.turn else { return };
        self.turn = self.from(turn.checked_add(1)).map(|(id, _)| id);
    }

    /// Returns the first class whose number is at least `id`.
    fn from(&self, id: Option<u16>) -> Option<(u16, usize)> {
        self.members.iter().find(|(member, _)| id.is_some_and(|id| *member >= id)).copied()
    }

    /// Returns the index of the class whose turn it is. After the last class it returns `None`
    /// once, and the turn passes to the first class.
    pub fn next(&mut self) -> Option<usize> {
        if let (None, Some(left)) = (self.turn, self.left) {
            self.turn = self.from(Some(left)).map(|(id, _)| id);
        }
        self.left = None;
        if self.turn.is_none() {
            self.turn = self.members.first().map(|(id, _)| *id);
            return None;
        }
        let turn = self.turn;
        self.members.iter().find(|(id, _)| Some(*id) == turn).map(|(_, place)| *place)
    }
}
