//! State that few connections need.

use std::ops::{Deref, DerefMut};

/// The value of a state before its first change.
pub(crate) trait Initial: Sized + Clone + 'static {
    const INITIAL: &'static Self;
}

/// A state that is allocated when it is first changed, so that connections without losses stay small.
#[derive(Clone, Debug)]
pub(crate) struct Rare<T>(Option<Box<T>>);

impl<T> Rare<T> {
    /// Returns the initial state.
    pub(crate) fn new() -> Self {
        Self(None)
    }

    /// Returns the state for a further change; `None` if it was never changed.
    pub(crate) fn changed(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }
}

impl<T: Initial> Deref for Rare<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::INITIAL)
    }
}

impl<T: Initial> DerefMut for Rare<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_with(|| Box::new(T::INITIAL.clone()))
    }
}
