//! How a command ends: exit codes and how errors are shown.

use std::fmt::Display;
use std::process::ExitCode;

/// A command's result.
pub(crate) type CommandResult = Result<Verdict, CommandError>;

/// What a command that ran to its end found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Exit code 0.
    Good,
    /// Exit code 1: what was checked does not hold; the command has printed why.
    Bad,
}

/// A command could not do its work.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CommandError {
    /// What went wrong, naming file, object and field.
    message: String,
    /// How to put it right.
    hint: Option<String>,
}

impl CommandError {
    pub(crate) fn new(message: impl Display) -> Self {
        Self { message: message.to_string(), hint: None }
    }

    pub(crate) fn with_hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }
}

/// An error with its causes in one line, each said once.
pub(crate) fn with_causes(error: impl std::error::Error) -> CommandError {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    CommandError::new(text)
}

/// Turns the result into an exit code, saying on stderr what went wrong.
pub(crate) trait Report {
    fn report(self) -> ExitCode;
}

impl Report for CommandResult {
    #[expect(clippy::print_stderr, reason = "the one place where a failed command speaks")]
    fn report(self) -> ExitCode {
        match self {
            Ok(Verdict::Good) => ExitCode::SUCCESS,
            Ok(Verdict::Bad) => ExitCode::from(1),
            Err(error) => {
                eprintln!("error: {error}");
                if let Some(hint) = error.hint {
                    eprintln!("  hint: {hint}");
                }
                ExitCode::from(1)
            }
        }
    }
}
