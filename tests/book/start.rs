//! The page `start.md`, from its first step to its last one.

use std::net::{Ipv4Addr, TcpListener};

use simulator::{Simulator, honest};
use testkit::examples::{Shell, blocks, own_ip, replaced, write_program};

use crate::{GATEWAY, page};

#[test]
fn the_first_steps_lead_to_a_limit() {
    let server = Simulator::start(honest::answer).unwrap();
    let scratch = GATEWAY.file("models.toml", "");
    let folder = scratch.0.parent().unwrap();
    let ip = own_ip();
    let [clients, admin] = [free_address(ip), free_address(ip)];
    // `limits` and `explain` ask the usual admin address.
    let report = format!(
        "limits|explain) exec {} \"$@\" --admin http://{admin};;",
        GATEWAY.path
    );
    let sluicegate = format!("case $1 in {report} esac\nexec {} \"$@\"", GATEWAY.path);
    write_program(folder, "sluicegate", &sluicegate);

    let text = page("docs/start.md");
    let steps = blocks(&text, "sh").into_iter();
    let steps: Vec<_> = steps.filter(|step| !step.starts_with("cargo ")).collect();
    let script = replaced(
        &steps.concat(),
        "\nEOF\n",
        &format!("\n{}EOF\n", model(&server)),
    );
    let script = replaced(&script, "127.0.0.1:8080", &clients);
    let script = replaced(&script, "127.0.0.1:9090", &admin);
    let mut shell = Shell::run(&script, folder, &[]);
    let output = &shell.output;
    let statuses: Vec<_> = output
        .lines()
        .filter(|line| ["200", "429"].contains(line))
        .collect();
    assert_eq!(statuses, ["200", "200", "200", "429", "200"], "{output}");
    let shown = blocks(&text, "text").concat();
    let refusal = "Rate limit reached on requests per min (RPM): Limit 3. Please try again in ";
    let reason = "Refused by the limit 'key team-a' (requests_per_minute)";
    for line in shown.lines().chain([refusal, reason]) {
        assert!(output.contains(line), "{line} is not in {output}");
    }
    assert!(text.contains(refusal));
    assert!(shell.has_succeeded(), "{}", shell.output);
}

/// The model of the examples in front of this server, instead of the embedded one.
fn model(server: &Simulator) -> String {
    format!(
        "[[upstreams]]\nname = \"house\"\nprotocol = \"chat\"\nbase_url = \"{}\"\n\
         [[models]]\nid = \"alt-flash\"\nfamily = \"text\"\nprotocols = [\"chat\"]\n\
         targets = [{{ upstream = \"house\", model = \"m\" }}]\n",
        server.base_url()
    )
}

/// An address at which nothing listens, and at which nothing else will.
fn free_address(ip: Ipv4Addr) -> String {
    let listener = TcpListener::bind((ip, 0)).unwrap();
    listener.local_addr().unwrap().to_string()
}
