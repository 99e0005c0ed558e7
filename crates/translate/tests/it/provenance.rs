//! The seals of servers, through clients and back.

use engine::TextEvent;
use proptest::prelude::*;
use relay::seals::{Marker, Openable, leave_out_foreign};
use serde_json::{Value, json};
use sluicegate_translate::inbound::{self, ClientProtocol, Reply};
use sluicegate_translate::outbound;
use sluicegate_translate::outbound::encode::{self, DroppedField, Quirks, Settings};
use vendor::Protocol;
use vendor::envelope::Envelope;
use wire::Splice;

use crate::clients::{SETTINGS, neutral};
use crate::{NOW, chat_request, messages_request, stamp};

/// The answer of Gemini, with a thought signature of its call
/// (<https://ai.google.dev/gemini-api/docs/thought-signatures>).
fn gemini() -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"},
            "extra_content": {"google": {"thought_signature": "RWpRQ3M="}}},
        {"id": "call_2", "type": "function", "function": {"name": "f", "arguments": "{}"}},
    ]})
}

/// The answer of OpenRouter, with details of its reasoning
/// (<https://openrouter.ai/docs/use-cases/reasoning-tokens>).
fn openrouter() -> Value {
    json!({"role": "assistant", "content": null, "reasoning": "Hm.",
    "reasoning_details": [
        {"type": "reasoning.text", "text": "Hm.", "signature": "c2lnbmVk",
            "format": "anthropic-claude-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "ZW5j", "id": "call_1",
            "format": "google-gemini-v1", "index": 1},
    ],
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
    ]})
}

