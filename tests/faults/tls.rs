//! L13, D10: TLS on the addresses of clients and on the admin address.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use testkit::{Connection, Gateway, NOWHERE, Request, TEXT, await_that};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Error, StreamOwned,
};

use crate::GATEWAY;
use crate::certificates::{Authority, Files, Identity, NAME};
use crate::http2_requests::read;

/// A gateway with TLS on the addresses of its clients.
fn serving(files: &Files, limits: &str) -> Gateway {
    let section = files.section("tls");
    GATEWAY.configured(&format!("[limits]\n{limits}\n{section}{NOWHERE}"))
}

/// Sends a request for the models over HTTP/1.1, and returns the response and the certificate of the
/// gateway.
fn ask(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
    name: &str,
) -> io::Result<(String, Vec<u8>)> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let client = ClientConnection::new(Arc::clone(config), name).unwrap();
    let mut stream = StreamOwned::new(client, connect(address));
    let request = format!(
        "GET /v1/models HTTP/1.1\r\nhost: {NAME}\r\nauthorization: Bearer {TEXT}\r\nconnection: close\r\n\r\n"
    );
    let written = stream.write_all(request.as_bytes());
    let mut response = String::new();
    // A refusal is an alert, which can be read also if the request could not be sent.
    stream.read_to_string(&mut response).and(written)?;
    let shown = stream.conn.peer_certificates().unwrap()[0].to_vec();
    Ok((response, shown))
}

#[allow(
    clippy::disallowed_methods,
    reason = "the server under test is dialled, on loopback"
)]
fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).unwrap()
}

/// The TLS error of a client that did not get a response.
#[track_caller]
fn refused(result: io::Result<(String, Vec<u8>)>) -> Error {
    let error = result.unwrap_err();
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    cause.cloned().unwrap_or_else(|| panic!("{error}"))
}

fn failures(gateway: &Gateway, reason: &str) -> f64 {
    gateway.sum(&format!(
        "sluicegate_tls_handshake_failures_total{{listener=\"clients\",reason=\"{reason}\"}}"
    ))
}

fn log_has(gateway: &Gateway, text: &str) -> bool {
    gateway.log.lock().unwrap().contains(text)
}

/// A client that knows the CA gets responses, and one that speaks no TLS gets none.
#[test]
fn tls_is_served_to_clients_that_trust_the_ca() {
    let authority = Authority::new();
    let gateway = serving(&Files::new(&authority.current()), "");
    let config = authority.client(None, &[b"http/1.1"]);
    for address in &gateway.addresses {
        let (response, _) = ask(*address, &config, NAME).unwrap();
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    }
    let mut plain = Connection::open(gateway.address());
    plain.send(Request::get("/v1/models").bearer(TEXT).bytes());
    let (received, _) = plain.rest();
    assert!(!received.starts_with(b"HTTP/"), "{received:?}");
    await_that("it is counted", || failures(&gateway, "not_tls") == 1.0);
    // Neither the handshake nor what came in it is a request.
    assert_eq!(gateway.sum("sluicegate_requests_total{"), 2.0);
}

/// ALPN chooses HTTP/2 for clients that offer it, unless HTTP/2 is turned off.
#[tokio::test(flavor = "multi_thread")]
async fn alpn_offers_http2() {
    let authority = Authority::new();
    let files = Files::new(&authority.current());
    for (limits, expected) in [("", &b"h2"[..]), ("http2_streams = 0", &b"http/1.1"[..])] {
        let gateway = serving(&files, limits);
        let config = authority.client(None, &[b"h2", b"http/1.1"]);
        let socket = tokio::net::TcpStream::from_std({
            let socket = connect(gateway.address());
            socket.set_nonblocking(true).unwrap();
            socket
        });
        let name = ServerName::try_from(NAME).unwrap();
        let connector = TlsConnector::from(config);
        let stream = connector.connect(name, socket.unwrap()).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(expected));
        if expected != b"h2" {
            continue;
        }
        let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
        let driver = tokio::spawn(connection);
        let request = http::Request::get(format!("https://{NAME}/v1/models"))
            .header("authorization", format!("Bearer {TEXT}"));
        let (response, _) = client
            .send_request(request.body(()).unwrap(), true)
            .unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(read(response).await.unwrap().contains("\"nobody\""));
        driver.abort();
    }
}

