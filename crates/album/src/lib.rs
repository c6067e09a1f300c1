//! The library of album.
