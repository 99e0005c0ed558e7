//! Planted violations of requests with two targets, of requests for strict vendors, and of requests at the same time.

use super::*;
use crate::fault::{Fault, Next, OTHER_VENDOR, Strict, VENDOR, VENDORS, either, other};

/// A stream of Chat whose first target has failed with a 500 twice, and whose second one answers.
fn fallen_back() -> Sample {
    let mut sample = Sample::stream();
    sample.fault.kind = Kind::Hollow(Hollow::Status(500));
    sample.fault.next = Some(Next {
        upstream: Protocol::Chat,
        kind: Kind::Nothing,
    });
    sample.fault.model = either(Protocol::Chat, Protocol::Chat);
    let named = chat(&[TEXT, FINISH, USAGE, DONE], &sample.fault.model);
    sample.response().body = named.into();
    sample.log = line(&sample.fault.model, &other(Protocol::Chat));
    sample.ask_again();
    sample.ask_again();
    sample.observed.exchanges[2].place = Place::Second;
    for failed in &mut sample.observed.exchanges[..2] {
        failed.response.status = 500;
    }
    sample
}

#[test]
fn the_second_target_is_asked_if_the_first_one_failed() {
    lies! { fallen_back => StreamWhole;
        "sent [3, 1] times": Sample::ask_again;
        "another target got what was rejected": |it| it.observed.exchanges[1].response.status = 400;
        "another target got what was answered": |it| {
            it.fault.kind = Kind::Nothing;
            it.observed.exchanges[1].response.status = 200;
        };
        "the model is": |it| it.change_response("chat-or-chat", "other-chat");
        "no ' target=\"other-chat\"'": |it| it.log = line("chat-or-chat", "chat");
        "0 input tokens in the metrics": |it| it.observed.counted.tokens.clear();
    }
}

/// A refusal of both targets.
fn refused_twice() -> Sample {
    let mut sample = Sample::refused();
    sample.fault.next = Some(Next {
        upstream: Protocol::Chat,
        kind: Kind::Hollow(Hollow::Status(500)),
    });
    sample.ask_again();
    sample.observed.exchanges[1].place = Place::Second;
    sample
}

#[test]
fn no_target_is_left_out() {
    lies! { refused_twice => Refused;
        "the second target was not asked": |it| it.observed.exchanges.truncate(1);
    }
}

/// The body of a request for this model of a vendor, with these members beside.
fn asks(fault: &Fault, model: &str, members: &str) -> Vec<u8> {
    let (stream, text) = (fault.stream, fault.nonce());
    let messages = format!(r#"[{{"role":"user","content":"{text}"}}]"#);
    format!(r#"{{"model":"{model}","stream":{stream},{members}"messages":{messages}}}"#).into()
}

/// Replaces the request for this target.
fn asks_for(sample: &mut Sample, at: usize, model: &str, members: &str) {
    let body = asks(&sample.fault, model, members);
    sample.observed.exchanges[at].request.body = body.into();
}

/// A reply of xAI's server, translated for a client of Messages.
fn of_strict_vendor() -> Sample {
    let mut sample = Sample::reply();
    sample.fault.strict = Some(Strict::planted(["grok-4", "kimi-k2.6"]));
    sample.fault.model = VENDOR.to_owned();
    sample.change_response("\"chat\"", "\"vendor\"");
    sample.log = line(VENDOR, VENDOR);
    asks_for(&mut sample, 0, "grok-4", r#""temperature":0.5,"#);
    sample
}

/// A stream of Moonshot's server, after xAI's has failed with a 500 twice.
fn of_second_vendor() -> Sample {
    let mut sample = fallen_back();
    sample.fault.strict = Some(Strict::planted(["grok-4", "kimi-k2.6"]));
    sample.fault.model = VENDORS.to_owned();
    sample.change_response("chat-or-chat", VENDORS);
    sample.log = line(VENDORS, OTHER_VENDOR);
    for (at, model) in [(0, "grok-4"), (1, "grok-4"), (2, "kimi-k2.6")] {
        asks_for(&mut sample, at, model, "");
    }
    sample
}

/// A server that refuses what its vendor's does is asked for nothing that it refuses, and neither is the second one,
/// which refuses something else.
#[test]
fn refusals_of_vendors_are_lies() {
    lies! { of_strict_vendor => Reply;
        "xai refuses a request for grok-4, for presence_penalty": |it|
            asks_for(it, 0, "grok-4", r#""presence_penalty":1,"#);
        "another model": |it| asks_for(it, 0, "their-model", "");
        "no ' target=\"vendor\"'": |it| it.log = line(VENDOR, OTHER_VENDOR);
    }
    lies! { of_second_vendor => StreamWhole;
        "xai refuses a request for grok-4, for stop": |it| asks_for(it, 1, "grok-4", r#""stop":"END","#);
        "moonshot refuses a request for kimi-k2.6, for temperature": |it|
            asks_for(it, 2, "kimi-k2.6", r#""temperature":0.5,"#);
    }
}

/// A stream that fails, and another one at the same time that does not.
fn beside() -> Sample {
    let mut sample = Sample::failed();
    let mut bystander = Sample::stream();
    bystander.fault.model = other(Protocol::Chat);
    let named = chat(&[TEXT, FINISH, USAGE, DONE], &bystander.fault.model);
    bystander.response().body = named.into();
    bystander.observed.exchanges[0].place = Place::Second;
    let both = &mut sample.observed.counted;
    both.requests.insert("200".to_owned(), 1.0);
    both.streams.insert("completed".to_owned(), 1.0);
    both.tokens = counted(&[], &[], &[("input", 5.0), ("output", 4.0)]).tokens;
    sample.log += &line(&bystander.fault.model, "other-chat");
    sample.fault.bystander = Some(Box::new(bystander.fault));
    sample.observed.bystander = Some(Box::new(bystander.observed));
    sample
}

/// The observations of the request at the same time.
fn bystander(sample: &mut Sample) -> &mut Observed {
    sample.observed.bystander.as_mut().unwrap()
}

/// Replaces the response body that the bystander's client read.
fn bystander_reads(sample: &mut Sample, events: &[&str], model: &str) {
    let response = bystander(sample).client.response.as_mut().unwrap();
    response.body = chat(events, model).into();
}

#[test]
fn nothing_happens_to_a_request_at_the_same_time() {
    lies! { beside => StreamFailed;
        "a bystander was hit": |it| bystander_reads(it, &[TEXT, FAILED], "other-chat");
        "the model is": |it| bystander_reads(it, &[TEXT, FINISH, USAGE, DONE], "chat");
        "the words of the answer": |it| {
            let text = TEXT.replace("00000007", "00000008");
            bystander_reads(it, &[&text, FINISH, USAGE, DONE], "other-chat");
        };
        "no upstream request was sent": |it| bystander(it).exchanges.clear();
        "input was counted 5 times too few": |it| it.observed.counted.tokens.clear();
        "the lines of a bystander": |it| it.log = line("chat", "chat");
    }
}
