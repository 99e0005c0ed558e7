//! The embedded model's handling of conversations: instructions, earlier turns, results of
//! functions. It is the same over each protocol, and does not depend on a gateway in between.

mod responses {
    use serde_json::json;

    use crate::responses::{both, text_of, user, weather};

    #[test]
    fn instructions_and_system_items_are_heeded() {
        let question = user("What is the secret word?");
        let word = "The secret word is banana.";
        let reply = both(json!({"instructions": word, "input": [question]}));
        assert!(text_of(&reply).to_lowercase().contains("banana"), "{reply}");
        for role in ["system", "developer"] {
            let reply = both(json!({"input": [{"role": role, "content": word}, question]}));
            assert!(
                text_of(&reply).to_lowercase().contains("banana"),
                "{role}: {reply}"
            );
        }
    }

    #[test]
    fn model_sees_the_history_in_the_request() {
        let answer = json!({"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
            "content": [{"type": "output_text", "text": "Hello, Ada!", "annotations": []}]});
        let reply =
            both(json!({"input": [user("My name is Ada."), answer, user("What is my name?")]}));
        assert!(text_of(&reply).contains("Ada"), "{reply}");
    }

    #[test]
    fn the_result_of_a_function_is_answered_from() {
        let call = json!({"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{\"city\":\"Oslo\"}"});
        let result = json!({"type": "function_call_output", "call_id": "call_1", "output": "{\"temperature_celsius\": 17}"});
        let input = json!([user("What is the temperature in Oslo?"), call, result]);
        let reply = both(json!({"input": input, "tools": [weather()]}));
        assert!(text_of(&reply).contains("17"), "{reply}");
    }
}

mod chat {
    use serde_json::json;

    use crate::chat::{both, text_of, user, weather};

    #[test]
    fn system_text_in_both_forms() {
        for role in ["system", "developer"] {
            let reply = both(
                json!({"messages": [{"role": role, "content": "The secret word is banana."}, user("What is the secret word?")]}),
            );
            assert!(
                text_of(&reply).to_lowercase().contains("banana"),
                "{role}: {reply}"
            );
        }
    }

    #[test]
    fn model_sees_the_history_in_the_request() {
        let messages = json!([user("My name is Ada."), {"role": "assistant", "content": "Hello, Ada!"}, user("What is my name?")]);
        assert!(text_of(&both(json!({ "messages": messages }))).contains("Ada"));
    }

    #[test]
    fn the_result_of_a_function_is_answered_from() {
        let call = json!({"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\":\"Oslo\"}"}});
        let messages = json!([
            user("What is the temperature in Oslo?"),
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "{\"temperature_celsius\": 17}"},
        ]);
        let reply = both(json!({"messages": messages, "tools": [weather()]}));
        assert!(text_of(&reply).contains("17"), "{reply}");
    }
}

mod messages {
    use serde_json::json;

    use crate::messages::{both, text_of, user, weather};

    #[test]
    fn system_text_in_both_forms() {
        let word = "The secret word is banana.";
        for system in [
            json!(word),
            json!([{"type": "text", "text": word, "cache_control": {"type": "ephemeral"}}]),
        ] {
            let reply =
                both(json!({"system": system, "messages": [user("What is the secret word?")]}));
            assert!(text_of(&reply).to_lowercase().contains("banana"), "{reply}");
        }
    }

    #[test]
    fn model_sees_the_history_in_the_request() {
        let answer =
            json!({"role": "assistant", "content": [{"type": "text", "text": "Hello, Ada!"}]});
        let reply =
            both(json!({"messages": [user("My name is Ada."), answer, user("What is my name?")]}));
        assert!(text_of(&reply).contains("Ada"), "{reply}");
    }

    #[test]
    fn the_result_of_a_function_is_answered_from() {
        let call = json!({"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}});
        for content in [
            json!("{\"temperature_celsius\": 17}"),
            json!([{"type": "text", "text": "{\"temperature_celsius\": 17}"}]),
        ] {
            let result =
                json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": content}]);
            let called = json!({"role": "assistant", "content": [call]});
            let messages = json!([
                user("What is the temperature in Oslo?"),
                called,
                user(result)
            ]);
            let reply = both(json!({"messages": messages, "tools": [weather()]}));
            assert!(text_of(&reply).contains("17"), "{reply}");
        }
    }
}
