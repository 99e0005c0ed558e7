//! The text that the gateway prints when it has started.

use std::io::{self, Write as _};
use std::net::SocketAddr;

use auth::Scope;
use policy::keys::GeneratedKey;

/// Prints the addresses, and how to use the generated keys, with examples if the models are the
/// built-in ones.
pub(super) fn print(
    addresses: &[SocketAddr],
    admin: Option<SocketAddr>,
    generated: &[GeneratedKey],
    with_examples: bool,
) {
    let mut out = io::stdout().lock();
    // Serve even if standard output is closed.
    let _ = write(&mut out, addresses, admin, generated, with_examples);
    let _ = out.flush();
}

fn write(
    out: &mut impl io::Write,
    addresses: &[SocketAddr],
    admin: Option<SocketAddr>,
    generated: &[GeneratedKey],
    with_examples: bool,
) -> io::Result<()> {
    for address in addresses {
        writeln!(out, "sluicegate listens on http://{address}")?;
    }
    if let Some(admin) = admin {
        writeln!(out, "admin: http://{admin}/metrics /livez /readyz")?;
    }
    let Some(address) = addresses.first() else {
        return Ok(());
    };
    for GeneratedKey {
        scope,
        variable,
        key,
    } in generated
    {
        let key = key.expose();
        writeln!(
            out,
            "\n# A key for {}, made for this run. To keep it, set it before the start.",
            scope.as_str()
        )?;
        writeln!(out, "export {variable}={key}")?;
        if let Some((path, body, then)) = example(*scope).filter(|_| with_examples) {
            writeln!(
                out,
                "curl http://{address}{path} -H 'Authorization: Bearer {key}' \\"
            )?;
            writeln!(
                out,
                "  -H 'Content-Type: application/json' -d '{body}'{then}"
            )?;
        }
    }
    Ok(())
}

/// Returns an example request for a scope: its path, its body, and the command that handles the
/// reply.
fn example(scope: Scope) -> Option<(&'static str, &'static str, &'static str)> {
    match scope {
        Scope::Text => Some((
            "/v1/responses",
            r#"{"model":"alt-flash","input":"What is the capital of France?"}"#,
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
