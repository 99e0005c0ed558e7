//! The example of the README with three gateways, as it stands there.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use simulator::{Protocol, Simulator, honest};
use testkit::examples::{Shell, blocks, own_ip, replaced, write_program};
use testkit::requests::{ask, path};
use testkit::{Request, Scratch, await_that};

use crate::judge::now;

const README: &str = include_str!("../../README.md");
const SECTION: &str = "## Run it for a team\n";
/// The time in which the key is known everywhere.
const PROMISED: Duration = Duration::from_secs(3);

/// The file with the output of the gateways.
const LOG: &str = "gateways.log";

/// The example, whose processes end when this is dropped.
struct Example {
    ip: Ipv4Addr,
    /// The store listens at the first port, and the gateways at the second one and those behind it.
    ports: [u16; 3],
    _shell: Shell,
    /// The key that the example made.
    key: String,
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
    assert_eq!(example.ask(1), 200);
    await_that("the time has passed", || made.elapsed() >= PROMISED);
    assert_eq!([2, 3].map(|gateway| example.ask(gateway)), [200; 2]);
}

impl Example {
    /// Runs the first block of a section with other ports, and with a model in front of this server
    /// instead of the embedded one.
    fn run(section: &str, server: &Simulator) -> Self {
        let block = blocks(section, "sh")[0];
        let scratch = crate::GATEWAY.file("models.toml", &models(server));
        let folder = scratch.0.parent().unwrap().to_owned();
        let ip = own_ip();
        let ports @ [store, gateways, admins] = free_ports(ip);
        let block = replaced(block, "127.0.0.1", &ip.to_string());
        let block = replaced(&block, ":6379", &format!(":{store}"));
        let block = replaced(&block, ":808$n", &format!(":$(({gateways} + n))"));
        let block = replaced(&block, ":909$n", &format!(":$(({admins} + n))"));
        let block = replaced(&block, ":9091", &format!(":{}", admins + 1));
        let block =
            replaced(&block, "\nEOF\n", "\n$(cat models.toml)\nEOF\n").replace("'EOF'", "EOF");
        write_programs(&folder, (ip, store).into());
        let shell = Shell::run(&block, &folder, &[]);
        let output = &shell.output;
        let key = output.split_once("\n\nThat was the key");
        let key = key.and_then(|(key, _)| key.lines().last());
        let Some(key) = key.map(str::to_owned) else {
            let log = std::fs::read_to_string(folder.join(LOG));
            panic!("no key was made: {output}\nThe log of the gateways: {log:?}");
        };
        Self {
            ip,
            ports,
            _shell: shell,
            key,
            _scratch: scratch,
        }
    }

    /// Asks a gateway of the example, and returns the status of the response.
    fn ask(&self, gateway: u16) -> u16 {
        let body = ask(Protocol::Chat, "house", "Hello.", false);
        let address = SocketAddr::from((self.ip, self.ports[1] + gateway));
        let request = Request::post(path(Protocol::Chat), &body).bearer(&self.key);
        request.send(address).status
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        // The store is no process of the shell's group.
        #[allow(
            clippy::disallowed_methods,
            reason = "the store of the test is dialled, on loopback"
        )]
        if let Ok(mut store) = TcpStream::connect((self.ip, self.ports[0])) {
            let _ = store.write_all(b"SHUTDOWN NOSAVE\r\n");
        }
    }
}

/// Writes the programs that the example calls: scripts that run the programs of the tests.
fn write_programs(folder: &Path, address: SocketAddr) {
    let store = std::env::var("SLUICEGATE_VALKEY").expect("the path of a valkey-server");
    let gateway = crate::GATEWAY.path;
    // The banner of a gateway is not for the output.
    let serve = format!("[ \"$1\" = serve ] && exec >>{LOG} 2>&1\nexec {gateway} \"$@\"");
    let (ip, port) = (address.ip(), address.port());
    let valkey = format!("exec {store} --port {port} --bind {ip} \"$@\" >/dev/null");
    for (name, script) in [("sluicegate", serve), ("valkey-server", valkey)] {
        write_program(folder, name, &script);
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

/// Returns ports with three free ones behind each.
fn free_ports(ip: Ipv4Addr) -> [u16; 3] {
    let mut listeners = Vec::new();
    [(); 3].map(|()| {
        loop {
            let first = TcpListener::bind((ip, 0)).unwrap();
            let port = first.local_addr().unwrap().port();
            let behind = (1..=3).map(|n| TcpListener::bind((ip, port.checked_add(n)?)).ok());
            if let Some(behind) = behind.collect::<Option<Vec<_>>>() {
                listeners.extend(behind);
                listeners.push(first);
                break port;
            }
        }
    })
}
