//! Tests that every control passes.
