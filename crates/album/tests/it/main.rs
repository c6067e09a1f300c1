//! The integration tests of album, by topic, in one program: linking is most of what building a test costs.

mod doctor;
