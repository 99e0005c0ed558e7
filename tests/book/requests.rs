//! Each example with curl is answered by a gateway, whose models are at the simulator; and the metrics
//! of that gateway are described.

use std::path::Path;

use simulator::{Simulator, honest};
use testkit::examples::{Shell, blocks, write_program};
use testkit::{Gateway, IMAGES, MESSAGES, Request, Scratch, TEXT};

use crate::{GATEWAY, pages};

const ADMIN: &str = "sg_test_admin_key_00000000000000000000";
/// The page whose steps have a test of their own, and the one whose examples start containers.
const OTHER_PAGES: [&str; 2] = ["start.md", "packages.md"];

#[test]
fn each_request_is_answered_and_each_metric_is_described() {
    let server = Simulator::start(honest::answer).unwrap();
    // It is deleted after the gateway has ended.
    let store = GATEWAY.file("accounting.db", "");
    let gateway = gateway(&server, &store);
    let folder = store.0.parent().unwrap();
    write_programs(folder, &gateway);
    let mut asked = 0;
    for (name, text) in pages() {
        let examples = blocks(&text, "sh").into_iter();
        let examples: Vec<_> = examples.filter(|block| block.contains("curl ")).collect();
        if !OTHER_PAGES.contains(&&*name) && !examples.is_empty() {
            run(&name, &examples.concat(), folder, &gateway);
            asked += 1;
        }
    }
    assert!(asked > 5, "{asked} pages are too few for all protocols");
    assert_eq!(
        undescribed(&gateway),
        Vec::<String>::new(),
        "no page has these metrics"
    );
}

/// The metrics of a gateway that no page names.
fn undescribed(gateway: &Gateway) -> Vec<String> {
    let metrics = Request::get("/metrics").send(gateway.admin.unwrap());
    let types = metrics.text().lines();
    let types = types.filter_map(|line| line.strip_prefix("# TYPE "));
    let names = types.map(|line| match line.split_once(' ') {
        Some((name, "counter")) => format!("`{name}_total`"),
        Some((name, _)) => format!("`{name}`"),
        None => line.to_owned(),
    });
    let pages = pages();
    let is_named = |name: &String| pages.iter().any(|(_, text)| text.contains(name));
    names.filter(|name| !is_named(name)).collect()
}

/// Runs the examples of a page in their order, since some use files and names of earlier ones.
#[track_caller]
fn run(page: &str, script: &str, folder: &Path, gateway: &Gateway) {
    let script = script.replace("127.0.0.1:8080", &gateway.address().to_string());
    let admin = gateway.admin.unwrap().to_string();
    let script = script.replace("127.0.0.1:9090", &admin);
    let keys = [
        ("SLUICEGATE_TEXT_KEY", TEXT),
        ("SLUICEGATE_MESSAGES_KEY", MESSAGES),
        ("SLUICEGATE_IMAGE_KEY", IMAGES),
        ("SLUICEGATE_ADMIN_KEY", ADMIN),
    ];
    let mut shell = Shell::run(&script, folder, &keys);
    assert!(
        shell.has_succeeded() && !shell.output.contains("\"error\":{"),
        "{page}: {script}\n{}",
        shell.output
    );
}

/// A gateway with a store, and with the models of the examples.
fn gateway(server: &Simulator, store: &Scratch) -> Gateway {
    let mut config = format!(
        "[state]\naccounting = \"sqlite:{}\"\n[responses]\nkeep = \"1h\"\n",
        store.0.display()
    );
    for (protocol, family, model, endpoints) in [
        ("chat", "text", "alt-flash", r#"["responses", "chat"]"#),
        ("messages", "messages", "msg-sonnet-5", r#"["messages"]"#),
        (
            "images",
            "images",
            "model-image-2.5-flare",
            r#"["images_generations", "images_edits"]"#,
        ),
    ] {
        // Servers of Chat Completions have no endpoint of their own that counts.
        let counts = match protocol {
            "chat" => "count_tokens = \"responses\"\n",
            _ => "",
        };
        config += &format!(
            "[[upstreams]]\nname = \"{protocol}\"\nprotocol = \"{protocol}\"\nbase_url = \"{}\"\n{counts}\
             [[models]]\nid = \"{model}\"\nfamily = \"{family}\"\nprotocols = {endpoints}\n\
             string_input = true\ntargets = [{{ upstream = \"{protocol}\", model = \"m\" }}]\n",
            server.base_url()
        );
    }
    let mut command = GATEWAY.command();
    command.env("SLUICEGATE_ADMIN_KEY", ADMIN);
    GATEWAY.start_by(command, Some(&config))
}

/// Writes the programs that the examples call: a curl that fails if the status is an error, and the
/// command line of the gateway with its admin address.
fn write_programs(folder: &Path, gateway: &Gateway) {
    let path = std::env::var("PATH").unwrap();
    let curl = format!("exec env PATH='{path}' curl --fail-with-body --silent --show-error \"$@\"");
    write_program(folder, "curl", &curl);
    let admin = gateway.admin.unwrap();
    let sluicegate = format!("exec {} \"$@\" --admin http://{admin}", GATEWAY.path);
    write_program(folder, "sluicegate", &sluicegate);
}
