//! Responses: <https://platform.openai.com/docs/api-reference/responses>.

use serde_json::Value;

use super::{End, Reading, list, text, usage};
use testkit::dialects::{Call, Reason, Usage};

/// Parses a response object.
pub(super) fn reply(response: &Value, reading: &mut Reading) {
    if !response["error"].is_null() {
        return reading.fail(&response["error"]);
    }
    take_output(response, reading);
    reading.usage = counts(&response["usage"]);
    reading.end = end(response);
}

/// A stream of events.
#[derive(Default)]
pub(super) struct Stream {
    /// Texts that were streamed since the last one that was done.
    text: String,
    reasoning: String,
    calls: Vec<(String, String)>,
}

impl Stream {
    pub(super) fn event(&mut self, event: &Value, reading: &mut Reading) {
        let delta = text(event, "delta");
        match text(event, "type") {
            "error" => reading.fail(if event["error"].is_object() {
                &event["error"]
            } else {
                event
            }),
            "response.failed" => reading.fail(&event["response"]["error"]),
            "response.output_text.delta" | "response.refusal.delta" => {
                self.text += delta;
                reading.text += delta;
            }
            "response.output_text.done" => self.text_done(text(event, "text"), reading),
            "response.refusal.done" => self.text_done(text(event, "refusal"), reading),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.reasoning += delta;
                reading.reasoning += delta;
            }
            "response.reasoning_summary_text.done" | "response.reasoning_text.done" => {
                let (streamed, done) = (std::mem::take(&mut self.reasoning), text(event, "text"));
                if streamed.is_empty() {
                    reading.reasoning += done;
                } else {
                    reading.agree("reasoning", &streamed, done);
                }
            }
            "response.function_call_arguments.delta" => match self.calls.last_mut() {
                Some((_, arguments)) => *arguments += delta,
                None => self.calls.push((String::new(), delta.to_owned())),
            },
            "response.output_item.added" if event["item"]["type"] == "function_call" => {
                self.calls
                    .push((text(&event["item"], "name").to_owned(), String::new()));
            }
            "response.output_item.done" if event["item"]["type"] == "function_call" => {
                let item = &event["item"];
                let streamed = self.calls.pop().unwrap_or_default().1;
                if !streamed.is_empty() {
                    reading.agree("arguments", &streamed, text(item, "arguments"));
                }
                reading.call(&item["name"], &item["arguments"]);
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                self.end(&event["response"], reading);
            }
            _ => {}
        }
    }

    fn text_done(&mut self, done: &str, reading: &mut Reading) {
        let streamed = std::mem::take(&mut self.text);
        if streamed.is_empty() {
            reading.text += done;
        } else {
            reading.agree("text", &streamed, done);
        }
    }

    /// Handles the terminal event, whose response may repeat everything.
    fn end(&mut self, response: &Value, reading: &mut Reading) {
        let mut last = Reading::default();
        take_output(response, &mut last);
        let is_repeated = list(response, "output").next().is_some();
        if is_repeated {
            for (what, streamed, closing) in [
                ("text", &mut reading.text, last.text),
                ("reasoning", &mut reading.reasoning, last.reasoning),
            ] {
                if streamed.is_empty() {
                    *streamed = closing;
                } else if !closing.is_empty() && *streamed != closing {
                    reading.problems.push(format!(
                        "{what}: {streamed:?} was streamed, {closing:?} is at the end"
                    ));
                }
            }
            if reading.calls.is_empty() {
                self.calls.clear();
                reading.calls = last.calls;
            } else if reading.calls != last.calls {
                reading.problem(format!(
                    "calls: {:?} were streamed, {:?} are at the end",
                    reading.calls, last.calls
                ));
            }
        }
        reading.usage = counts(&response["usage"]);
        reading.end = end(response);
    }

    pub(super) fn finish(self, reading: &mut Reading) {
        // Calls that are not done count when the stream says that it succeeded.
        let open = self
            .calls
            .into_iter()
            .map(|(name, arguments)| Call { name, arguments });
        if reading.end == End::Complete {
            reading.calls.extend(open);
        }
    }
}

fn take_output(response: &Value, reading: &mut Reading) {
    for item in list(response, "output") {
        match text(item, "type") {
            "message" => {
                let parts = list(item, "content")
                    .flat_map(|part| ["text", "refusal"].map(|name| text(part, name)));
                reading.text.extend(parts);
            }
            "reasoning" => {
                let parts = ["summary", "content"]
                    .map(|name| list(item, name).map(|part| text(part, "text")).collect());
                let shown = parts.into_iter().find(|text: &String| !text.is_empty());
                reading.reasoning += &shown.unwrap_or_default();
            }
            "function_call" => reading.call(&item["name"], &item["arguments"]),
            _ => {}
        }
    }
}

fn counts(counts: &Value) -> Option<Usage> {
    let cached = &counts["input_tokens_details"]["cached_tokens"];
    let reasoning = &counts["output_tokens_details"]["reasoning_tokens"];
    usage(counts, ["input_tokens", "output_tokens"], cached, reasoning)
}

fn end(response: &Value) -> End {
    match (
        text(response, "status"),
        text(&response["incomplete_details"], "reason"),
    ) {
        ("completed", _) => End::Complete,
        ("incomplete", "max_output_tokens") => End::Incomplete(Reason::MaxOutputTokens),
        ("incomplete", "content_filter") => End::Incomplete(Reason::ContentFilter),
        (status, reason) => End::Other(format!("{status} {reason}")),
    }
}
