//! Function calls.

use engine::{
    AssistantPart, EngineError, Stop, TextEngine, TextRequest, Tool, ToolCall, ToolChoice,
    ToolResult,
};
use engine::{Turn, UserPart};
use serde_json::{Value, json};

use super::{ENGINE, Output, multi_turn, run, single_turn, user};

fn weather() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string" },
            "unit": { "type": "string", "enum": ["celsius", "fahrenheit"] },
        },
        "required": ["city", "unit"],
    });
    tool(
        "get_weather",
        "Get the current weather of a city",
        Some(parameters),
    )
}

fn tool(name: &str, description: &str, parameters: Option<Value>) -> Tool {
    let parameters = parameters.map(Into::into);
    Tool {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        parameters,
        strict: None,
    }
}

fn tools() -> Vec<Tool> {
    vec![tool("stop_clock", "Stop the clock", None), weather()]
}

fn with(tool_choice: ToolChoice, question: &str) -> TextRequest {
    TextRequest {
        tools: tools(),
        tool_choice,
        max_output_tokens: Some(256),
        ..single_turn(question)
    }
}

/// The arguments of a complete call of this function.
fn called(output: &Output, name: &str) -> Value {
    assert_eq!(output.stop, Some(Stop::ToolCalls), "{output:?}");
    let (id, found) = output.call.as_ref().unwrap();
    assert_eq!(found, name);
    let random = id.strip_prefix("call_").unwrap();
    assert!(
        random.len() == 24 && random.chars().all(|letter| letter.is_ascii_alphanumeric()),
        "{id}"
    );
    serde_json::from_str(&output.arguments).unwrap()
}

fn is_weather(arguments: &Value) -> bool {
    let unit = arguments["unit"].as_str().unwrap();
    arguments["city"].is_string() && ["celsius", "fahrenheit"].contains(&unit)
}

#[tokio::test]
async fn a_named_function_is_called() {
    let named = ToolChoice::Named("get_weather".to_owned());
    let output = run(with(named, "Tell me a joke.")).await.unwrap();
    assert!(is_weather(&called(&output, "get_weather")), "{output:?}");
    assert!(output.text.is_empty());
}

#[tokio::test]
async fn a_function_without_parameters_gets_an_empty_object() {
    let output = run(with(ToolChoice::Named("stop_clock".to_owned()), "Stop!"))
        .await
        .unwrap();
    assert_eq!(called(&output, "stop_clock"), json!({}));
}

#[tokio::test]
async fn some_function_is_called_if_one_must_be() {
    let output = run(with(ToolChoice::Required, "Hello there."))
        .await
        .unwrap();
    let (_, name) = output.call.clone().unwrap();
    assert!(called(&output, &name).is_object());
}

#[tokio::test]
async fn a_question_for_a_function_calls_it() {
    let output = run(with(ToolChoice::Auto, "What is the weather in Paris?"))
        .await
        .unwrap();
    let arguments = called(&output, "get_weather");
    assert!(
        is_weather(&arguments) && arguments["city"].as_str().unwrap().contains("Paris"),
        "{output:?}"
    );
}

#[tokio::test]
async fn another_question_is_answered() {
    let output = run(with(ToolChoice::Auto, "What is two plus two?"))
        .await
        .unwrap();
    assert!(
        output.call.is_none() && !output.text.is_empty(),
        "{output:?}"
    );
    let output = run(with(ToolChoice::None, "What is the weather in Paris?"))
        .await
        .unwrap();
    assert!(
        output.call.is_none() && !output.text.is_empty(),
        "{output:?}"
    );
}

#[tokio::test]
async fn a_slight_likeness_is_decided_by_the_model() {
    // Both questions share exactly one word with the functions, `city`, so their score is the same.
    let output = run(with(ToolChoice::Auto, "Is it raining in the city?"))
        .await
        .unwrap();
    assert!(is_weather(&called(&output, "get_weather")), "{output:?}");
    let output = run(with(
        ToolChoice::Auto,
        "Which city is the capital of France?",
    ))
    .await
    .unwrap();
    assert!(
        output.call.is_none() && output.text.contains("Paris"),
        "{output:?}"
    );
}

#[tokio::test]
async fn a_result_is_used_in_the_answer() {
    let (id, name) = ("call_1".to_owned(), "get_weather".to_owned());
    let arguments = "{\"city\": \"Paris\", \"unit\": \"celsius\"}".to_owned();
    let content = vec![UserPart::Text(
        "{\"temperature\": 17, \"sky\": \"cloudy\"}".to_owned(),
    )];
    let turns = vec![
        user("What is the weather in Paris?"),
        Turn::Assistant(vec![AssistantPart::Call(ToolCall {
            id: id.clone(),
            name,
            arguments,
            seal: None,
        })]),
        Turn::Tool(ToolResult {
            call_id: id,
            content,
            is_error: false,
        }),
    ];
    let output = run(TextRequest {
        tools: tools(),
        ..multi_turn(turns)
    })
    .await
    .unwrap();
    assert!(
        output.text.contains("17") || output.text.contains("cloudy"),
        "{output:?}"
    );
}

#[tokio::test]
async fn arguments_that_the_cap_cuts_are_not_finished() {
    let named = ToolChoice::Named("get_weather".to_owned());
    let output = run(TextRequest {
        max_output_tokens: Some(2),
        ..with(named, "Paris?")
    })
    .await
    .unwrap();
    assert_eq!(
        (output.stop, output.usage.output),
        (Some(Stop::MaxTokens), 2)
    );
}

#[tokio::test]
async fn a_function_that_is_not_there_is_refused() {
    let refused = ENGINE
        .start(with(ToolChoice::Named("fly".to_owned()), "Fly!"))
        .await
        .err()
        .unwrap();
    let EngineError::Unsupported { param, reason } = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(param.as_deref(), Some("tool_choice"));
    assert_eq!(
        reason,
        "Invalid value for 'tool_choice': no function named 'fly' was specified in the 'tools' parameter."
    );
}

/// The total size of all function schemas is limited, even if each schema is small.
#[tokio::test]
async fn j12_the_schemas_of_all_functions_are_bounded() {
    let members: serde_json::Map<_, _> =
        (0..100).map(|at| (format!("p{at}"), true.into())).collect();
    let schema = json!({ "type": "object", "properties": members });
    let count = async |tools: usize| {
        let tools = (0..tools)
            .map(|at| tool(&format!("tool_{at}"), "", Some(schema.clone())))
            .collect();
        ENGINE
            .count_tokens(TextRequest {
                tools,
                ..with(ToolChoice::Required, "Hi.")
            })
            .await
    };
    assert!(count(2).await.is_ok());
    let EngineError::Unsupported { param, reason } = count(100).await.unwrap_err() else {
        panic!()
    };
    assert_eq!(param.as_deref(), Some("tools"));
    assert_eq!(
        reason,
        "The schemas of the functions have 10300 values, and at most 10000 are accepted."
    );
}
