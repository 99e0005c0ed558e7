//! The clients of the greedy key, and the servers that answer them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use benches::Outcome;
use benches::client::Connection;
use benches::load::{bounded, to_message};
use benches::question::authorized_by;
use benches::upstream::Upstream;
use bytes::Bytes;
use serde_json::json;
use simulator::{Play, Request, Simulator};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// The clients of the greedy key.
pub(crate) struct Clients {
    address: SocketAddr,
    span: Duration,
    tasks: JoinSet<(&'static str, Tally)>,
}

/// The servers that answer the greedy key.
pub(crate) struct Servers {
    upstream: Upstream,
    long: Simulator,
}

/// The number of responses of each status; 0 is for requests without one.
type Tally = BTreeMap<u16, usize>;

/// One way to be costly.
#[derive(Clone)]
struct Trick {
    name: &'static str,
    clients: usize,
    request: Bytes,
    way: Way,
}

#[derive(Clone, Copy)]
enum Way {
    /// Sends requests again and again.
    Ask,
    /// Sends requests, and reads nothing of the streams.
    ReadNothing,
    /// Sends a part of a body.
    UploadSlowly,
}

impl Servers {
    pub(crate) async fn start(others: &Handle) -> Outcome<Self> {
        let upstream = others.spawn(Upstream::start()).await.map_err(to_message)?;
        let long = others.spawn_blocking(|| Simulator::start(long_answer));
        Ok(Self {
            upstream: upstream.map_err(to_message)?,
            long: long.await.map_err(to_message)?.map_err(to_message)?,
        })
    }

    /// Returns the upstreams `long` and `others`.
    pub(crate) fn config(&self) -> String {
        let (long, others) = (self.long.base_url(), self.upstream.address);
        format!(
            "[[upstreams]]\nname = \"long\"\nprotocol = \"responses\"\nbase_url = \"{long}\"\n\
             [[upstreams]]\nname = \"others\"\nprotocol = \"chat\"\nbase_url = \"http://{others}/v1\"\n"
        )
    }
}

/// Responds with a response whose only item has a long text.
fn long_answer(asked: &Request) -> Play {
    let is_kept = String::from_utf8_lossy(&asked.body).contains(KEPT);
    let text = "a".repeat(if is_kept { LONG_TEXT } else { 1 });
    // Each gateway keeps the same ids.
    let number = asked.number % ANSWERS;
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    let item = json!({"type": "message", "id": format!("msg_{number}"), "role": "assistant",
                      "status": "completed", "content": content});
    let usage = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
    Play::json(
        200,
        &json!({"id": format!("resp_{number}"), "object": "response", "created_at": 1,
                "status": "completed", "model": "long", "output": [item], "usage": usage}),
    )
}

impl Clients {
    pub(crate) fn new(address: SocketAddr, span: Duration) -> Self {
        Self {
            address,
            span,
            tasks: JoinSet::new(),
        }
    }

    /// Starts the clients of all tricks with this word in their names.
    pub(crate) fn start(&mut self, others: &Handle, only: &str) {
        let (address, span) = (self.address, self.span);
        let chosen = tricks(address).into_iter();
        for trick in chosen.filter(|trick| trick.name.contains(only)) {
            for _ in 0..trick.clients {
                let trick = trick.clone();
                let client = async move { (trick.name, trick.repeat(address, span).await) };
                self.tasks.spawn_on(client, others);
            }
        }
    }

    /// Waits for all clients, and returns a table of the responses that they have got.
    pub(crate) async fn end(mut self) -> Outcome<String> {
        let mut all: BTreeMap<&str, Tally> = BTreeMap::new();
        while let Some(joined) = bounded(self.span + GRACE, self.tasks.join_next()).await? {
            let (name, tally) = joined.map_err(to_message)?;
            for (status, count) in tally {
                *all.entry(name).or_default().entry(status).or_default() += count;
            }
        }
        let mut table = format!("{:26}responses by status\n", "the greedy key");
        for (name, tally) in all {
            let counts: Vec<_> = tally
                .iter()
                .map(|(status, count)| format!("{status}: {count}"))
                .collect();
            writeln!(table, "{name:25} {}", counts.join(", ")).map_err(to_message)?;
        }
        Ok(table)
    }
}

impl Trick {
    async fn repeat(&self, address: SocketAddr, span: Duration) -> Tally {
        let until = Instant::now() + span;
        let mut tally = Tally::new();
        let mut open = None;
        while Instant::now() < until {
            let status = timeout(GRACE, self.once(address, &mut open, until)).await;
            let status = status.ok().and_then(Result::ok).unwrap_or_default();
            if status == 0 {
                open = None;
            }
            *tally.entry(status).or_default() += 1;
            sleep(PAUSE).await;
        }
        tally
    }

