//! Documents that follow from the code: the schema of the configuration file and the file itself,
//! shell completions, and manual pages.

use std::io;
use std::path::Path;

use clap::{CommandFactory as _, Subcommand};
use clap_complete::Shell;
use config::{ConfigError, annotated, schema};

use super::Arguments;

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Print a configuration file with every setting, its meaning and its default.
    Init,
    /// Print the JSON Schema of the configuration file, for editors.
    Schema,
}

impl ConfigCommand {
    pub(super) fn run(&self) {
        match self {
            Self::Init => print!("{}", annotated::file()),
            Self::Schema => println!("{:#}", schema::document().as_value()),
        }
    }
}

/// Prints the completions for a shell.
pub(super) fn completions(shell: Shell) {
    let mut command = Arguments::command();
    clap_complete::generate(shell, &mut command, "sluicegate", &mut io::stdout());
}

/// Writes the manual pages of the program and of each command into a folder, which is created.
pub(super) fn manual(folder: &Path) -> Result<(), ConfigError> {
    let write = |()| clap_mangen::generate_to(Arguments::command(), folder);
    let written = std::fs::create_dir_all(folder).and_then(write);
    written.map_err(|error| ConfigError::one(format!("{}: {error}", folder.display())))
}
