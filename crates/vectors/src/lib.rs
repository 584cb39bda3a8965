//! Replays recorded decisions of queue disciplines.