/// The events of an answer with this message, read as a plain reply or as a stream.
fn events(message: &Value, streams: bool) -> Vec<TextEvent> {
    let choice = |name: &str, message: &Value| json!({"choices": [{"index": 0, name: message, "finish_reason": "tool_calls"}]});
    if !streams {
        let body = choice("message", message).to_string();
        return outbound::reply(Protocol::Chat, body.as_bytes()).unwrap();
    }
    let mut delta = message.clone();
    for (index, call) in delta["tool_calls"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .enumerate()
    {
        call["index"] = index.into();
    }
    let mut reader = outbound::Reader::new(Protocol::Chat);
    let mut events = Vec::new();
    let data = choice("delta", &delta).to_string();
    reader.event(data.as_bytes(), &mut events).unwrap();
    reader.event(b"[DONE]", &mut events).unwrap();
    events
}

/// A client, and whether it asks for encrypted reasoning.
#[derive(Clone, Copy, Debug)]
enum Client {
    Messages,
    Responses { asks: bool },
}

const CLIENTS: [Client; 3] = [
    Client::Messages,
    Client::Responses { asks: false },
    Client::Responses { asks: true },
];

/// The request in which a client brings back an answer.
fn next_request(client: Client, envelope: &Envelope, events: Vec<TextEvent>) -> Value {
    let mut sealer = envelope.sealer();
    let events = events.into_iter().map(|event| sealer.event(event));
    match client {
        Client::Messages => {
            let reply = reply::<inbound::Messages>(&messages_request(), events);
            json!({"model": "m", "max_tokens": 9, "messages": [
                {"role": "user", "content": "Hi."},
                {"role": "assistant", "content": reply["content"]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": "4"}]},
            ]})
        }
        Client::Responses { asks } => {
            let reply = reply::<inbound::Responses>(&responses_request(asks), events);
            let mut input = vec![json!({"role": "user", "content": "Hi."})];
            input.extend(reply["output"].as_array().unwrap().iter().cloned());
            input.push(json!({"type": "function_call_output", "call_id": "call_1", "output": "4"}));
            json!({"model": "m", "input": input})
        }
    }
}

fn reply<P: ClientProtocol>(
    request: &P::Request,
    events: impl Iterator<Item = TextEvent>,
) -> Value {
    let mut reply = Reply::<P>::new(request, &stamp());
    for event in events {
        reply.event(event, NOW);
    }
    serde_json::to_value(reply.finish().unwrap()).unwrap()
}

fn responses_request(asks: bool) -> responses::ValidRequest {
    let mut body = json!({"model": "m", "input": [{"role": "user", "content": "Hi."}],
        "tools": [{"type": "function", "name": "f"}]});
    if asks {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    let request = responses::Request::read(body.to_string().as_bytes()).unwrap();
    request.validate(&responses::Rules::default()).unwrap()
}

/// The message of the model that a server of Chat Completions gets back, and true if seals are lost.
fn brought_back(client: Client, to: &Envelope, body: &Value) -> (Value, bool) {
    let protocol = match client {
        Client::Messages => Protocol::Messages,
        Client::Responses { .. } => Protocol::Responses,
    };
    let inbound = neutral(protocol, body.to_string().as_bytes());
    let mut request = inbound.unwrap().unwrap().request;
    let is_lost = to.unseal(&mut request);
    let encoded = encode::request(Protocol::Chat, &request, &SETTINGS).unwrap();
    assert!(!encoded.dropped.contains(&DroppedField::Reasoning));
    let text = String::from_utf8(encoded.body).unwrap();
    assert!(!text.contains("sg1."), "an envelope reached the server");
    if text.contains("thought_signature") {
        let quirks = Quirks {
            signed_calls: true,
            ..Quirks::NONE
        };
        let settings = Settings { quirks, ..SETTINGS };
        let encoded = encode::request(Protocol::Chat, &request, &settings).unwrap();
        assert_eq!(
            String::from_utf8(encoded.body).unwrap(),
            text,
            "an own signature stays"
        );
    }
    let sent: Value = serde_json::from_str(&text).unwrap();
    (sent["messages"][1].clone(), is_lost)
}

#[test]
fn a_thought_signature_of_a_call_comes_back_with_it() {
    let own = Envelope::new(b"own");
    for client in CLIENTS {
        for streams in [false, true] {
            let body = next_request(client, &own, events(&gemini(), streams));
            assert!(!body.to_string().contains("RWpRQ3M="), "in envelopes alone");
            let (message, is_lost) = brought_back(client, &own, &body);
            assert_eq!(message["tool_calls"], gemini()["tool_calls"], "{client:?}");
            assert!(!is_lost);
        }
    }
}

#[test]
fn details_of_reasoning_come_back_as_they_came() {
    let own = Envelope::new(b"own");
    for client in CLIENTS {
        for streams in [false, true] {
            let body = next_request(client, &own, events(&openrouter(), streams));
            let (message, is_lost) = brought_back(client, &own, &body);
            let details = &openrouter()["reasoning_details"];
            assert_eq!(&message["reasoning_details"], details, "{client:?}");
            assert_eq!(
                message["reasoning_content"],
                Value::Null,
                "the text is in them"
            );
            assert!(!is_lost);
        }
    }
}

#[test]
fn seals_of_chat_servers_do_not_reach_another_one() {
    let (own, other) = (Envelope::new(b"own"), Envelope::new(b"other"));
    for client in CLIENTS {
        for answer in [gemini(), openrouter()] {
            let body = next_request(client, &own, events(&answer, false));
            let (message, is_lost) = brought_back(client, &other, &body);
            assert!(is_lost, "{client:?}");
            assert_eq!(message.get("reasoning_details"), None);
            let calls = message["tool_calls"].as_array().unwrap();
            assert!(calls.iter().all(|call| call.get("extra_content").is_none()));
        }
    }
}

/// The message that a server of Chat Completions gets back after a stream, through a client of Messages.
fn message_of_stream(chunks: &[Value]) -> Value {
    let mut reader = outbound::Reader::new(Protocol::Chat);
    let mut events = Vec::new();
    for chunk in chunks {
        reader
            .event(chunk.to_string().as_bytes(), &mut events)
            .unwrap();
    }
    reader.event(b"[DONE]", &mut events).unwrap();
    let own = Envelope::new(b"own");
    let body = next_request(Client::Messages, &own, events);
    brought_back(Client::Messages, &own, &body).0
}

/// A stream has the text of a detail in pieces, and its signature in the last one.
#[test]
fn pieces_of_a_detail_form_one() {
    let piece = |detail: Value| json!({"choices": [{"index": 0, "delta": {"reasoning_details": [detail]}}]});
    let call = json!([{"index": 0, "id": "call_1", "function": {"name": "f", "arguments": "{}"}}]);
    let chunks = [
        piece(json!({"type": "reasoning.text", "text": "Let me ", "index": 0, "format": "f"})),
        piece(json!({"type": "reasoning.text", "text": "see.", "index": 0, "format": "f"})),
        piece(json!({"type": "reasoning.text", "text": "", "signature": "c2ln", "index": 0})),
        json!({"choices": [{"index": 0, "delta": {"tool_calls": call}, "finish_reason": "tool_calls"}]}),
    ];
    let message = message_of_stream(&chunks);
    assert_eq!(
        message["reasoning_details"],
        json!([{"type": "reasoning.text", "text": "Let me see.", "signature": "c2ln",
            "index": 0, "format": "f"}])
    );
}

/// The answer of a server with this much of its message, as a plain reply and as a stream.
fn answer(members: &Value) -> Value {
    let mut message = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]});
    let members = members.as_object().unwrap().clone();
    message.as_object_mut().unwrap().extend(members);
    message
}

