//! Nothing but a list of dependencies: see `Cargo.toml`.
