//! The command line.

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
        /// The configuration file. Without it the embedded models are served on 127.0.0.1:8080.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Listen on this address instead. May be repeated.
        #[arg(long, value_name = "ADDRESS")]
        listen: Vec<SocketAddr>,
        /// Serve /metrics, /livez and /readyz on this address instead.
        #[arg(long, value_name = "ADDRESS")]
        admin: Option<SocketAddr>,
    },
    /// Check a configuration and print how each model would be served.
    Check {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Manage the API keys of a configuration.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Print the OpenAPI document of the served API.
    Openapi,
    /// List the models that would be served.
    Models {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Generate a key. Prints it once, with its entry for the configuration.
    New {
        /// The name of the key.
        #[arg(long)]
        name: String,
        /// The scopes of the key: text, messages, images.
        #[arg(long, value_delimiter = ',', required = true)]
        scopes: Vec<Scope>,
        /// The expiry: a date such as 2027-01-31, a time, or a span from now such as 90d.
        #[arg(long)]
        expires: Option<String>,
        /// The models that the key may use, such as 'model-5.*'. Default: all.
        #[arg(long, value_delimiter = ',')]
        models: Vec<String>,
    },
}

/// The entry point of the `sluicegate` binary.
#[must_use]
pub fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut out = std::io::stderr().lock();
            for problem in error.to_string().lines() {
                // Standard error may be closed.
                let _ = writeln!(out, "sluicegate: {problem}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), ConfigError> {
    match command {
        Command::Serve {
            config,
            listen,
            admin,
        } => {
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
        Command::Keys(KeysCommand::New {
            name,
            scopes,
            expires,
            models,
        }) => {
            print!(
                "{}",
                keys::render_new(&name, &scopes, expires.as_deref(), &models)?
            );
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
                    model
                        .protocols()
                        .map(catalog::Protocol::path)
                        .collect::<Vec<_>>()
                        .join(" ")
                );
            }
            Ok(())
        }
    }
}

fn load(path: Option<PathBuf>) -> Result<Config, ConfigError> {
    match path {
        Some(path) => Config::load(&path),
        None => Ok(Config {
            admin: Some(DEFAULT_ADMIN),
            ..Config::default()
        }),
    }
}

fn serve(config: Config, file: Option<PathBuf>) -> Result<(), ConfigError> {
    let log = log::start().map_err(|error| ConfigError::one(format!("cannot start: {error}")))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| ConfigError::one(format!("cannot start: {error}")))?;
    let served = runtime.block_on(start::run(config, file));
    // Generations that are still running notice that their receiver is gone; they are not waited
    // for.
    runtime.shutdown_background();
    drop(log);
    served
}
