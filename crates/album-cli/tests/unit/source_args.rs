//! Unit tests of the options for reading a log.

use super::*;

#[test]
fn pairs_of_bounds() {
    assert_eq!(bounds("-2,2"), Ok(Bounds(vec![[-2.0, 2.0]])));
    assert_eq!(bounds("-2,2;0, 1e2"), Ok(Bounds(vec![[-2.0, 2.0], [0.0, 100.0]])));
    assert_eq!(bounds("2"), Err("found `2`, expected two numbers such as -2,2".to_owned()));
}
