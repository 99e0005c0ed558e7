//! The command line.

mod admin_client;
mod admin_connection;
mod check;
mod generated;
mod health;
mod keys;
mod probe;
mod reports;
mod table;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::LazyLock;

use admin::openapi;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use config::{Config, ConfigError, DEFAULT_ADMIN, Responses, pass_through, presets, price_import};
use policy::Policy;
use telemetry::log;
use url::Url;

use self::check::certificates;
use self::check::stores::{self, Stores};
use self::generated::ConfigCommand;
use self::health::Health;
use self::keys::KeysCommand;
use self::reports::{Explain, LimitsReport, UsageReport};
use crate::start::{self, FEATURES};

/// One gate for every model protocol.
#[derive(Debug, Parser)]
#[command(name = "sluicegate", version, long_version = VERSION.as_str(), arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve clients until SIGTERM or Ctrl-C.
    Serve {
        #[command(flatten)]
        source: Source,
        /// Listen on this address instead. May be repeated.
        #[arg(long, value_name = "ADDRESS", value_parser = address)]
        listen: Vec<SocketAddr>,
        /// Serve /metrics, /livez and /readyz on this address instead.
        #[arg(long, value_name = "ADDRESS", value_parser = address)]
        admin: Option<SocketAddr>,
    },
    /// Check a configuration and print how each model would be served.
    Check {
        #[command(flatten)]
        source: Source,
        /// Also send one small request to each target of each model, and report how it is answered.
        #[arg(long)]
        ask: bool,
        /// Ask only the targets of this model, named as by a client. May be repeated.
        #[arg(long, value_name = "NAME", requires = "ask")]
        model: Vec<String>,
    },
    /// Write a configuration file, or its schema.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Ask a running gateway if it is ready: the status is 0 if it is.
    Health(Health),
    /// Make API keys for a configuration, and manage those in the store of a running gateway.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Report the usage that a running gateway has stored.
    Usage(UsageReport),
    /// Report the limits of a running gateway that are in use.
    Limits(LimitsReport),
    /// Explain a request to a running gateway: how it was admitted, tried, charged and ended.
    Explain(Explain),
    /// Convert price lists for the configuration.
    #[command(subcommand)]
    Prices(PricesCommand),
    /// Print the OpenAPI document of the served API.
    Openapi {
        /// Print the document of the admin API instead.
        #[arg(long)]
        admin: bool,
    },
    /// List the presets of upstreams, or show what one stands for.
    Presets {
        /// The name of a preset, which is shown as the TOML that it stands for.
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// List the models that would be served.
    Models {
        #[command(flatten)]
        source: Source,
    },
    /// Print the completions for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write the manual pages into a folder.
    Manual {
        /// The folder, which is created.
        folder: PathBuf,
    },
}

// The source of a configuration. A doc comment here would replace the help of the commands.
#[derive(Debug, Args)]
struct Source {
    /// The configuration file. Without it the embedded models are served on 127.0.0.1:8080.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Instead of a file: pass all requests to the model server with this base URL, such as
    /// http://127.0.0.1:8000/v1, with the model that the client names.
    #[arg(
        long,
        value_name = "URL",
        value_parser = url,
        conflicts_with = "config",
        requires = "protocol"
    )]
    upstream: Option<Url>,
    /// The protocol of that model server.
    #[arg(long, value_parser = pass_through::PROTOCOLS, requires = "upstream")]
    protocol: Option<String>,
    /// The environment variable with the API key of that model server.
    #[arg(long, value_name = "NAME", requires = "upstream")]
    api_key_env: Option<String>,
}

