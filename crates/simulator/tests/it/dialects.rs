//! Replies in the form of real servers.

use serde_json::json;
use sluicegate_simulator::{Simulator, dialect};
use testkit::Connection;
use testkit::requests::Question;

/// A server, a request, and a part of its stream that a conforming server does not send.
type Form = (&'static str, Question, &'static str);

#[test]
fn each_server_is_recognised_by_its_form() {
    let names: Vec<_> = dialect::all().iter().map(|known| known.name).collect();
    assert_eq!(names, FORMS.map(|(name, ..)| name));
    for (known, (name, question, part)) in dialect::all().iter().zip(FORMS) {
        let own = stream(known, name, question);
        assert!(own.contains(part), "{name}: {own}");
        let conforming = stream(known, "any", question);
        assert!(!conforming.contains(part), "{name}: {conforming}");
    }
}

/// The stream from a server whose path begins with this segment.
fn stream(known: &dialect::Dialect, segment: &str, question: Question) -> String {
    let server = Simulator::honest().unwrap();
    let mut client = Connection::open(server.address());
    let mut body = question.body(known.protocol(), "any", true);
    body["stream_options"] = json!({"include_usage": true, "include_obfuscation": false});
    let path = testkit::requests::path(known.protocol());
    client.post(&format!("/{segment}{path}"), &body);
    client.response().text().to_owned()
}

const FORMS: [Form; 16] = [
    (
        "azure",
        Question::Text,
        r#"{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results""#,
    ),
    ("deepseek", Question::Text, FINISH_WITH_USAGE),
    (
        "mistral",
        Question::Reasoning,
        r#""content":[{"type":"thinking","thinking":[{"#,
    ),
    ("groq", Question::Text, r#""x_groq":{"id":"#),
    (
        "xai",
        Question::Text,
        r#""content":"You","role":"assistant""#,
    ),
    (
        "openrouter",
        Question::Text,
        r#""native_finish_reason":"stop""#,
    ),
    (
        "gemini",
        Question::ParallelTools,
        r#""tool_calls":[{"id":"call_00000000000000000000","type""#,
    ),
    ("together", Question::Text, r#""seed":1"#),
    ("fireworks", Question::Text, FINISH_WITH_USAGE),
    (
        "ollama",
        Question::ParallelTools,
        r#""arguments":"{\"city\":\"example\"}""#,
    ),
    ("vllm", Question::Reasoning, r#""delta":{"reasoning":""#),
    ("sglang", Question::Text, r#""matched_stop":null"#),
    ("llama-cpp", Question::Text, r#""timings":{"prompt_n""#),
    ("lm-studio", Question::Text, r#""system_fingerprint":null"#),
    (
        "bedrock",
        Question::Text,
        r#""amazon-bedrock-invocationMetrics""#,
    ),
    ("vertex", Question::Text, r#""id":"msg_vrtx_"#),
];
const FINISH_WITH_USAGE: &str = r#""finish_reason":"stop"}],"usage":{"prompt_tokens""#;