/// GitHub Copilot (<https://github.com/anomalyco/opencode/pull/8900>), LiteLLM
/// (<https://docs.litellm.ai/docs/reasoning_content>) and agentgateway
/// (<https://github.com/agentgateway/agentgateway/pull/2018>).
#[test]
fn seals_in_members_of_a_servers_own_come_back_in_them() {
    let copilot = json!({"reasoning_text": "Hm.", "reasoning_opaque": "OPQ"});
    let block = json!([{"type": "thinking", "thinking": "Hm.", "signature": "SIG"}]);
    let litellm = json!({"reasoning_content": "Hm.", "thinking_blocks": block});
    let agentgateway = json!({"reasoning_content": "Hm.", "reasoning_signature": "SIG"});
    // The text is in the blocks.
    let owed = [
        copilot.clone(),
        json!({ "thinking_blocks": block }),
        agentgateway.clone(),
    ];
    let (own, other) = (Envelope::new(b"own"), Envelope::new(b"other"));
    for (members, owed) in [copilot, litellm, agentgateway].iter().zip(owed) {
        for client in CLIENTS {
            for streams in [false, true] {
                let events = events(&answer(members), streams);
                let is_reasoning = |event: &TextEvent| matches!(event, TextEvent::Reasoning(text) if text == "Hm.");
                assert!(events.iter().any(is_reasoning), "{members}");
                let body = next_request(client, &own, events);
                let (message, is_lost) = brought_back(client, &own, &body);
                let mut owed = answer(&owed);
                owed.as_object_mut().unwrap().remove("content");
                let mut found = message;
                found.as_object_mut().unwrap().remove("content");
                assert_eq!(found, owed, "{client:?}, {streams}");
                assert!(!is_lost);
                let (message, is_lost) = brought_back(client, &other, &body);
                assert!(is_lost && !message.to_string().contains("SIG"), "{message}");
                assert!(!message.to_string().contains("OPQ"), "{message}");
            }
        }
    }
}

/// LiteLLM sends the signature of a block behind its text:
/// <https://docs.litellm.ai/docs/reasoning_content>.
#[test]
fn pieces_of_a_thinking_block_form_one() {
    let piece = |text: &str, signature: &str| {
        let block = json!({"type": "thinking", "thinking": text, "signature": signature});
        json!({"choices": [{"index": 0, "delta": {"reasoning_content": text, "thinking_blocks": [block]}}]})
    };
    let call = json!([{"index": 0, "id": "call_1", "function": {"name": "f", "arguments": "{}"}}]);
    let chunks = [
        piece("Let me ", ""),
        piece("see.", ""),
        piece("", "S1"),
        piece("So.", ""),
        piece("", "S2"),
        json!({"choices": [{"index": 0, "delta": {"tool_calls": call}, "finish_reason": "tool_calls"}]}),
    ];
    let message = message_of_stream(&chunks);
    assert_eq!(
        message["thinking_blocks"],
        json!([{"type": "thinking", "thinking": "Let me see.", "signature": "S1"},
            {"type": "thinking", "thinking": "So.", "signature": "S2"}])
    );
}

/// LiteLLM in front of Gemini: <https://docs.litellm.ai/blog/gemini_3>.
#[test]
fn provider_thought_signature_comes_back() {
    let own = Envelope::new(b"own");
    let mut litellm = gemini();
    let calls = litellm["tool_calls"].as_array_mut().unwrap();
    calls[0].as_object_mut().unwrap().remove("extra_content");
    calls[0]["provider_specific_fields"] = json!({"thought_signature": "RWpRQ3M="});
    for client in CLIENTS {
        for streams in [false, true] {
            let body = next_request(client, &own, events(&litellm, streams));
            let (message, is_lost) = brought_back(client, &own, &body);
            assert_eq!(message["tool_calls"], litellm["tool_calls"], "{client:?}");
            assert!(!is_lost);
        }
    }
}

