//! Converts the library's errors to Python exceptions, whose classes are in `album_rl/_errors.py`.

use album::Error;
use album_train::TrainError;
use pyo3::prelude::*;

/// The exception for an error of the library.
pub fn raise(py: Python<'_>, error: Error) -> PyErr {
    let class = match &error {
        Error::Usage(_) | Error::Config(_) => "ConfigError",
        Error::Tabular(e) if e.is_numerical() => "NumericalError",
        Error::Tabular(_) | Error::Data(_) | Error::Load(_) => "DataError",
        Error::Numerical(_) => "NumericalError",
        Error::Train(e) if e.is_numerical() => "NumericalError",
        Error::Train(e) if matches!(**e, TrainError::Env(_) | TrainError::Environments { .. }) => "EnvError",
        Error::Train(e) if e.is_io() => "FileError",
        Error::Train(_) => "RunError",
        Error::Env(_) => "EnvError",
        Error::Io { .. } | Error::NoHome(_) => "FileError",
        _ => "AlbumError",
    };
    exception(py, class, error.to_string())
}

/// The exception for unusable data.
pub fn bad_data(py: Python<'_>, message: String) -> PyErr {
    exception(py, "DataError", message)
}

/// An exception of this class of `album_rl`.
pub fn exception(py: Python<'_>, class: &str, message: String) -> PyErr {
    let made = py
        .import("album_rl._errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((in_python(&message),)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Replaces command-line options in a message by the corresponding Python keywords.
fn in_python(message: &str) -> String {
    let mut text = message.strip_prefix("command line: ").unwrap_or(message).to_owned();
    for (option, keyword) in [
        ("--ends terminal", "ends=\"terminal\""),
        ("--ends timeout", "ends=\"timeout\""),
        ("--ends", "ends="),
        ("--actions discrete", "action_kind=\"discrete\""),
        ("--actions continuous", "action_kind=\"continuous\""),
        ("--actions", "action_kind"),
        ("--allow-unbounded", "allow_unbounded=True"),
        ("--columns", "columns="),
        ("--format", "format="),
        ("--gamma", "gamma="),
        ("--holdout", "holdout="),
        ("--data SOURCE", "data="),
    ] {
        text = text.replace(option, keyword);
    }
    text
}
