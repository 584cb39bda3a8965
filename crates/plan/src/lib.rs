//! What is to be run, resolved to numbers.
