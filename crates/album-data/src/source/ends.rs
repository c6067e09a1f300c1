//! The meaning of a log's end flags.

use crate::error::DataError;
use crate::source::Source;
use crate::source::assemble::Rules;
use crate::source::log::LogFile;
use crate::source::roles::{Roles, is_sure_terminal};

/// Decides whether flags mark termination or truncation; an ambiguous log is refused with an error that asks
/// the user.
pub(crate) fn rules(
    source: &Source,
    roles: &Roles,
    table: &dyn LogFile,
    guesses: &mut Vec<String>,
) -> Result<Rules, DataError> {
    let name = |field: Option<usize>| field.map(|i| table.fields()[i].name.clone());
    let undecided = |question: String| Err(DataError::Undecided { place: table.place().clone(), question });
    let (terminal, timeout) = (name(roles.terminal), name(roles.timeout));
    let sure = terminal.as_deref().is_some_and(is_sure_terminal);
    match (&terminal, &timeout, source.ends) {
        (Some(terminal), Some(timeout), Some(_)) => {
            return undecided(format!(
                "--ends is given, but `{terminal}` and `{timeout}` say what ends episodes; leave --ends out, or one of them \
                 with --columns {}",
                if sure { "timeout=" } else { "terminal=" }
            ));
        }
        (Some(terminal), None, None) if !sure && !roles.flags_said && roles.mask.is_none() => {
            return undecided(format!(
                "found one column of flags, `{terminal}`, and cannot tell whether the task was over there or the recording \
                 was cut; say which with --ends terminal or --ends timeout"
            ));
        }
        (None, None, None) if roles.mask.is_none() => guesses.push(
            "ends: timeouts, since no column says what ended episodes (--ends terminal if the task was over)"
                .to_owned(),
        ),
        _ => {}
    }
    if roles.episode.is_none()
        && roles.end_state.is_none()
        && terminal.is_none()
        && timeout.is_none()
        && roles.next_obs.is_empty()
    {
        guesses.push("episodes: one for each file, since no column tells them apart".to_owned());
    }
    // With both flags set, a flag that marks every end adds nothing to the timeout; one that marks
    // terminations only does.
    Ok(Rules { ends: source.ends, terminal_wins: sure, reward_last: source.reward_last })
}
