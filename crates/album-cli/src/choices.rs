//! Options with a few named values.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Parses one of these names, each with its value and a line of help.
pub fn choices<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [(&'static str, T, &'static str); N],
) -> impl TypedValueParser<Value = T> {
    let names = all.map(|(name, _, help)| PossibleValue::new(name).help((!help.is_empty()).then_some(help)));
    // Only these names arrive.
    PossibleValuesParser::new(names)
        .map(move |found| all.iter().find(|(name, ..)| *name == found).unwrap_or(&all[0]).1)
}
