//! The example of the README with three gateways, as it stands there.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use simulator::{Protocol, Simulator, honest};
use testkit::requests::{ask, path};
use testkit::{Request, Scratch, await_that};

use crate::judge::now;

const README: &str = include_str!("../../README.md");
const SECTION: &str = "## Run it for a team\n";
/// The time in which the key is known everywhere.
const PROMISED: Duration = Duration::from_secs(3);

/// The processes of the example, which end when this is dropped.
struct Example {
    /// The store listens at the first port, and the gateways at the second one and those behind it.
    ports: [u16; 3],
    shell: Child,
    output: String,
    /// Removes the folder.
    _scratch: Scratch,
}

/// The first request of a new key succeeds at each of the gateways, at once where the key was made and
/// elsewhere as soon as the text promises it.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn the_team_of_the_readme_answers_first_requests() {
    let section = README.split_once(SECTION).unwrap().1;
    assert!(
        section.contains("at the first address at once, and at the others within three seconds")
    );
    let server = Simulator::start(honest::answer).unwrap();
    let example = Example::run(section, &server);
    let made = now();
    let (key, _) = example.output.split_once("\n\nThat was the key").unwrap();
    let key = key.lines().last().unwrap();
    assert_eq!(example.ask(1, key), 200);
    await_that("the time has passed", || made.elapsed() >= PROMISED);
    assert_eq!([2, 3].map(|gateway| example.ask(gateway, key)), [200; 2]);
}

impl Example {
    /// Runs the first block of a section with other ports, and with a model in front of this server
    /// instead of the embedded one.
    fn run(section: &str, server: &Simulator) -> Self {
        let (_, block) = section.split_once("```sh\n").unwrap();
        let (block, _) = block.split_once("```\n").unwrap();
        let scratch = crate::GATEWAY.file("models.toml", &models(server));
        let folder = scratch.0.parent().unwrap().to_owned();
        let ports @ [store, gateways, admins] = free_ports();
        let block = changed(block, "6379", &store.to_string());
        let block = changed(
            &block,
            "127.0.0.1:808$n",
            &format!("127.0.0.1:$(({gateways} + n))"),
        );
        let block = changed(
            &block,
            "127.0.0.1:909$n",
            &format!("127.0.0.1:$(({admins} + n))"),
        );
        let block = changed(
            &block,
            "127.0.0.1:9091",
            &format!("127.0.0.1:{}", admins + 1),
        );
        let block =
            changed(&block, "\nEOF\n", "\n$(cat models.toml)\nEOF\n").replace("'EOF'", "EOF");
        write_programs(&folder, store);
        let path = std::env::var("PATH").unwrap();
        let mut shell = Command::new("bash");
        shell
            .args(["-euc", &block])
            .current_dir(&folder)
            .env("PATH", format!("{}:{path}", folder.display()))
            .process_group(0)
            .stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let output = shell.stdout.take().unwrap();
        let output = std::io::read_to_string(output).unwrap();
        Self {
            ports,
            shell,
            output,
            _scratch: scratch,
        }
    }

    /// Asks a gateway of the example, and returns the status of the response.
    fn ask(&self, gateway: u16, key: &str) -> u16 {
        let body = ask(Protocol::Chat, "house", "Hello.", false);
        let address = address(self.ports[1] + gateway);
        let request = Request::post(path(Protocol::Chat), &body).bearer(key);
        request.send(address).status
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let group = format!("-{}", self.shell.id());
        let _ = Command::new("kill")
            .args(["-s", "KILL", "--", &group])
            .status();
        let _ = self.shell.wait();
        // The store has left the group.
        #[allow(
            clippy::disallowed_methods,
            reason = "the store of the test is dialled, on loopback"
        )]
        if let Ok(mut store) = TcpStream::connect(address(self.ports[0])) {
            let _ = store.write_all(b"SHUTDOWN NOSAVE\r\n");
        }
    }
}

/// Replaces a part of the example that has to be there.
#[track_caller]
fn changed(block: &str, part: &str, by: &str) -> String {
    assert!(block.contains(part), "{part} is not in {block}");
    block.replace(part, by)
}

/// Writes the programs that the example calls: scripts that run the programs of the tests.
fn write_programs(folder: &Path, port: u16) {
    let store = std::env::var("SLUICEGATE_VALKEY").expect("the path of a valkey-server");
    let gateway = crate::GATEWAY.path;
    // The banner of a gateway is not for the output.
    let serve = format!("[ \"$1\" = serve ] && exec >/dev/null 2>&1\nexec {gateway} \"$@\"");
    let valkey = format!("exec {store} --port {port} --bind 127.0.0.1 \"$@\" >/dev/null");
    for (name, script) in [("sluicegate", serve), ("valkey-server", valkey)] {
        let file = folder.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

fn models(server: &Simulator) -> String {
    format!(
        "[[upstreams]]\nname = \"house\"\nprotocol = \"chat\"\nbase_url = \"{}\"\n\
         [[models]]\nid = \"house\"\nfamily = \"text\"\nprotocols = [\"chat\"]\n\
         targets = [{{ upstream = \"house\", model = \"m\" }}]",
        server.base_url()
    )
}

fn address(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// Returns ports with three free ones behind each. Another process may take them before the example
/// does, which is not likely.
fn free_ports() -> [u16; 3] {
    let mut listeners = Vec::new();
    [(); 3].map(|()| {
        loop {
            let Ok(first) = TcpListener::bind(address(0)) else {
                continue;
            };
            let port = first.local_addr().unwrap().port();
            let behind = (1..=3).map(|n| TcpListener::bind(address(port.checked_add(n)?)).ok());
            if let Some(behind) = behind.collect::<Option<Vec<_>>>() {
                listeners.extend(behind);
                listeners.push(first);
                break port;
            }
        }
    })
}
