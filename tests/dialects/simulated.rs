//! The gateway in front of the simulator, which sends its replies in the form of real servers.

use serde_json::Value;
use simulator::{Protocol, Simulator, dialect, scenario};
use testkit::reading::{Call, Ending, Reading};
use testkit::requests::{Question, TEXT_PROTOCOLS, protocol_name};
use testkit::{Config, Gateway};

/// The same answers reach clients of every protocol, whatever the form in which the server sends
/// them.
#[test]
fn the_form_of_a_server_is_not_seen_by_clients() {
    let simulator = Simulator::start(scenario::answer).unwrap();
    let gateway = gateway(&simulator);
    for known in dialect::all() {
        for client in TEXT_PROTOCOLS {
            for stream in [true, false] {
                let context = format!("{} {} {stream}", known.name, protocol_name(client));
                let ask = |question| reading(&gateway, known.name, client, question, stream);
                let text = ask(Question::Text);
                assert_eq!(
                    text.ending(client),
                    Ending::Complete,
                    "{context}: {:?}",
                    text.problems
                );
                assert_eq!(text.problems, [""; 0], "{context}");
                assert_eq!(text.text, "You said: Hello.", "{context}");
                let calls = ask(Question::ParallelTools);
                assert_eq!(
                    calls.ending(client),
                    Ending::Complete,
                    "{context}: {:?}",
                    calls.problems
                );
                assert_eq!(
                    names(&calls.calls),
                    ["get_weather", "get_time"],
                    "{context}"
                );
                let thoughts = ask(Question::Reasoning);
                assert_eq!(thoughts.ending(client), Ending::Complete, "{context}");
                assert!(!thoughts.reasoning.is_empty(), "{context}: no reasoning");
            }
        }
    }
}

/// A fault is one in every form: a server that breaks off is never a success.
#[test]
fn a_server_that_breaks_off_fails_in_every_form() {
    let reset = |request: &simulator::Request| {
        let play = simulator::honest::answer(request);
        let middle = play.body_bytes().len() / 2;
        play.cut_at(middle, simulator::Cut::Reset)
    };
    let simulator = Simulator::start(reset).unwrap();
    let gateway = gateway(&simulator);
    for known in dialect::all() {
        for client in TEXT_PROTOCOLS {
            let read = reading(&gateway, known.name, client, Question::Text, true);
            let context = format!("{} {}", known.name, protocol_name(client));
            assert_eq!(read.ending(client), Ending::Failure, "{context}");
        }
    }
}

/// A gateway with a model for each dialect, behind an upstream of its protocol.
fn gateway(simulator: &Simulator) -> Gateway {
    let origin = simulator.base_url();
    let origin = origin.strip_suffix("/v1").unwrap_or(&origin);
    let add = |config: Config, known: &dialect::Dialect| {
        let protocol = known.protocol();
        let targets = format!(r#"[{{ upstream = "{}" }}]"#, known.name);
        config
            .keyless(known.name, protocol, &format!("{origin}/{}/v1", known.name))
            .model(known.name, protocol, &targets)
    };
    let config = dialect::all().iter().fold(Config::new(""), add);
    config.start(testkit::binary!())
}

fn reading(
    gateway: &Gateway,
    model: &str,
    client: Protocol,
    question: Question,
    stream: bool,
) -> Reading {
    let body: Value = question.body(client, model, stream);
    Reading::of_response(client, &gateway.ask(client, &body))
}

fn names(calls: &[Call]) -> Vec<&str> {
    calls.iter().map(|call| call.name.as_str()).collect()
}
