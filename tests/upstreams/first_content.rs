//! The timeout for the first content of a stream, after which the next target is asked.

use simulator::{Play, Protocol, Request as Asked, Simulator, honest};
use testkit::requests::{TEXT_PROTOCOLS, ask, path};
use testkit::upstreams::GUARD;
use testkit::{CLIENT_KEY, Config, Gateway, log};

use crate::GATEWAY;

/// A gateway whose model is at two upstreams of this protocol, and asks the second one if the first is
/// slow.
fn gateway(upstream: Protocol, addresses: [&str; 2]) -> Gateway {
    let targets = r#"[{ upstream = "slow", first_content_timeout = "50ms" },
                      { upstream = "next", first_content_timeout = "1ms" }]"#;
    Config::new("")
        .upstream("slow", upstream, addresses[0], "")
        .upstream("next", upstream, addresses[1], "")
        .model("mine", upstream, targets)
        .start(GATEWAY)
}

/// Opens a stream, and sends no content.
fn only_opens(request: &Asked) -> Play {
    let answer = honest::answer(request);
    let opening = answer.pieces().next().cloned().unwrap_or_default();
    Play::stream().body(opening).hold()
}

/// Answers after a release.
fn waits(request: &Asked) -> Play {
    Play::new().gate().then(honest::answer(request))
}

#[test]
fn a_stream_without_content_goes_to_the_next_target() {
    for client in TEXT_PROTOCOLS {
        for upstream in TEXT_PROTOCOLS {
            let slow = Simulator::start(only_opens).unwrap();
            let next = Simulator::honest().unwrap();
            let addresses = [&slow, &next].map(Simulator::base_url);
            let gateway = gateway(upstream, addresses.each_ref().map(String::as_str));
            let body = ask(client, "mine", "Hello.", true);
            let response = gateway.post(CLIENT_KEY, path(client), &body);
            assert_eq!(response.status, 200, "{client:?} over {upstream:?}");
            assert!(response.text().contains(" said:"), "{}", response.text());
            assert_eq!((slow.requests().len(), next.requests().len()), (1, 1));
            assert!(slow.wait_for_close(0, GUARD).is_some(), "it is cancelled");
            let line = log::line(&gateway, &response);
            assert_eq!(
                (&line["target"], &line["outcome"]),
                (&"next".into(), &"completed".into())
            );
        }
    }
}

/// The content of a plain reply comes all at once, and there is no target after the last one.
#[test]
fn plain_replies_and_last_targets_have_no_timeout_for_content() {
    let (slow, next) = (
        Simulator::start(waits).unwrap(),
        Simulator::start(waits).unwrap(),
    );
    let addresses = [&slow, &next].map(Simulator::base_url);
    let [slow_url, next_url] = addresses.each_ref().map(String::as_str);
    let both = gateway(Protocol::Chat, [slow_url, next_url]);
    let post = |gateway: &Gateway, stream| {
        let body = ask(Protocol::Chat, "mine", "Hello.", stream);
        gateway.post(CLIENT_KEY, path(Protocol::Chat), &body)
    };
    std::thread::scope(|scope| {
        let plain = scope.spawn(|| post(&both, false));
        assert!(slow.wait_for_requests(1, GUARD));
        slow.release();
        assert_eq!(plain.join().unwrap().status, 200);
        assert_eq!(next.requests().len(), 0);
        let stream = scope.spawn(|| post(&both, true));
        assert!(next.wait_for_requests(1, GUARD));
        next.release();
        let response = stream.join().unwrap();
        assert!(response.text().contains(" said:"), "{}", response.text());
    });
}
