//! Classes in turn: a row of a level, or the children that one class lends to.

/// Classes of one priority by their number, and whose turn it is.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Number and place, sorted.
    members: Vec<(u16, usize)>,
    /// The number of the class whose turn it is.
    turn: Option<u16>,
    /// The class whose turn it was when it left.
    left: Option<u16>,
}

impl Row {
    /// Returns whether there are no classes.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Adds a class.
    pub fn add(&mut self, id: u16, place: usize) {
        if let Err(n) = self.members.binary_search(&(id, place)) {
            self.members.insert(n, (id, place));
        }
    }

    /// Takes a class out; its turn goes to the next one.
    pub fn remove(&mut self, id: u16) {
        if self.turn == Some(id) {
            self.advance();
        }
        self.members.retain(|(member, _)| *member != id);
    }

    /// Takes a class out; its turn goes to one that follows when it is looked for.
    pub fn remove_lender(&mut self, id: u16) {
        if self.turn == Some(id) {
            (self.turn, self.left) = (None, Some(id));
        }
        self.members.retain(|(member, _)| *member != id);
    }

    /// Passes the turn to the next class, or to none after the last.
    pub fn advance(&mut self) {
        let Some(turn) = self.turn else { return };
        self.turn = self.from(turn.checked_add(1)).map(|(id, _)| id);
    }

    /// Returns the first class from number `id` on.
    fn from(&self, id: Option<u16>) -> Option<(u16, usize)> {
        self.members.iter().find(|(member, _)| id.is_some_and(|id| *member >= id)).copied()
    }

    /// Returns the place of the class whose turn it is. After the last one it is `None`, and the
    /// first one is next.
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