    /// Does it once, and returns the status of the response.
    async fn once(
        &self,
        address: SocketAddr,
        open: &mut Option<Connection>,
        until: Instant,
    ) -> std::io::Result<u16> {
        if let Way::ReadNothing | Way::UploadSlowly = self.way {
            let mut connection = Connection::narrow(address).await?;
            connection.ask_only(&self.request).await?;
            // The gateway ends it, or the bench.
            let hold = STALL.min(until.saturating_duration_since(Instant::now()));
            sleep(hold).await;
            return Ok(0);
        }
        let mut connection = match open.take() {
            Some(connection) => connection,
            None => Connection::open(address).await?,
        };
        let answer = connection.answer(&self.request).await?;
        if !answer.closes {
            *open = Some(connection);
        }
        Ok(answer.status)
    }
}

/// Lets the gateway keep long answers of the greedy key.
pub(crate) async fn keep_answers(address: SocketAddr) -> Outcome {
    let input = format!(r#"[{{"role":"user","content":"{KEPT}"}}]"#);
    let body = format!(r#"{{"model":"our-long","input":{input},"store":true}}"#);
    let request = authorized_by(KEY, "/responses", address, &body);
    let mut connection = Connection::open(address).await.map_err(to_message)?;
    for _ in 0..ANSWERS {
        connection.ask(&request).await.map_err(to_message)?;
    }
    Ok(())
}

fn tricks(address: SocketAddr) -> [Trick; 7] {
    let ask = |name, clients, path, body: &str| Trick {
        name,
        clients,
        request: authorized_by(KEY, path, address, body),
        way: Way::Ask,
    };
    let references: Vec<_> = (0..ANSWERS)
        .map(|number| format!(r#"{{"type":"item_reference","id":"msg_{number}"}}"#))
        .collect();
    let references = format!(
        r#"{{"model":"our-long","store":false,"input":[{}]}}"#,
        references.join(",")
    );
    let message = format!(r#"{{"role":"user","content":"{}"}}"#, "a".repeat(1_000));
    let conversation = vec![message; 1_000].join(",");
    let conversation = format!(r#"{{"model":"greedy-service","messages":[{conversation}]}}"#);
    let tools: Vec<_> = (0..20_000)
        .map(|number| {
            format!(r#"{{"type":"function","function":{{"name":"f{number}","parameters":{{}}}}}}"#)
        })
        .collect();
    let messages = r#""messages":[{"role":"user","content":"a"}]"#;
    let tools = format!(
        r#"{{"model":"greedy-service","tools":[{}],{messages}}}"#,
        tools.join(",")
    );
    let small = format!(r#"{{"model":"greedy-service",{messages}}}"#);
    let endless = format!(r#"{{"model":"greedy-endless","stream":true,{messages}}}"#);
    let endless = ask("streams without a reader", 4, "/chat/completions", &endless);
    let upload = ask(
        "uploads without an end",
        8,
        "/chat/completions",
        &conversation,
    );
    let half = upload.request.len() / 2;
    [
        ask("references", 8, "/responses", &references),
        ask("long conversations", 8, "/chat/completions", &conversation),
        ask("too many tools", 2, "/chat/completions", &tools),
        ask("small requests", 100, "/chat/completions", &small),
        ask(
            "unknown models",
            8,
            "/chat/completions",
            &small.replace("greedy-", "no-"),
        ),
        Trick {
            way: Way::ReadNothing,
            ..endless
        },
        Trick {
            request: upload.request.slice(..half),
            way: Way::UploadSlowly,
            ..upload
        },
    ]
}

/// The prompt whose answer is long.
const KEPT: &str = "a long answer";
/// The length of a long answer, in bytes.
const LONG_TEXT: usize = 256 << 10;
/// So many long answers are kept.
const ANSWERS: usize = 8;
const KEY: &str = "sg_greedy_key_0000000000000000000000";
/// The time between two requests of a client.
const PAUSE: Duration = Duration::from_millis(100);
/// The time for which a client reads or sends nothing.
const STALL: Duration = Duration::from_secs(4);
const GRACE: Duration = Duration::from_secs(10);