#[derive(Debug, Subcommand)]
enum PricesCommand {
    /// Print the public price list of LiteLLM as [[prices]]. Entries that are left out are listed on standard error.
    Import {
        /// A copy of its model_prices_and_context_window.json.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Print the limits, the media and the last days of the models of that list as [facts].
    Facts {
        /// A copy of its model_prices_and_context_window.json.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// Parses an argument that is an address to listen on or to call.
fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse()
        .map_err(|_| "an IP address with a port, such as 127.0.0.1:8080, is accepted")
}

/// Parses an argument that is a URL. The error of the parser alone does not say that a scheme is missing.
fn url(text: &str) -> Result<Url, String> {
    text.parse()
        .map_err(|error| format!("{error}; a URL such as http://127.0.0.1:8000 is accepted"))
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
            source,
            listen,
            admin,
        } => {
            let mut config = source.load()?;
            if !listen.is_empty() {
                config.listen = listen;
            }
            config.admin = admin.or(config.admin);
            config.check_addresses()?;
            serve(config, source.config)
        }
        Command::Check { source, ask, model } => check(&source, ask, &model),
        Command::Config(command) => {
            command.run();
            Ok(())
        }
        Command::Health(health) => health.run(),
        Command::Keys(command) => command.run(),
        Command::Usage(report) => report.run(),
        Command::Limits(report) => report.run(),
        Command::Explain(explain) => explain.run(),
        Command::Prices(command) => {
            let converted = match command {
                PricesCommand::Import { file } => price_import::litellm(&file),
                PricesCommand::Facts { file } => price_import::litellm_facts(&file),
            }?;
            eprint!("{}", converted.summary);
            print!("{}", converted.settings);
            Ok(())
        }
        Command::Openapi { admin } => {
            let document = match admin {
                true => openapi::admin_document(),
                false => openapi::document(),
            };
            println!("{document:#}");
            Ok(())
        }
        Command::Presets { name } => {
            let text = name.map_or_else(|| Ok(presets::list()), |name| presets::show(&name));
            print!("{}", text?);
            Ok(())
        }
        Command::Completions { shell } => {
            generated::completions(shell);
            Ok(())
        }
        Command::Manual { folder } => generated::manual(&folder),
        Command::Models { source } => {
            for model in &source.load()?.catalog()? {
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

impl Source {
    fn load(&self) -> Result<Config, ConfigError> {
        let without_file = match (&self.config, &self.upstream, &self.protocol) {
            (Some(path), ..) => return Config::load(path),
            (None, Some(url), Some(protocol)) => {
                pass_through::config(url.as_str(), protocol, self.api_key_env.as_deref())?
            }
            _ => Config::default(),
        };
        Ok(Config {
            admin: Some(DEFAULT_ADMIN),
            responses: Responses::without_file(),
            ..without_file
        })
    }
}

fn check(source: &Source, ask: bool, models: &[String]) -> Result<(), ConfigError> {
    let config = source.load()?;
    config.check_addresses()?;
    log::filter().map_err(ConfigError::one)?;
    let certificates = certificates::report(&config)?;
    let mut stores = Stores::default();
    block_on(async {
        stores = stores::try_all(&config.state).await?;
        Ok(())
    })?;
    let network = upstream::Network::default();
    let from_file = source.config.is_some();
    // The settings of exports are right if exporters can be made of them.
    start::exporters(&config, &network)?;
    let (policy, _) = Policy::read_with(&config, from_file, network, stores.keys)?;
    let mut lists = check::lists::unread(&policy);
    if ask {
        block_on(async {
            lists = check::lists::read(&policy).await;
            Ok(())
        })?;
    }
    let report = check::report(&config, &policy);
    print!("{report}{lists}{certificates}{}", stores.report);
    if ask {
        block_on(probe::targets(&config, &policy, models))?;
    }
    Ok(())
}

fn serve(config: Config, file: Option<PathBuf>) -> Result<(), ConfigError> {
    let filter = log::filter().map_err(ConfigError::one)?;
    let log = log::start(filter);
    let log = log.map_err(|error| ConfigError::one(format!("cannot start: {error}")))?;
    let served = block_on(start::run(config, file));
    drop(log);
    served
}

/// The version, commit and features of this build. `cargo xtask dist` sets the commit.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{} (commit {}; features: {})",
        env!("CARGO_PKG_VERSION"),
        option_env!("SLUICEGATE_COMMIT").unwrap_or("unknown"),
        FEATURES.join(", ")
    )
});

fn block_on(work: impl Future<Output = Result<(), ConfigError>>) -> Result<(), ConfigError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| ConfigError::one(format!("cannot start: {error}")))?;
    let done = runtime.block_on(work);
    // Generations that are still running notice that their receiver is gone; they are not waited
    // for.
    runtime.shutdown_background();
    done
}
