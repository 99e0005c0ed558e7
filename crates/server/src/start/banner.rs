//! The text that the gateway prints when it has started.

use std::env;
use std::io::{self, IsTerminal as _, Write as _};
use std::net::SocketAddr;

use admin::sessions::Sessions;
use auth::{Key, Scope};
use policy::keys::{ADMIN_VARIABLE, GeneratedKey};

/// The text that the gateway prints when it has started.
pub(super) struct Banner<'a> {
    /// The URLs of the listeners of clients.
    pub(super) clients: Addresses<'a>,
    /// The URL of the admin address, if there is one.
    pub(super) admin: Addresses<'a>,
    /// The sessions of the console.
    pub(super) sessions: &'a Sessions,
    /// The keys of clients that were made for this run.
    pub(super) generated: &'a [GeneratedKey],
    /// The admin key that was made for this run.
    pub(super) admin_key: Option<&'a Key>,
    /// True if the models are the built-in ones, for which there are examples.
    pub(super) with_examples: bool,
}

/// The addresses of listeners, as URLs.
#[derive(Clone, Copy)]
pub(super) struct Addresses<'a> {
    addresses: &'a [SocketAddr],
    scheme: &'static str,
}

impl<'a> Addresses<'a> {
    pub(super) fn new(addresses: &'a [SocketAddr], has_tls: bool) -> Self {
        let scheme = if has_tls { "https" } else { "http" };
        Self { addresses, scheme }
    }

    pub(super) fn urls(self) -> impl Iterator<Item = String> + 'a {
        let addresses = self.addresses.iter();
        addresses.map(move |address| format!("{}://{address}", self.scheme))
    }
}

impl Banner<'_> {
    /// Prints the addresses, and how to use the generated keys.
    pub(super) fn print(&self) {
        let mut out = io::stdout().lock();
        // Serve even if standard output is closed.
        let _ = self.write(&mut out);
        let _ = out.flush();
    }

    fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        for url in self.admin.urls() {
            self.write_console(out, &url)?;
        }
        for url in self.clients.urls() {
            writeln!(out, "sluicegate listens on {url}")?;
        }
        for url in self.admin.urls() {
            writeln!(out, "admin: {url}/metrics /livez /readyz")?;
        }
        let Some(url) = self.clients.urls().next() else {
            return Ok(());
        };
        let mut generated = self.generated.iter();
        generated.try_for_each(|key| write_key(out, &url, key, self.with_examples))?;
        match self.admin.urls().next().zip(self.admin_key) {
            Some((url, key)) => write_admin_key(out, &url, key),
            None => Ok(()),
        }
    }
}

impl Banner<'_> {
    /// Prints the address of the console. A link that signs in is printed only for somebody who sees it:
    /// on a terminal, or for a first try, which prints its keys as well.
    fn write_console(&self, out: &mut impl io::Write, admin: &str) -> io::Result<()> {
        match !self.generated.is_empty() || io::stdout().is_terminal() {
            true => {
                let token = self.sessions.issue_token();
                let token = token.expose();
                writeln!(out, "console: {admin}/#token={token}")
            }
            false => writeln!(out, "console: {admin}/"),
        }
    }
}

/// Prints a key, and an example of its use.
fn write_key(
    out: &mut impl io::Write,
    url: &str,
    generated: &GeneratedKey,
    with_example: bool,
) -> io::Result<()> {
    let GeneratedKey {
        scope,
        variable,
        key,
    } = generated;
    let key = key.expose();
    writeln!(
        out,
        "\n# A key for {}, made for this run. To keep it, set it before the start.",
        scope.as_str()
    )?;
    writeln!(out, "export {variable}={key}")?;
    let Some((path, body, then)) = example(*scope).filter(|_| with_example) else {
        return Ok(());
    };
    writeln!(out, "curl {url}{path} -H 'Authorization: Bearer {key}' \\")?;
    writeln!(
        out,
        "  -H 'Content-Type: application/json' -d '{body}'{then}"
    )
}

/// Prints the admin key, and the command that explains a request with it. Whoever runs the gateway from a
/// checkout has not installed it, so the command has its path.
fn write_admin_key(out: &mut impl io::Write, url: &str, key: &Key) -> io::Result<()> {
    let program = env::current_exe().unwrap_or_else(|_| "sluicegate".into());
    let (program, key) = (program.display(), key.expose());
    writeln!(
        out,
        "\n# The admin key, made for this run. The command explains a request by the x-request-id of its response."
    )?;
    writeln!(out, "export {ADMIN_VARIABLE}={key}")?;
    writeln!(out, "{program} explain --admin {url} REQUEST_ID")
}

/// Returns an example request for a scope: its path, its body, and the command that handles the
/// reply.
fn example(scope: Scope) -> Option<(&'static str, &'static str, &'static str)> {
    match scope {
        Scope::Text => Some((
            "/v1/responses",
            r#"{"model":"alt-flash","reasoning":{"effort":"none"},"input":"What is the capital of France?"}"#,
            "",
        )),
        Scope::Messages => Some((
            "/v1/messages",
            r#"{"model":"msg-sonnet-5","max_tokens":64,"messages":[{"role":"user","content":"Say hello."}]}"#,
            "",
        )),
        Scope::Images => Some((
            "/v1/images/generations",
            r#"{"model":"model-image-2.5-flare","prompt":"A paper boat on a pond","size":"1024x1024"}"#,
            SAVE,
        )),
        _ => None,
    }
}

/// A command that saves the image of a reply to a file.
const SAVE: &str = r#" \
  | python3 -c 'import base64, json, sys
open("boat.png", "wb").write(base64.b64decode(json.load(sys.stdin)["data"][0]["b64_json"]))'"#;
