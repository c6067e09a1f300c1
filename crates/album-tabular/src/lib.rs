//! Finite MDPs.
