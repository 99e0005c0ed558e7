//! The command line: arguments in, exit status out.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use auth::Scope;
use clap::{Parser, Subcommand};

use crate::config::{Config, ConfigError, DEFAULT_ADMIN};
use crate::{check, keys, log, openapi, start};

/// One gate for every model protocol.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve clients until SIGTERM or Ctrl-C.
    Serve {
        /// The configuration; without one the embedded models are served on 127.0.0.1:8080.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Serve clients here instead; may be given more than once.
        #[arg(long, value_name = "ADDRESS")]
        listen: Vec<SocketAddr>,
        /// Serve /metrics, /livez and /readyz here instead.
        #[arg(long, value_name = "ADDRESS")]
        admin: Option<SocketAddr>,
    },
    /// Say what is wrong with a configuration.
    Check {
        /// The configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Keys for [[keys]] of a configuration.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Print the OpenAPI document of what is served.
    Openapi,
    /// List the models that would be served.
    Models {
        /// The configuration.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Make a key: shown once, with the lines that a configuration needs.
    New {
        /// Whose key it is.
        #[arg(long)]
        name: String,
        /// What it opens: text, messages, images.
        #[arg(long, value_delimiter = ',', required = true)]
        scopes: Vec<Scope>,
        /// A date such as 2027-01-31, a time, or a span from now such as 90d.
        #[arg(long)]
        expires: Option<String>,
        /// Models that it may use, such as 'model-5.*'; all without it.
        #[arg(long, value_delimiter = ',')]
        models: Vec<String>,
    },
}

/// The `sluicegate` binary: does what the arguments of this process say.
#[must_use]
pub fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut out = std::io::stderr().lock();
            for problem in error.to_string().lines() {
                // Nobody may be there to be told.
                let _ = writeln!(out, "sluicegate: {problem}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), ConfigError> {
    match command {
        Command::Serve { config, listen, admin } => {
            let file = config.clone();
            let mut config = load(config)?;
            if !listen.is_empty() {
                config.listen = listen;
            }
            config.admin = admin.or(config.admin);
            serve(config, file)
        }
        Command::Check { config } => {
            print!("{}", check::report(&Config::load(&config)?)?);
            Ok(())
        }
        Command::Keys(KeysCommand::New { name, scopes, expires, models }) => {
            print!("{}", keys::announce(&name, &scopes, expires.as_deref(), &models)?);
            Ok(())
        }
        Command::Openapi => {
            println!("{:#}", openapi::document());
            Ok(())
        }
        Command::Models { config } => {
            for model in &load(config)?.catalog()? {
                println!(
                    "{:24} {}",
                    model.id,
                    model.protocols().map(catalog::Protocol::path).collect::<Vec<_>>().join(" ")
                );
            }
            Ok(())
        }
    }
}

fn load(path: Option<PathBuf>) -> Result<Config, ConfigError> {
    match path {
        Some(path) => Config::load(&path),
        None => Ok(Config { admin: Some(DEFAULT_ADMIN), ..Config::default() }),
    }
}

fn serve(config: Config, file: Option<PathBuf>) -> Result<(), ConfigError> {
    let log = log::start().map_err(|error| ConfigError::one(format!("cannot start: {error}")))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| ConfigError::one(format!("cannot start: {error}")))?;
    let served = runtime.block_on(start::run(config, file));
    // Generations that are still running notice that nobody listens; nobody waits for them.
    runtime.shutdown_background();
    drop(log);
    served
}
