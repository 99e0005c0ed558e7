//! DNS lookup, connect and TLS handshake.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::EngineError;
use network::{
    Ca, Certificate, Name, Peer, World, ok, options, post, send, send_once, single_host, url,
};
use sluicegate_upstream::{Options, Proxy, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::time::Instant;
use tokio_rustls::TlsStream;

/// Returns the failure of a first request with `options`.
async fn failure(world: &World, options: Options) -> EngineError {
    send_once(&world.upstream(options), &post("{}"))
        .await
        .unwrap_err()
}

fn assert_unreachable(failure: &EngineError, expected: &str) {
    assert!(
        matches!(failure, EngineError::Upstream(why) if why.starts_with(expected)),
        "{failure}"
    );
}

fn assert_timeout(failure: &EngineError, expected: &str) {
    assert!(
        matches!(failure, EngineError::Timeout(why) if why == expected),
        "{failure}"
    );
}

#[tokio::test]
async fn a_closed_port_fails_at_once() {
    // A port that is bound without a listener refuses connections.
    let bound = TcpSocket::new_v4().unwrap();
    bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let base = url(&format!("http://{}", bound.local_addr().unwrap()));
    let upstream = Upstream::new(Options::new(base)).unwrap();
    assert_unreachable(
        &send_once(&upstream, &post("{}")).await.unwrap_err(),
        "connect failed",
    );
}

#[tokio::test(start_paused = true)]
async fn silent_address_fails_at_the_connect_timeout() {
    let world = World::default();
    world.stall("a.example");
    let started = Instant::now();
    assert_timeout(&failure(&world, options()).await, "connect timeout");
    let waited = started.elapsed();
    assert!(
        (Duration::from_millis(4_990)..Duration::from_millis(5_010)).contains(&waited),
        "{waited:?}"
    );
}

/// A DNS lookup times out after two seconds.
#[tokio::test(start_paused = true)]
async fn u03_a_name_that_is_not_found_in_two_seconds_is_given_up() {
    let world = World::default();
    world.name("a.example", Name::Stalls);
    let started = Instant::now();
    assert_timeout(&failure(&world, options()).await, "DNS lookup timeout");
    let waited = started.elapsed();
    assert!(
        (Duration::from_millis(1_990)..Duration::from_millis(2_010)).contains(&waited),
        "{waited:?}"
    );
    assert_eq!(world.dials(), 0);
}

/// A name without an address is reported as a failure of the upstream.
#[tokio::test]
async fn u03_a_name_without_addresses_fails() {
    let world = World::default();
    assert_unreachable(&failure(&world, options()).await, "DNS lookup failed");
    world.name("a.example", Name::At(Vec::new()));
    assert_unreachable(&failure(&world, options()).await, "connect failed");
    assert_eq!(world.dials(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_dead_address_keeps_the_next_one_waiting_for_a_moment_only() {
    let (world, upstream) = single_host(|_, peer| peer.always(ok("{}")));
    let good = world.address("a.example");
    world.stall("dead.example");
    let (dead, refused) = (
        world.address("dead.example"),
        world.address("refused.example"),
    );
    world.name("a.example", Name::At(vec![dead, refused, good]));
    let started = Instant::now();
    send_once(&upstream, &post("{}")).await.unwrap();
    assert_eq!(world.dialled(), [dead, refused, good]);
    assert!(
        started.elapsed() < Duration::from_millis(300),
        "{:?}",
        started.elapsed()
    );
}

/// At most sixteen of a hundred addresses are tried, alternating between IPv6 and IPv4.
#[tokio::test(start_paused = true)]
async fn u03_dials_at_most_sixteen_addresses_of_both_families() {
    let world = World::default();
    let v4 = (0..50).map(|at| format!("198.51.100.{at}:80").parse().unwrap());
    let v6 = (0..50).map(|at| format!("[2001:db8::{at}]:80").parse().unwrap());
    world.name("a.example", Name::At(v6.chain(v4).collect()));
    assert_unreachable(&failure(&world, options()).await, "connect failed");
    let dialled = world.dialled();
    assert_eq!(dialled.len(), 16);
    assert!(
        dialled
            .chunks(2)
            .all(|pair| pair[0].is_ipv6() && pair[1].is_ipv4()),
        "{dialled:?}"
    );
}

fn https(ca: &Ca) -> Options {
    Options {
        base_url: url("https://a.example/v1"),
        roots: Some(ca.pem.clone().into_bytes()),
        ..options()
    }
}

/// Returns a network in which `a.example` serves TLS.
fn secured(ca: &Ca, certificate: Certificate) -> World {
    let world = World::default();
    let acceptor = ca.acceptor(certificate);
    world.serve("a.example", move |_, peer| {
        let acceptor = acceptor.clone();
        async move {
            if let Ok(stream) = acceptor.accept(peer.io).await {
                Peer {
                    io: Box::new(TlsStream::from(stream)),
                }
                .always(ok("secured"))
                .await;
            }
        }
    });
    world
}

#[tokio::test]
async fn a_host_that_the_operator_trusts_is_asked() {
    let ca = Ca::generate();
    let world = secured(&ca, Certificate::Good);
    let upstream = world.upstream(https(&ca));
    for _ in 0..2 {
        let body = send_once(&upstream, &post("{}")).await.unwrap().body;
        assert_eq!(body.collect(100).await.unwrap(), "secured");
    }
    assert_eq!(world.dials(), 1);
}

/// A host whose certificate is untrusted, expired or of another name gets no request.
#[tokio::test]
async fn u04_untrusted_host_gets_no_request() {
    let ca = Ca::generate();
    for certificate in [
        Certificate::Expired,
        Certificate::OfAnotherName,
        Certificate::SelfSigned,
    ] {
        let world = secured(&ca, certificate);
        assert_unreachable(&failure(&world, https(&ca)).await, "TLS handshake failed");
        assert_eq!(world.dials(), 1, "{certificate:?}");
    }
    let unknown = secured(&Ca::generate(), Certificate::Good);
    assert_unreachable(&failure(&unknown, https(&ca)).await, "TLS handshake failed");
    let public_alone = Options {
        roots: None,
        ..https(&ca)
    };
    assert_unreachable(
        &failure(&secured(&ca, Certificate::Good), public_alone).await,
        "TLS handshake failed",
    );
}

/// A TLS handshake that stalls fails at the connect timeout, and nothing is sent unencrypted.
#[tokio::test(start_paused = true)]
async fn u04_stalled_handshake_fails_at_the_connect_timeout() {
    let ca = Ca::generate();
    let world = World::default();
    let is_plain = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_plain);
    world.serve("a.example", move |_, mut peer| {
        let seen = Arc::clone(&seen);
        async move {
            let first = peer.io.read_u8().await.unwrap();
            seen.store(first != HANDSHAKE, Ordering::Relaxed);
            peer.closed().await;
        }
    });
    let started = Instant::now();
    assert_timeout(&failure(&world, https(&ca)).await, "TLS handshake timeout");
    let waited = started.elapsed();
    assert!(
        (Duration::from_millis(4_990)..Duration::from_millis(5_010)).contains(&waited),
        "{waited:?}"
    );
    assert!(!is_plain.load(Ordering::Relaxed));
}

/// A TLS handshake that is aborted is a failure of the upstream.
#[tokio::test]
async fn u04_a_handshake_that_breaks_off_fails() {
    let ca = Ca::generate();
    // Nothing; an alert, as a server that supports only TLS 1.1 sends it; plain HTTP.
    for response in [
        &b""[..],
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
    ] {
        let world = World::default();
        world.serve("a.example", move |_, mut peer| async move {
            let mut hello = [0; 64];
            peer.io.read_exact(&mut hello).await.unwrap();
            peer.send(response).await;
            let _ = peer.io.shutdown().await;
        });
        assert_unreachable(&failure(&world, https(&ca)).await, "TLS handshake failed");
        assert_eq!(world.dials(), 1);
    }
}

/// The content type of TLS handshake records.
const HANDSHAKE: u8 = 22;

/// The proxy is asked for a tunnel to the host, through which the request is sent.
#[tokio::test]
async fn a_proxy_is_asked_for_a_tunnel() {
    let world = World::default();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let written = Arc::clone(&seen);
    world.serve("proxy.example", move |_, mut peer| {
        let written = Arc::clone(&written);
        async move {
            for response in [
                "HTTP/1.1 200 Connection established\r\n\r\n".to_owned(),
                ok("{}"),
            ] {
                let request = peer.request().await.unwrap();
                written.lock().unwrap().push(request.head);
                peer.send(response).await;
            }
        }
    });
    let mut options = options();
    let proxy = Proxy::new(&url("http://me:s%40e@proxy.example:3128")).unwrap();
    options.proxy = Some(proxy.except("b.example, .internal"));
    let response = send(&world.upstream(options)).await.unwrap();
    assert_eq!(response.status, 200);
    let seen = seen.lock().unwrap();
    assert_eq!(
        seen[0],
        "CONNECT a.example:80 HTTP/1.1\r\nHost: a.example:80\r\nProxy-Authorization: Basic bWU6c0Bl\r\n\r\n"
    );
    assert!(
        seen[1].starts_with("POST /v1/responses HTTP/1.1\r\n"),
        "{seen:?}"
    );
    assert!(!seen[1].contains("roxy"), "{seen:?}");
}

/// Nothing is sent to a host that the proxy refuses to connect to, and excepted hosts are connected
/// to without the proxy.
#[tokio::test]
async fn a_proxy_may_refuse_and_hosts_may_be_excepted() {
    let world = World::default();
    world.serve("proxy.example", |_, mut peer| async move {
        let refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
        while peer.request().await.is_some() {
            peer.send(refusal).await;
        }
    });
    world.serve("a.example", |_, peer| peer.always(ok("{}")));
    let proxied = |exceptions: &str| {
        let mut options = options();
        let proxy = Proxy::new(&url("http://proxy.example:3128")).unwrap();
        options.proxy = Some(proxy.except(exceptions));
        world.upstream(options)
    };
    let failure = send_once(&proxied(""), &post("{}")).await.unwrap_err();
    assert_eq!(
        failure.to_string(),
        EngineError::Upstream("proxy failed: the proxy responds with status '403'".to_owned())
            .to_string()
    );
    for exceptions in ["a.example", ".example", "b.test,EXAMPLE", "*"] {
        let response = send_once(&proxied(exceptions), &post("{}")).await;
        assert_eq!(response.unwrap().status, 200, "{exceptions}");
    }
    assert!(send_once(&proxied("xample"), &post("{}")).await.is_err());
    let socks = Proxy::new(&url("socks5://proxy.example")).unwrap_err();
    assert_eq!(
        socks.to_string(),
        "`proxy` has the scheme `socks5`; `http` is accepted."
    );
}
