//! Only a list of dependencies: see `Cargo.toml`.
