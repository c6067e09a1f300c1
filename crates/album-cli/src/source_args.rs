//! Options for what a log does not say by itself.

use crate::choices::choices;
use album::Error as Failure;
use album_data::{ActionKind, ColumnMap, Ends, Format, Source};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use std::str::FromStr;

/// Heading of these options in the help.
const HEADING: &str = "Reading a log";

/// How to read a SOURCE; what is not given is detected or guessed, and reported.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SourceArgs {
    /// The file format, if it cannot be told from the contents
    #[arg(long, help_heading = HEADING, value_name = "NAME", value_parser = formats())]
    format: Option<Format>,
    /// The role of each column, e.g. `episode=run,step=t,obs=x_*,action=u1+u2,reward=r,terminal=done`; also
    /// next_obs, timeout and mask [default: the usual names]
    #[arg(long, help_heading = HEADING, value_name = "ROLE=NAMES,...")]
    columns: Option<ColumnMap>,
    /// Whether episodes end because the task was over or because the recording was cut, if the columns do not
    /// tell
    #[arg(long, help_heading = HEADING, value_name = "terminal|timeout", value_parser = choices([("terminal", Ends::Terminal, ""), ("timeout", Ends::Timeout, "")]))]
    ends: Option<Ends>,
    /// Whether integer actions are discrete choices or quantities
    #[arg(long, help_heading = HEADING, value_name = "discrete|continuous", value_parser = choices([("discrete", ActionKind::Discrete, ""), ("continuous", ActionKind::Continuous, "")]))]
    actions: Option<ActionKind>,
    /// The smallest and largest action, e.g. `-2,2`, or one pair per action dimension, e.g. `-2,2;0,100`
    /// [default: those of the file, else of its data]
    #[arg(long, help_heading = HEADING, value_name = "LOW,HIGH", value_parser = bounds, allow_hyphen_values = true)]
    action_bounds: Option<Bounds>,
    /// Give the last step of every episode this reward and all others 0
    #[arg(long, help_heading = HEADING, value_name = "REWARD", allow_hyphen_values = true)]
    reward_last: Option<f32>,
}

/// One pair of bounds per action dimension.
#[derive(Clone, Debug, PartialEq)]
struct Bounds(Vec<[f32; 2]>);

impl SourceArgs {
    /// A source of these files and folders.
    pub fn source(&self, paths: Vec<PathBuf>) -> Source {
        Source {
            paths,
            format: self.format,
            columns: self.columns.clone().unwrap_or_default(),
            ends: self.ends,
            actions: self.actions,
            action_bounds: self.action_bounds.clone().map_or_else(Vec::new, |bounds| bounds.0),
            action_space: None,
            reward_last: self.reward_last,
        }
    }

    /// A source of these files and folders, if there are any.
    pub fn optional(&self, paths: Vec<PathBuf>) -> Result<Option<Source>, Failure> {
        if paths.is_empty() && !self.is_empty() {
            return Err(Failure::Usage("options for reading a log need --data SOURCE".into()));
        }
        Ok((!paths.is_empty()).then(|| self.source(paths)))
    }

    /// Whether none of these options is given.
    pub fn is_empty(&self) -> bool {
        self.source(Vec::new()) == Source::default()
    }
}

fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name))
        .map(|name| Format::ALL.into_iter().find(|format| format.name() == name).unwrap_or(Format::Npz))
}

fn bounds(text: &str) -> Result<Bounds, String> {
    text.split(';').map(low_high).collect::<Result<_, _>>().map(Bounds)
}

/// Two numbers with a comma between them.
pub fn low_high<T: FromStr>(text: &str) -> Result<[T; 2], String> {
    let pair = || {
        let (low, high) = text.split_once(',')?;
        Some([low.trim().parse().ok()?, high.trim().parse().ok()?])
    };
    pair().ok_or_else(|| format!("found `{text}`, expected two numbers such as -2,2"))
}

#[cfg(test)]
#[path = "../tests/unit/source_args.rs"]
mod tests;
