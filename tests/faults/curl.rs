//! curl over HTTP/2: a client that shares no code with the gateway.

use std::process::Command;

use simulator::{Protocol, Simulator};
use testkit::reading::{End, Reading};
use testkit::requests::ask;
use testkit::{CLIENT_KEY, Config, Gateway};

use crate::GATEWAY;
use crate::certificates::{Authority, Files, NAME};

/// curl gets the same over HTTP/2, by ALPN and with prior knowledge, plain and streamed. An `Upgrade`
/// to HTTP/2 is ignored.
#[test]
fn curl_is_answered_over_http2() {
    let simulator = Simulator::honest().unwrap();
    let authority = Authority::new();
    let ca = GATEWAY.file("ca.pem", &authority.pem);
    let ca = ca.0.to_str().unwrap();
    let files = Files::new(&authority.current());
    let config = || Config::before(&simulator, "", "");
    let plain = config().start(GATEWAY);
    let tls = config().section(&files.section("tls")).start(GATEWAY);
    for (gateway, scheme, arguments, version) in [
        (&tls, "https", &["--http2", "--cacert", ca][..], "2"),
        (&tls, "https", &["--http1.1", "--cacert", ca], "1.1"),
        (&plain, "http", &["--http2-prior-knowledge"], "2"),
        (&plain, "http", &["--http2"], "1.1"),
    ] {
        for stream in [false, true] {
            let output = curl(gateway, scheme, arguments, stream);
            let (body, end) = output.rsplit_once('\n').unwrap();
            assert_eq!(end, format!("HTTP/{version} 200"), "{arguments:?}: {body}");
            let reading = Reading::of(Protocol::Chat, body.as_bytes(), true, 0);
            assert_eq!(body.ends_with("data: [DONE]\n\n"), stream, "{body}");
            assert_eq!(
                (&*reading.words, reading.end),
                ("You said: Hello.", End::Success),
                "{body}"
            );
        }
    }
    plain.await_quiet();
    tls.await_quiet();
}

/// Asks a question with curl. Returns the body of the response, and a line with version and status.
fn curl(gateway: &Gateway, scheme: &str, arguments: &[&str], stream: bool) -> String {
    let port = gateway.address().port();
    let question = ask(Protocol::Chat, "chat", "Hello.", stream).to_string();
    let mut curl = Command::new("curl");
    // The first argument has to be the one that leaves out the settings of the user.
    curl.args(["--disable", "--silent", "--show-error", "--no-buffer"])
        .args(["--max-time", "60", "--noproxy", "*", "--resolve"])
        .arg(format!("{NAME}:{port}:127.0.0.1"))
        .args(arguments)
        .args(["--header", "content-type: application/json", "--header"])
        .arg(format!("authorization: Bearer {CLIENT_KEY}"))
        .args(["--data", &question])
        .args(["--write-out", "\nHTTP/%{http_version} %{http_code}"])
        .arg(format!("{scheme}://{NAME}:{port}/v1/chat/completions"));
    let output = curl.output().expect("curl is installed");
    let failure = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "curl {arguments:?}: {failure}");
    String::from_utf8(output.stdout).unwrap()
}