/// Gemini marks its thoughts in the same member, which is no seal.
#[test]
fn a_thought_signature_of_a_text_comes_back() {
    let seal = json!({"google": {"thought_signature": "RWpR"}});
    let chunks = [
        json!({"choices": [{"index": 0, "delta": {"content": "Hel", "extra_content": {"google": {"thought": true}}}}]}),
        json!({"choices": [{"index": 0, "delta": {"content": "lo.", "extra_content": seal}, "finish_reason": "stop"}]}),
    ];
    let message = message_of_stream(&chunks);
    assert_eq!(message["content"], "Hello.");
    assert_eq!(message["extra_content"], seal);
}

/// Chat clients have the text of the reasoning beside its envelope.
#[test]
fn thinking_comes_back_through_a_chat_client() {
    let content = json!([
        {"type": "thinking", "thinking": "Let me see.", "signature": "RXFj"},
        {"type": "redacted_thinking", "data": "RW1v"},
        {"type": "text", "text": "Here."},
    ]);
    let answer = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": content, "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 1, "output_tokens": 1}});
    let events = outbound::reply(Protocol::Messages, answer.to_string().as_bytes()).unwrap();
    let own = Envelope::new(b"own");
    let mut sealer = own.sealer();
    let events = events.into_iter().map(|event| sealer.event(event));
    let reply = reply::<inbound::Chat>(&chat_request(), events);
    let message = &reply["choices"][0]["message"];
    assert_eq!(message["reasoning_content"], "Let me see.");

    let user = json!({"role": "user", "content": "Hi."});
    let body = json!({"model": "m", "messages": [user, message, user]});
    let inbound = neutral(Protocol::Chat, body.to_string().as_bytes());
    let mut request = inbound.unwrap().unwrap().request;
    assert!(!own.unseal(&mut request));
    let encoded = encode::request(Protocol::Messages, &request, &SETTINGS).unwrap();
    let sent: Value = serde_json::from_slice(&encoded.body).unwrap();
    assert_eq!(sent["messages"][1]["content"], content);
    assert_eq!(encoded.dropped, []);
}

/// An account at a server of this protocol.
struct Account {
    name: &'static str,
    protocol: Protocol,
}

const ACCOUNTS: [Account; 6] = [
    Account {
        name: "A",
        protocol: Protocol::Chat,
    },
    Account {
        name: "B",
        protocol: Protocol::Chat,
    },
    Account {
        name: "C",
        protocol: Protocol::Messages,
    },
    Account {
        name: "D",
        protocol: Protocol::Messages,
    },
    Account {
        name: "E",
        protocol: Protocol::Responses,
    },
    Account {
        name: "F",
        protocol: Protocol::Responses,
    },
];

impl Account {
    fn envelope(&self) -> Envelope {
        Envelope::new(self.name.as_bytes())
    }

    fn seal(&self, turn: usize) -> String {
        format!("seal{turn}of{}", self.name)
    }

