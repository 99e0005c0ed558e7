//! `cargo xtask agents`: runs coding agents through the gateway.
//!
//! The model `coding-agent` of the simulator is behind upstreams of several protocols and dialects.
//! Each agent runs headless with each upstream, in a folder of its own, and has to write two files
//! with the tools that the model calls.

mod agent;
mod install;
mod page;
mod proxy;
mod trial;
mod upstream;

use std::ffi::OsString;
use std::fs;

use self::agent::{AGENTS, Agent};
use self::page::Row;
use self::proxy::Proxy;
use self::trial::Trial;
use self::upstream::UPSTREAMS;
use crate::gateway::{KEYS, Server};
use crate::outcome::{At as _, Outcome, no_problems};
use crate::{needs, process, workspace};

/// Installs the agents and runs those whose names contain an argument, or all of them; `--write`
/// writes the table to `docs/agents.md`.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    let (options, names): (Vec<_>, Vec<_>) = args.iter().partition(|arg| *arg == "--write");
    if !options.is_empty() && !names.is_empty() {
        return Err("--write needs the results of all agents, so it takes no names".to_owned());
    }
    let is_chosen = |agent: &&Agent| {
        let mut names = names.iter().filter_map(|name| name.to_str());
        names.clone().next().is_none() || names.any(|name| agent.name.contains(name))
    };
    let chosen: Vec<_> = AGENTS.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        return Err(format!("no agent has such a name: {names:?}"));
    }
    build()?;
    let rows = rows(&chosen)?;
    let table = page::table(&rows);
    println!("\n{table}");
    if !options.is_empty() {
        page::write(&table)?;
    }
    no_problems("agents failed", &page::failures(&rows))
}

/// Runs these agents with every upstream.
fn rows<'a>(agents: &[&'a Agent]) -> Outcome<Vec<Row<'a>>> {
    let path = install::install()?;
    let folder = workspace::target()?.join("agents");
    let simulator = Server::simulator()?;
    let config = folder.join("sluicegate.toml");
    fs::write(&config, upstream::config(&simulator.url)).at(&config)?;
    let log = folder.join("gateway.log");
    let gateway = Server::gateway(&["--config".as_ref(), &config], KEYS, &log)?;
    let row = |agent: &&'a Agent| {
        let proxy = Proxy::start()?;
        let trial = Trial {
            agent,
            path: &path,
            folder: &folder,
            gateway: &gateway.url,
            log: &log,
            proxy: &proxy.url(),
        };
        let version = trial.version()?;
        let results = UPSTREAMS.iter().map(|upstream| {
            let result = trial.run(upstream)?;
            let cell = page::cell(&result);
            println!("{} over {}: {cell}", agent.name, upstream.name);
            Ok(result)
        });
        Ok(Row {
            agent,
            version,
            results: results.collect::<Outcome<_>>()?,
            hosts: proxy.hosts(),
        })
    };
    agents.iter().map(row).collect()
}

/// Builds the gateway without its engines, and the simulator.
fn build() -> Outcome {
    needs::compiler()?;
    let mut build = workspace::cargo("build");
    build.args(["--locked", "--quiet", "--no-default-features", "--bins"]);
    build.args([
        "--package",
        "sluicegate-server",
        "--package",
        "sluicegate-simulator",
    ]);
    process::run(&mut build)
}