/// Clients refuse a certificate of another name or CA, and an expired one, which also gets a warning
/// at the start and in `check`.
#[test]
fn clients_refuse_a_certificate_that_is_not_right() {
    let (authority, other) = (Authority::new(), Authority::named("Another CA"));
    let config = authority.client(None, &[]);
    let gateway = serving(&Files::new(&authority.current()), "");
    assert!(matches!(
        refused(ask(gateway.address(), &config, "other.example")),
        Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. })
    ));
    await_that("it is counted", || {
        failures(&gateway, "client_alert") == 1.0
    });
    await_that("it is logged", || {
        log_has(&gateway, "TLS handshakes failed")
    });

    let expired = Files::new(&authority.issue(NAME, 2021));
    let gateway = serving(&expired, "");
    assert!(matches!(
        refused(ask(gateway.address(), &config, NAME)),
        Error::InvalidCertificate(CertificateError::ExpiredContext { .. })
    ));
    let advice = format!(
        "tls.certificate: {} has expired on 2021-12-31T00:00:00Z",
        expired.certificate().display()
    );
    assert!(log_has(&gateway, &advice));
    let file = GATEWAY.file("sluicegate.toml", &(expired.section("tls") + NOWHERE));
    let mut check = GATEWAY.command();
    let output = check
        .args(["check", "--config"])
        .arg(&file.0)
        .output()
        .unwrap();
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(
        report.lines().any(|line| line == format!("note: {advice}")),
        "{report}"
    );

    let gateway = serving(&Files::new(&other.current()), "");
    assert_eq!(
        refused(ask(gateway.address(), &config, NAME)),
        Error::InvalidCertificate(CertificateError::UnknownIssuer)
    );
}

/// With `client_ca` only clients with a certificate of that CA are served.
#[test]
fn clients_need_a_certificate_of_the_configured_ca() {
    let (authority, clients) = (Authority::new(), Authority::named("Client CA"));
    let ca = GATEWAY.file("clients.pem", &clients.pem);
    let files = Files::new(&authority.current());
    let section = format!(
        "{}client_ca = \"{}\"\n",
        files.section("tls"),
        ca.0.display()
    );
    let gateway = GATEWAY.configured(&(section + NOWHERE));
    let ask_as = |identity: Option<&Identity>| {
        ask(gateway.address(), &authority.client(identity, &[]), NAME)
    };
    let (response, _) = ask_as(Some(&clients.issue("client", 2099))).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    let missing = refused(ask_as(None));
    assert_eq!(
        missing,
        Error::AlertReceived(AlertDescription::CertificateRequired)
    );
    for wrong in [
        authority.issue("client", 2099),
        clients.issue("client", 2021),
    ] {
        assert!(matches!(
            refused(ask_as(Some(&wrong))),
            Error::AlertReceived(_)
        ));
    }
    await_that("each is counted", || {
        failures(&gateway, "client_certificate") == 3.0
    });
}