    /// The reply of a turn: a call, with a seal.
    fn reply(&self, turn: usize) -> Value {
        let (seal, id) = (self.seal(turn), format!("call_{turn}"));
        match self.protocol {
            Protocol::Chat => {
                let call = json!({"id": id, "type": "function",
                    "function": {"name": "f", "arguments": "{}"},
                    "extra_content": {"google": {"thought_signature": seal}}});
                let message = json!({"role": "assistant", "content": null, "tool_calls": [call],
                    "reasoning_details": [{"type": "reasoning.encrypted", "data": seal}]});
                json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
                    "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
            }
            Protocol::Messages => {
                let content = json!([
                    {"type": "thinking", "thinking": "Hm.", "signature": seal},
                    {"type": "redacted_thinking", "data": seal},
                    {"type": "tool_use", "id": id, "name": "f", "input": {}},
                ]);
                json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
                    "content": content, "stop_reason": "tool_use", "stop_sequence": null,
                    "usage": {"input_tokens": 1, "output_tokens": 1}})
            }
            Protocol::Responses => {
                let output = json!([
                    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": seal},
                    {"type": "function_call", "id": "fc_1", "call_id": id, "name": "f",
                        "arguments": "{}", "status": "completed"},
                ]);
                json!({"id": "resp_1", "object": "response", "created_at": 1, "model": "m",
                    "status": "completed", "output": output})
            }
        }
    }

    /// The reply of a turn as a client of this protocol gets it.
    fn reply_for(&self, client: Protocol, turn: usize) -> Value {
        let body = self.reply(turn).to_string();
        if client == self.protocol {
            let relayed = match client {
                Protocol::Responses => relay::reply::<relay::Responses>(body.as_bytes(), "m"),
                Protocol::Chat => relay::reply::<relay::Chat>(body.as_bytes(), "m"),
                Protocol::Messages => relay::reply::<relay::Messages>(body.as_bytes(), "m"),
            };
            let marked = Marker::new(client, &self.envelope()).marked(relayed.unwrap().0);
            return serde_json::from_slice(&marked).unwrap();
        }
        let mut sealer = self.envelope().sealer();
        let events = outbound::reply(self.protocol, body.as_bytes()).unwrap();
        let events = events.into_iter().map(|event| sealer.event(event));
        match client {
            Protocol::Responses => reply::<inbound::Responses>(&responses_request(true), events),
            Protocol::Chat => reply::<inbound::Chat>(&chat_request(), events),
            Protocol::Messages => reply::<inbound::Messages>(&messages_request(), events),
        }
    }

    /// The request of a client as the account gets it, after the `first` target has failed.
    fn asked(&self, client: Protocol, body: &Value, first: &Self) -> String {
        let body = body.to_string();
        if client == self.protocol {
            let mut group = Some(first.envelope().group());
            let openable = Openable::at(&self.envelope(), &mut group, false);
            let mut splice = Splice::new(body.as_bytes());
            leave_out_foreign(client, &openable, &mut splice);
            return String::from_utf8(splice.to_vec()).unwrap();
        }
        let mut request = neutral(client, body.as_bytes()).unwrap().unwrap().request;
        self.envelope().unseal(&mut request);
        let encoded = encode::request(self.protocol, &request, &SETTINGS).unwrap();
        String::from_utf8(encoded.body).unwrap()
    }
}

/// Adds a reply and the result of its call to the conversation of a client.
fn go_on(client: Protocol, body: &mut Value, reply: &Value, turn: usize) {
    let id = format!("call_{turn}");
    match client {
        Protocol::Responses => {
            let input = body["input"].as_array_mut().unwrap();
            input.extend(reply["output"].as_array().unwrap().iter().cloned());
            input.push(json!({"type": "function_call_output", "call_id": id, "output": "4"}));
        }
        Protocol::Chat => {
            let messages = body["messages"].as_array_mut().unwrap();
            messages.push(reply["choices"][0]["message"].clone());
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": "4"}));
        }
        Protocol::Messages => {
            let messages = body["messages"].as_array_mut().unwrap();
            messages.push(json!({"role": "assistant", "content": reply["content"]}));
            let result = json!({"type": "tool_result", "tool_use_id": id, "content": "4"});
            messages.push(json!({"role": "user", "content": [result]}));
        }
    }
}

proptest! {
    /// Whatever targets a conversation goes to, none gets a seal of another one, and each gets all of
    /// its own.
    #[test]
    fn seals_reach_their_own_account_alone(
        client in prop::sample::select(CLIENTS_OF_THE_LAW.to_vec()),
        targets in prop::collection::vec((0..ACCOUNTS.len(), 0..ACCOUNTS.len()), 1..6),
    ) {
        let mut body = match client {
            Protocol::Responses => json!({"model": "m", "input": [{"role": "user", "content": "Hi."}]}),
            _ => json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}]}),
        };
        for (turn, (first, target)) in targets.iter().enumerate() {
            let (first, account) = (&ACCOUNTS[*first], &ACCOUNTS[*target]);
            let asked = account.asked(client, &body, first);
            for ours in ["sg1.", "sg2.", "rs_sg_"] {
                prop_assert!(!asked.contains(ours), "{ours} in {asked}");
            }
            for (earlier, (_, maker)) in targets.iter().take(turn).enumerate() {
                let seal = ACCOUNTS[*maker].seal(earlier);
                prop_assert_eq!(asked.contains(&seal), maker == target, "{} in {}", seal, asked);
            }
            go_on(client, &mut body, &account.reply_for(client, turn), turn);
        }
    }
}

/// The protocols of the clients that can keep seals.
const CLIENTS_OF_THE_LAW: [Protocol; 3] = Protocol::ALL;
