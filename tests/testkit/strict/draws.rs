//! Requests with members that fit together, drawn at random.

use serde_json::{Map, Value, json};
use simulator::Protocol;

use crate::dice::Dice;
use crate::requests::RED;

/// Draws a request of a client for this model, which upstreams of these protocols can be sent. Its first text of
/// the user is `text`.
pub fn request(
    dice: &mut Dice,
    client: Protocol,
    model: &str,
    text: &str,
    upstreams: &[Protocol],
) -> Value {
    let mut draws = Draws { dice, text };
    let mut body = Map::new();
    body.insert("model".to_owned(), model.into());
    match client {
        Protocol::Chat => draws.chat(&mut body),
        Protocol::Messages => draws.messages(&mut body),
        _ => draws.responses(&mut body),
    }
    // Messages has no way to ask for any JSON, which is refused.
    if upstreams.contains(&Protocol::Messages)
        && let Some(format) = body.get_mut("response_format")
        && format["type"] == "json_object"
    {
        *format = json!({"type": "text"});
    }
    body.into()
}

/// Draws the members of a request.
struct Draws<'a> {
    dice: &'a mut Dice,
    /// The first text of the user.
    text: &'a str,
}

impl Draws<'_> {
    /// Adds one of the values under a name, or none.
    fn maybe(&mut self, body: &mut Map<String, Value>, name: &str, values: &[Value]) {
        if self.dice.once_in(3) {
            body.insert(name.to_owned(), self.dice.one(values).clone());
        }
    }

    fn chat(&mut self, body: &mut Map<String, Value>) {
        self.maybe(body, "temperature", &[json!(0), json!(0.7), json!(1.7)]);
        self.maybe(body, "top_p", &[json!(0.9), json!(1)]);
        self.maybe(body, "presence_penalty", &[json!(0.5)]);
        self.maybe(body, "frequency_penalty", &[json!(0.5)]);
        self.maybe(body, "seed", &[json!(7)]);
        self.maybe(body, "stop", &[json!("END"), json!(STOPS)]);
        self.maybe(
            body,
            "max_completion_tokens",
            &[json!(5), json!(900), json!(100_000)],
        );
        self.maybe(body, "reasoning_effort", &EFFORTS.map(Value::from));
        self.maybe(body, "verbosity", &[json!("low"), json!("high")]);
        self.maybe(
            body,
            "user",
            &[json!("u"), json!("x".repeat(120)), json!("a@b.example")],
        );
        self.maybe(body, "safety_identifier", &[json!("s")]);
        self.maybe(body, "prompt_cache_key", &[json!("k")]);
        self.maybe(body, "service_tier", &[json!("auto"), json!("priority")]);
        self.maybe(body, "store", &[json!(false)]);
        self.maybe(body, "metadata", &[json!({"a": "b"})]);
        self.maybe(body, "response_format", &[json!({"type": "json_object"}),
            json!({"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": schema()}})]);
        if self.dice.once_in(2) {
            let tool = |(name, schema): (&str, Value)| json!({"type": "function", "function": {"name": name, "parameters": schema}});
            let tools: Vec<_> = self.tools().into_iter().map(tool).collect();
            body.insert("tools".to_owned(), tools.into());
            self.maybe(
                body,
                "tool_choice",
                &[
                    json!("auto"),
                    json!("none"),
                    json!("required"),
                    json!({"type": "function", "function": {"name": "look_up"}}),
                ],
            );
            self.maybe(body, "parallel_tool_calls", &[json!(false), json!(true)]);
        }
        let call = json!({"id": "call_of_the_first_turn_with_a_long_name_1", "type": "function", "function": {"name": "look_up", "arguments": "{\"a\":1}"}});
        let turns = [
            json!({"role": "system", "content": "Be brief."}),
            json!({"role": "user", "content": [{"type": "text", "text": self.text}, {"type": "text", "text": "B."}]}),
            json!({"role": "assistant", "content": "Hm.", "reasoning_content": "Thought.", "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": "call_of_the_first_turn_with_a_long_name_1", "content": "4 C"}),
            json!({"role": "developer", "content": "Hurry."}),
            json!({"role": "user", "content": "So?"}),
            json!({"role": "assistant", "content": "It is"}),
        ];
        body.insert("messages".to_owned(), self.conversation(turns));
    }

    fn messages(&mut self, body: &mut Map<String, Value>) {
        let limit = *self.dice.one(&[900, 4096, 100_000]);
        body.insert("max_tokens".to_owned(), limit.into());
        self.maybe(body, "temperature", &[json!(0), json!(0.7), json!(1)]);
        self.maybe(body, "top_k", &[json!(40)]);
        self.maybe(body, "stop_sequences", &[json!(["END"]), json!(STOPS)]);
        self.maybe(body, "metadata", &[json!({"user_id": "x".repeat(149)})]);
        self.maybe(
            body,
            "service_tier",
            &[json!("auto"), json!("standard_only")],
        );
        self.maybe(
            body,
            "thinking",
            &[json!({"type": "adaptive"}), json!({"type": "disabled"})],
        );
        self.maybe(
            body,
            "output_config",
            &["low", "medium", "high", "xhigh", "max"].map(|effort| json!({"effort": effort})),
        );
        self.maybe(body, "system", &[json!("Be brief."), json!([{"type": "text", "text": "Be brief.", "cache_control": mark()}, {"type": "text", "text": "Be kind."}])]);
        if self.dice.once_in(2) {
            let tool =
                |(name, schema): (&str, Value)| json!({"name": name, "input_schema": schema});
            let tools: Vec<_> = self.tools().into_iter().map(tool).collect();
            body.insert("tools".to_owned(), tools.into());
            self.maybe(
                body,
                "tool_choice",
                &[
                    json!({"type": "auto"}),
                    json!({"type": "none"}),
                    json!({"type": "any"}),
                    json!({"type": "tool", "name": "look_up", "disable_parallel_tool_use": true}),
                ],
            );
        }
        let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": RED}});
        let turns = [
            json!({"role": "user", "content": [{"type": "text", "text": self.text, "cache_control": mark()}, {"type": "text", "text": "B."}]}),
            json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Thought.", "signature": "c2VhbA=="}, {"type": "text", "text": "Hm."},
                {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {"a": 1}}]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "4 C"}], "is_error": false},
                {"type": "text", "text": "Go on."}]}),
            json!({"role": "assistant", "content": "It is"}),
            json!({"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]}),
        ];
        body.insert("messages".to_owned(), self.conversation(turns));
    }

    fn responses(&mut self, body: &mut Map<String, Value>) {
        self.maybe(body, "temperature", &[json!(0), json!(0.7), json!(1.7)]);
        self.maybe(body, "top_p", &[json!(0.9)]);
        self.maybe(
            body,
            "max_output_tokens",
            &[json!(16), json!(900), json!(100_000)],
        );
        self.maybe(
            body,
            "reasoning",
            &EFFORTS.map(|effort| json!({"effort": effort, "summary": "auto"})),
        );
        self.maybe(body, "text", &[json!({"verbosity": "low"}),
            json!({"format": {"type": "json_schema", "name": "n", "strict": true, "schema": schema()}})]);
        self.maybe(body, "include", &[json!(["reasoning.encrypted_content"])]);
        self.maybe(body, "instructions", &[json!("Be brief.")]);
        self.maybe(body, "user", &[json!("u"), json!("x".repeat(120))]);
        self.maybe(body, "prompt_cache_key", &[json!("k")]);
        self.maybe(body, "service_tier", &[json!("auto"), json!("flex")]);
        self.maybe(body, "metadata", &[json!({"a": "b"})]);
        self.maybe(body, "store", &[json!(false)]);
        if self.dice.once_in(2) {
            let tool = |(name, schema): (&str, Value)| json!({"type": "function", "name": name, "parameters": schema});
            let tools: Vec<_> = self.tools().into_iter().map(tool).collect();
            body.insert("tools".to_owned(), tools.into());
            self.maybe(
                body,
                "tool_choice",
                &[
                    json!("auto"),
                    json!("none"),
                    json!("required"),
                    json!({"type": "function", "name": "look_up"}),
                ],
            );
            self.maybe(body, "parallel_tool_calls", &[json!(false)]);
        }
        let turns = [
            json!({"role": "developer", "content": "Be brief."}),
            json!({"role": "user", "content": [{"type": "input_text", "text": self.text}]}),
            json!({"role": "user", "content": "B."}),
            json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Thought."}], "encrypted_content": "c2VhbA=="}),
            json!({"type": "function_call", "call_id": "call_1", "name": "look_up", "arguments": "{\"a\":1}"}),
            json!({"type": "function_call_output", "call_id": "call_1", "output": "4 C"}),
            json!({"role": "developer", "content": "Hurry."}),
            json!({"role": "assistant", "content": "It is"}),
            json!({"role": "user", "content": "So?"}),
        ];
        body.insert("input".to_owned(), self.conversation(turns));
    }

    /// The first turns, so many that there is one of the user, which may be cut anywhere behind it.
    fn conversation<const N: usize>(&mut self, turns: [Value; N]) -> Value {
        let is_user = |turn: &Value| turn["role"] == "user";
        let least = 1 + turns.iter().position(is_user).unwrap();
        let length = self.dice.among(least..N + 1);
        turns[..length].to_vec().into()
    }

    fn tools(&mut self) -> Vec<(&'static str, Value)> {
        let schemas = [
            json!({"type": "object", "properties": {"b": {"type": "array"}}}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"b": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "additionalProperties": false}),
            json!({"properties": {"b": {"type": "integer", "minimum": 1}}}),
            json!({"properties": {"b": {"type": ["string", "boolean"], "anyOf": [{"type": "string"}, {"type": "boolean"}]}}}),
        ];
        let odd = self.dice.one(&schemas);
        vec![("look_up", schema()), ("mcp__server__tool-1", odd.clone())]
    }
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]})
}

fn mark() -> Value {
    json!({"type": "ephemeral"})
}

/// As many as OpenAI takes. No simulated answer has one of them.
const STOPS: [&str; 4] = ["END", "###", "</s>", "STOP"];
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