/// A handshake that stalls is closed after `first_byte`, one that arrives in any pieces is complete,
/// and one that breaks off is counted.
#[test]
fn l13_handshakes_that_stall_are_closed() {
    let authority = Authority::new();
    let gateway = serving(&Files::new(&authority.current()), "first_byte = \"1s\"");
    let hello = {
        let config = authority.client(None, &[]);
        let name = ServerName::try_from(NAME).unwrap();
        let mut client = ClientConnection::new(config, name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    };
    for stalled in [&hello[..0], &hello[..hello.len() / 2], &hello[..]] {
        let mut raw = Connection::open(gateway.address());
        raw.send(stalled);
        raw.rest();
    }
    await_that("all are counted", || failures(&gateway, "timeout") == 3.0);
    // After the handshake the first byte of a request has the same time.
    let config = authority.client(None, &[]);
    let name = ServerName::try_from(NAME).unwrap();
    let client = ClientConnection::new(config, name).unwrap();
    let mut silent = StreamOwned::new(client, connect(gateway.address()));
    silent.conn.complete_io(&mut silent.sock).unwrap();
    assert_eq!(silent.read_to_end(&mut Vec::new()).unwrap_or_default(), 0);
    let mut raw = Connection::open(gateway.address());
    raw.send(&hello[..10]);
    drop(raw);
    await_that("it is counted", || failures(&gateway, "closed") == 1.0);
    let mut raw = Connection::open(gateway.address());
    for byte in &hello {
        raw.send([*byte]);
    }
    // The record of a ServerHello.
    assert_eq!(raw.bytes(3), [22, 3, 3]);
    assert_eq!(gateway.sum("sluicegate_requests_total{"), 0.0);
}

/// Clients that stall in their handshakes do not delay other clients.
#[test]
fn stalled_handshakes_delay_nobody() {
    let authority = Authority::new();
    let gateway = serving(&Files::new(&authority.current()), "first_byte = \"60s\"");
    let config = authority.client(None, &[]);
    let mut stalled = Vec::new();
    for _ in 0..200 {
        let name = ServerName::try_from(NAME).unwrap();
        let mut client = ClientConnection::new(Arc::clone(&config), name).unwrap();
        let mut hello = Vec::new();
        client.write_tls(&mut hello).unwrap();
        let mut raw = Connection::open(gateway.address());
        raw.send(hello);
        stalled.push(raw);
    }
    for _ in 0..5 {
        let (response, _) = ask(gateway.address(), &config, NAME).unwrap();
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    }
    assert_eq!(gateway.sum("sluicegate_tls_handshake_failures_total{"), 0.0);
}

/// A renewed certificate is taken when its files change, and one that cannot be used leaves the
/// previous one in place.
#[test]
fn d10_renewed_certificates_are_taken_and_broken_ones_are_not() {
    let authority = Authority::new();
    let files = Files::new(&authority.current());
    let gateway = serving(&files, "");
    let config = authority.client(None, &[]);
    let shown = || ask(gateway.address(), &config, NAME).unwrap().1;
    let first = shown();
    files.replace(&authority.issue(NAME, 2098));
    await_that("the new one is shown", || shown() != first);
    // 2098-12-31T00:00:00Z
    let expiry = "sluicegate_tls_certificate_expiry_timestamp_seconds{listener=\"clients\"}";
    assert_eq!(gateway.sum(expiry), 4_070_822_400.0);
    let second = shown();
    for (place, broken) in [
        Identity {
            certificate: authority.current().certificate,
            ..authority.current()
        },
        Identity {
            certificate: "no PEM".to_owned(),
            ..authority.current()
        },
    ]
    .iter()
    .enumerate()
    {
        files.replace(broken);
        gateway.signal("HUP");
        let refused = "sluicegate_tls_reloads_total{listener=\"clients\",outcome=\"refused\"}";
        await_that("it is refused", || gateway.sum(refused) > place as f64);
        await_that("it is logged", || {
            log_has(&gateway, "certificate not read, keeping the previous one")
        });
        assert_eq!(shown(), second);
    }
    for problem in [
        "key.pem: is not the key of the certificate",
        "certificate.pem: no certificate in PEM",
    ] {
        await_that("the problem is logged", || log_has(&gateway, problem));
    }
    files.replace(&authority.current());
    await_that("the next one is shown", || shown() != second);
}

/// A certificate that cannot be used is an error at the start, with its setting and file.
#[test]
fn an_unusable_certificate_is_an_error_at_the_start() {
    let authority = Authority::new();
    let [one, other] = [authority.current(), authority.current()];
    let mixed = Files::new(&Identity {
        key: other.key,
        ..one
    });
    let missing = "[tls]\ncertificate = \"/nowhere/certificate.pem\"\nkey = \"/nowhere/key.pem\"\n";
    for (section, problem) in [
        (
            missing.to_owned(),
            "tls.certificate: /nowhere/certificate.pem: No such file or directory",
        ),
        (mixed.section("tls"), "key.pem: "),
        (mixed.section("admin_tls"), "admin_tls.key: "),
        (
            "[tls]\ncertificate = \"a\"\n".to_owned(),
            "missing field `key`",
        ),
    ] {
        for command in ["serve", "check"] {
            let file = GATEWAY.file("sluicegate.toml", &(section.clone() + NOWHERE));
            let mut run = GATEWAY.command();
            let output = run
                .args([command, "--config"])
                .arg(&file.0)
                .output()
                .unwrap();
            let message = String::from_utf8(output.stderr).unwrap();
            assert!(!output.status.success(), "{message}");
            assert!(message.contains(problem), "{message}");
        }
    }
}

/// `sluicegate health` reaches an admin address with TLS, whatever its certificate is for: it only asks
/// whether the gateway is ready.
#[test]
fn health_asks_an_admin_address_with_tls() {
    let authority = Authority::new();
    let expired = Files::new(&authority.issue(NAME, 2021));
    let gateway = GATEWAY.configured(&(expired.section("admin_tls") + NOWHERE));
    let address = gateway.admin.unwrap().to_string();
    let health = |arguments: &[&str]| {
        let mut command = GATEWAY.command();
        let output = command
            .args(["health", "--admin", &address])
            .args(arguments)
            .output();
        let output = output.unwrap();
        (
            output.status.success(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let file = GATEWAY.file("sluicegate.toml", &(expired.section("admin_tls") + NOWHERE));
    let file = file.0.to_str().unwrap();
    assert_eq!(health(&["--config", file]), (true, String::new()));
    let (is_ready, message) = health(&[]);
    assert!(
        !is_ready && message.starts_with("sluicegate: http://"),
        "{message}"
    );
}

/// The admin address has a certificate of its own. Commands reach it over TLS, and its cookies are for
/// TLS only.
#[test]
fn admin_address_has_tls() {
    let authority = Authority::new();
    let files = Files::new(&authority.issue("127.0.0.1", 2099));
    let ca = GATEWAY.file("ca.pem", &authority.pem);
    let key = "sg_admin_key_of_the_test_000000000000";
    let mut command = GATEWAY.command();
    command.env("SLUICEGATE_ADMIN_KEY", key);
    let gateway = GATEWAY.start_by(command, Some(&(files.section("admin_tls") + NOWHERE)));
    let url = format!("https://{}", gateway.admin.unwrap());
    let limits = |arguments: &[&str]| {
        let mut command = GATEWAY.command();
        command.env("SLUICEGATE_ADMIN_KEY", key);
        command
            .args(["limits", "--json", "--admin", &url])
            .args(arguments);
        command.output().unwrap()
    };
    let known = limits(&["--admin-ca", ca.0.to_str().unwrap()]);
    assert!(
        known.status.success(),
        "{}",
        String::from_utf8_lossy(&known.stderr)
    );
    let unknown = limits(&[]);
    let message = String::from_utf8(unknown.stderr).unwrap();
    assert!(
        !unknown.status.success() && message.contains("UnknownIssuer"),
        "{message}"
    );

    let name = ServerName::try_from("127.0.0.1").unwrap();
    let client = ClientConnection::new(authority.client(None, &[]), name).unwrap();
    let mut stream = StreamOwned::new(client, connect(gateway.admin.unwrap()));
    let body = format!("{{\"key\":\"{key}\"}}");
    let request = format!(
        "POST /console/session HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(
        response.contains("; HttpOnly; SameSite=Strict; Secure\r\n"),
        "{response}"
    );
}

/// Commands reach an admin address that wants a client certificate with one, and not without.
#[test]
fn commands_show_their_certificate_to_the_admin_address() {
    let (authority, clients) = (Authority::new(), Authority::named("Client CA"));
    let [trusted, wanted] = [&authority, &clients].map(|ca| GATEWAY.file("ca.pem", &ca.pem));
    let files = Files::new(&authority.issue("127.0.0.1", 2099));
    let wanted = wanted.0.display();
    let section = format!(
        "{}client_ca = \"{wanted}\"\n{NOWHERE}",
        files.section("admin_tls")
    );
    let own = clients.issue("operator", 2099);
    let own = GATEWAY.file("operator.pem", &format!("{}{}", own.certificate, own.key));
    let own = ["--admin-certificate", own.0.to_str().unwrap()];
    let key = "sg_admin_key_of_the_test_000000000000";
    let mut command = GATEWAY.command();
    command.env("SLUICEGATE_ADMIN_KEY", key);
    let gateway = GATEWAY.start_by(command, Some(&section));
    let address = gateway.admin.unwrap().to_string();
    let (url, config) = (
        format!("https://{address}"),
        GATEWAY.file("sluicegate.toml", &section),
    );
    let limits = ["limits", "--json", "--admin", &url, "--admin-ca"];
    let limits = [&limits, &[trusted.0.to_str().unwrap()][..]].concat();
    let health = ["health", "--admin", &address, "--config"];
    let health = [&health, &[config.0.to_str().unwrap()][..]].concat();
    for asking in [limits, health] {
        let run = |certificate: &[&str]| {
            let mut command = GATEWAY.command();
            command.env("SLUICEGATE_ADMIN_KEY", key);
            let output = command.args(&asking).args(certificate).output().unwrap();
            let message = String::from_utf8(output.stderr).unwrap();
            (output.status.success(), message)
        };
        let (is_answered, message) = run(&own);
        assert!(is_answered, "{asking:?}: {message}");
        // The alert `CertificateRequired`, or a reset before it was read.
        let (is_answered, message) = run(&[]);
        assert!(
            !is_answered && message.starts_with(&format!("sluicegate: {url}")),
            "{asking:?}: {message}"
        );
    }
}

/// Nothing of a private key is in the log, also if its file is damaged.
#[test]
fn p05_tls_keys_are_not_disclosed() {
    let authority = Authority::new();
    let files = Files::new(&authority.current());
    let mut command = GATEWAY.command();
    command.env("SLUICEGATE_LOG", "trace");
    let gateway = GATEWAY.start_by(command, Some(&(files.section("tls") + NOWHERE)));
    let config = authority.client(None, &[]);
    ask(gateway.address(), &config, NAME).unwrap();
    let next = authority.current();
    let damaged = next.key.replacen("-----BEGIN", "-----BEGUN", 1);
    let cut = next.key.split_at(next.key.len() / 2).0.to_owned();
    for key in [damaged, cut] {
        let before = gateway.log.lock().unwrap().len();
        files.replace(&Identity {
            certificate: next.certificate.clone(),
            key,
        });
        gateway.signal("HUP");
        await_that("it is refused", || {
            gateway.log.lock().unwrap()[before..].contains("certificate not read")
        });
    }
    let log = gateway.log.lock().unwrap();
    let secrets = next
        .key
        .lines()
        .filter(|line| line.len() >= 16 && !line.starts_with("-----"));
    assert!(secrets.clone().count() > 1);
    for secret in secrets {
        assert!(!log.contains(&secret[..16]), "{log}");
    }
}
