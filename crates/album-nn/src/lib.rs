//! The network engine.
