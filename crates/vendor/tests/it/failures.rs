//! Tests of the classification of upstream errors, and of the texts that reach clients and logs.

use engine::{EngineError, Rejection};
use proptest::prelude::*;
use serde_json::{Value, json};
use sluicegate_vendor::failure;
use wire::ContextOverflow;

fn classify(status: u16, body: &Value) -> EngineError {
    failure(status, body.to_string().as_bytes(), None)
}

fn rejected(status: u16, body: &Value) -> (Rejection, Option<String>, String) {
    match classify(status, body) {
        EngineError::Rejected {
            why,
            param,
            message,
            ..
        } => (why, param, message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn statuses_show_whose_fault_it_is() {
    use EngineError::{
        Account, Misconfigured, Overloaded, RateLimited, Rejected, Timeout, Upstream,
    };
    let html = b"<html><h1>Bad Gateway</h1></html>";
    for body in [&html[..], b"", b"{}", b"[]", b"null", b"\xff"] {
        assert!(matches!(
            failure(400, body, None),
            Rejected {
                why: Rejection::Invalid,
                ..
            }
        ));
        assert!(matches!(
            failure(422, body, None),
            Rejected {
                why: Rejection::Invalid,
                ..
            }
        ));
        assert!(matches!(
            failure(413, body, None),
            Rejected {
                why: Rejection::TooLarge,
                ..
            }
        ));
        assert!(matches!(
            failure(429, body, Some(7)),
            RateLimited {
                retry_after: Some(7),
                ..
            }
        ));
        assert!(matches!(
            failure(503, body, Some(3)),
            Overloaded {
                retry_after: Some(3),
                ..
            }
        ));
        assert!(matches!(
            failure(529, body, None),
            Overloaded {
                retry_after: None,
                ..
            }
        ));
        assert!(matches!(failure(408, body, None), Timeout(_)));
        assert!(matches!(failure(504, body, None), Timeout(_)));
        for status in [522, 524] {
            assert!(matches!(failure(status, body, None), Timeout(_)));
        }
        for status in [301, 401, 402, 403, 404, 405, 409, 500, 502, 520] {
            let text = match (failure(status, body, None), status) {
                (Misconfigured(text), 301 | 401 | 403 | 404 | 405)
                | (Upstream(text), 409 | 500..)
                | (
                    Account {
                        quota: None,
                        cause: text,
                    },
                    402,
                ) => text,
                (error, _) => panic!("{status}: {error}"),
            };
            assert!(
                text.contains(&status.to_string()) && !text.contains("html"),
                "{text}"
            );
        }
    }
}

#[test]
fn our_own_answers_are_understood() {
    let openai = include_str!("fixtures/errors-openai-style.json");
    let anthropic = include_str!("fixtures/errors-messages-style.json");
    for cases in [openai, anthropic] {
        let cases: Vec<Value> = serde_json::from_str(cases).unwrap();
        for case in cases {
            let status = u16::try_from(case["status"].as_u64().unwrap()).unwrap();
            let message = case["body"]["error"]["message"].as_str().unwrap();
            if let EngineError::Rejected {
                message: kept,
                param,
                ..
            } = classify(status, &case["body"])
            {
                assert_eq!(kept, message);
                assert_eq!(param.as_deref(), case["body"]["error"]["param"].as_str());
            } else {
                assert!(![400, 413, 422].contains(&status), "{case}");
            }
        }
    }
}

#[test]
fn shapes_of_errors() {
    let bodies = [
        json!({"error": {"message": "Bad field.", "type": "invalid_request_error", "param": "x", "code": null}}),
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": "Bad field."}}),
        json!({"object": "error", "message": "Bad field.", "type": "BadRequestError", "param": null, "code": 400}),
        json!({"error": "Bad field."}),
        json!({"detail": "Bad field."}),
        json!({"detail": [{"loc": ["body", "x"], "msg": "Bad field."}]}),
        json!([{"error": {"code": 400, "message": "Bad field.", "status": "INVALID_ARGUMENT"}}]),
        json!("Bad field."),
    ];
    for body in bodies {
        let (why, _, message) = rejected(400, &body);
        assert_eq!(
            (why, message.as_str()),
            (Rejection::Invalid, "Bad field."),
            "{body}"
        );
    }
}

#[test]
fn rejections_are_recognized_by_code_or_by_message() {
    let error = |code: &str, message: &str| json!({"error": {"code": code, "message": message, "param": "messages"}});
    for (code, message, why) in [
        (
            "context_length_exceeded",
            "Too much.",
            Rejection::ContextLength(ContextOverflow::default()),
        ),
        (
            "",
            "This model's maximum context length is 8192 tokens.",
            Rejection::ContextLength(ContextOverflow::default()),
        ),
        (
            "",
            "prompt is too long: 210000 tokens > 200000 maximum",
            Rejection::ContextLength(ContextOverflow {
                prompt: Some(210_000),
                output: None,
                limit: Some(200_000),
            }),
        ),
        ("content_policy_violation", "No.", Rejection::ContentPolicy),
        ("content_filter", "No.", Rejection::ContentPolicy),
        (
            "",
            "Your request was rejected by our safety system.",
            Rejection::ContentPolicy,
        ),
        ("request_too_large", "Too large.", Rejection::TooLarge),
        ("invalid_value", "No such value.", Rejection::Invalid),
    ] {
        assert_eq!(
            rejected(400, &error(code, message)),
            (why, Some("messages".to_owned()), message.to_owned())
        );
    }
}

fn reported(error: &EngineError) -> (Option<&str>, Option<&str>) {
    let reported = match error {
        EngineError::Rejected { reported, .. }
        | EngineError::RateLimited { reported, .. }
        | EngineError::Overloaded { reported, .. }
        | EngineError::Failed { reported, .. } => reported.as_deref(),
        _ => None,
    };
    let words = reported.map(|reported| (reported.code.as_deref(), reported.kind.as_deref()));
    words.unwrap_or_default()
}

#[test]
fn the_words_of_the_vendor_are_kept_with_each_status() {
    let body = json!({"error": {"message": "m", "code": "their_code", "type": "their_type"}});
    for status in [400, 413, 422, 429, 500, 502, 503, 529] {
        let error = classify(status, &body);
        assert_eq!(
            reported(&error),
            (Some("their_code"), Some("their_type")),
            "{status}: {error:?}"
        );
    }
    // Those about the operator's key and account are not for clients.
    for status in [401, 402, 403, 404] {
        assert_eq!(reported(&classify(status, &body)), (None, None), "{status}");
    }
}

#[test]
fn numbers_of_statuses_and_sentences_are_no_codes() {
    for code in [
        json!(400),
        json!("429"),
        json!("The caller has no permission"),
        json!("sk-abcdefgh"),
    ] {
        let body = json!({"error": {"message": "m", "code": code, "type": "error"}});
        assert_eq!(reported(&classify(400, &body)), (None, None), "{body}");
    }
    let own = json!({"error": {"message": "m", "code": "1214"}});
    assert_eq!(reported(&classify(400, &own)), (Some("1214"), None));
}

/// Nothing about the operator's account is for clients; that a quota is used up they know by its
/// code, which vendors send with status 429 and within streams.
#[test]
fn an_account_without_credit_is_not_the_clients_fault() {
    let quota = |error| match error {
        EngineError::Account { quota, cause } => (quota.map(wire::StreamCode::as_str), cause),
        error => panic!("{error:?}"),
    };
    let spent = json!({"error": {"message": "You exceeded your current quota, please check your plan \
        and billing details.", "type": "insufficient_quota", "code": "insufficient_quota"}});
    let disabled = json!({"type": "error", "error": {"type": "invalid_request_error",
        "message": "This organization has been disabled."}});
    for (status, body, code) in [
        (429, &spent, Some("insufficient_quota")),
        (403, &spent, None),
        (400, &disabled, None),
        (429, &disabled, Some("insufficient_quota")),
    ] {
        let (found, cause) = quota(classify(status, body));
        assert_eq!(found, code, "{status} {body}");
        assert!(
            cause.starts_with("account disabled or without credit, status "),
            "{cause}"
        );
        assert!(!cause.contains("organization"), "{cause}");
    }
}

#[test]
fn a_message_of_which_nothing_is_left_is_replaced() {
    let body = json!({"error": {"message": "https://gw.internal:8443/v1", "code": "context_length_exceeded", "param": ""}});
    let (why, param, message) = rejected(400, &body);
    assert_eq!(
        (why, param),
        (Rejection::ContextLength(ContextOverflow::default()), None)
    );
    assert_eq!(message, "The prompt is too long.");
}

/// Errors of an upstream are logged without keys.
#[test]
fn p07_the_log_has_no_keys_either() {
    // A key of a form that the sanitiser does not recognize.
    let body = json!({"error": {"message": "Incorrect API key provided: swordfish.", "code": "invalid_api_key"}});
    let text = classify(401, &body).to_string();
    assert!(
        text.ends_with("authentication failed, status 401: invalid_api_key"),
        "{text}"
    );
}

proptest! {
    /// Keys and accounts in an error of an upstream are never forwarded.
    #[test]
    fn p07_canaries_never_come_out(
        key in "(sk-|sk-ant-|org-)[A-Za-z0-9_-]{8,40}", status in 400..600_u16, words in "[a-z \"{},\n]{0,30}",
    ) {
        let message = format!("{words} {key} {words}");
        let shapes = [
            json!({"error": {"message": message, "type": key, "param": key, "code": key}}),
            json!({"type": "error", "error": {"type": "x", "message": message}}),
            json!({ "detail": message }),
            json!({ "error": message }),
        ];
        for body in shapes {
            let error = classify(status, &body);
            let everything = format!("{error:?} {error}");
            prop_assert!(!everything.contains(&key), "{}", everything);
        }
    }

    #[test]
    fn any_bytes_are_a_failure(status in 0..1000_u16, body in proptest::collection::vec(any::<u8>(), 0..99)) {
        if let EngineError::Rejected { message, .. } = failure(status, &body, None) {
            prop_assert!(!message.is_empty() && message.chars().count() <= 500);
        }
    }
}
