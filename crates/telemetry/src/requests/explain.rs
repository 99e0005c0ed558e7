//! The explanation of a finished request in sentences, for the command line and the console alike.

use super::report::{Admission, AttemptReport, AttemptResult, RequestReport, Road};

impl RequestReport {
    /// Explains the request: who sent it, which limits admitted or refused it, which targets were tried,
    /// what was dropped, what it cost, and how it ended. One sentence or two a line.
    pub fn explanation(&self) -> Vec<String> {
        let mut lines = vec![self.opening()];
        match &self.admission {
            None => lines.push("It ended before any limit was asked.".to_owned()),
            Some(admission) => lines.extend(admission.explanation()),
        }
        let attempts = self.attempts.iter().enumerate();
        lines.extend(attempts.map(|(index, attempt)| attempt.explanation(index + 1)));
        if !self.left_out.is_empty() {
            let kinds = self.left_out.join(", ");
            lines.push(format!(
                "The client's protocol cannot express these parts of the answer: {kinds}."
            ));
        }
        lines.extend(self.usage());
        lines.push(self.ending());
        lines
    }

    fn opening(&self) -> String {
        let kind = match self.stream {
            true => "a streaming request",
            false => "a request",
        };
        let model = match &self.model {
            Some(model) => format!(" for the model '{model}'"),
            None => String::new(),
        };
        let trace = match &self.trace {
            Some(trace) => format!(" Its trace: {}.", trace.context.trace),
            None => String::new(),
        };
        let (id, route, key) = (&self.request_id, self.route, &self.key);
        format!("{id}: {kind} to {route} by the key '{key}'{model}.{trace}")
    }

    fn usage(&self) -> Option<String> {
        let (input, output) = (self.input_tokens?, self.output_tokens?);
        let cached = match self.cache_read_tokens {
            Some(cached) if cached > 0 => format!(", {cached} of them from a cache"),
            _ => String::new(),
        };
        let cost = match self.cost {
            Some(cost) => format!("; cost: {cost}"),
            None => "; no cost is known".to_owned(),
        };
        Some(format!(
            "Reported tokens: {input} of the prompt{cached}, {output} of the answer{cost}."
        ))
    }

    fn ending(&self) -> String {
        let (outcome, status, took) = (self.outcome.as_str(), self.status, self.took_ms);
        let code = match self.code {
            Some(code) => format!(", code {code}"),
            None => String::new(),
        };
        let first = match self.first_event_ms {
            Some(first) => format!(", first event after {first:.0} ms"),
            None => String::new(),
        };
        let cause = match &self.cause {
            Some(cause) => format!(" Cause: {cause}."),
            None => String::new(),
        };
        format!("Ended as {outcome} after {took:.0} ms{first}; status {status}{code}.{cause}")
    }
}

impl Admission {
    fn explanation(&self) -> Vec<String> {
        let name = |limit: &super::report::AppliedLimit| match &limit.key {
            Some(key) => format!("'{}' of the key '{key}'", limit.limit),
            None => format!("'{}'", limit.limit),
        };
        let limits: Vec<_> = self.limits.iter().map(name).collect();
        let limits = limits.join(", ");
        let mut lines = Vec::new();
        if let Some(waited) = self.queued_ms {
            lines.push(format!("It waited {waited:.0} ms in a queue."));
        }
        lines.push(match &self.refused_by {
            Some(refused) => {
                let (limit, dimension) = (&refused.limit, refused.dimension);
                let retry = match refused.retry_after_ms {
                    Some(after) => format!("; the same request fits after {after} ms"),
                    None => String::new(),
                };
                let mut line = format!("Refused by the limit '{limit}' ({dimension}){retry}.");
                if !limits.is_empty() {
                    line += &format!(" These limits apply: {limits}.");
                }
                line
            }
            None if self.limits.is_empty() => {
                "Admitted by the limits of the process; no other one applies.".to_owned()
            }
            None if self.reserved_tokens > 0 => {
                let reserved = self.reserved_tokens;
                format!("Admitted by {limits}; {reserved} tokens were reserved.")
            }
            None => format!("Admitted by {limits}."),
        });
        if self.degraded {
            lines.push(
                "The store of a shared limit did not answer, or was in quarantine.".to_owned(),
            );
        }
        lines
    }
}

impl AttemptReport {
    fn explanation(&self, number: usize) -> String {
        let road = match self.road {
            Road::Relayed => "relayed",
            Road::Translated => "translated",
            Road::Embedded => "in this process",
        };
        let target = &self.target;
        let model = match &self.model {
            Some(model) => format!(" as '{model}'"),
            None => String::new(),
        };
        let took = self.answered_ms - self.started_ms;
        let mut line = format!("Attempt {number}: '{target}'{model}, {road}");
        line += &match (self.result, self.code) {
            (AttemptResult::Answered, _) => format!(", began to answer after {took:.0} ms."),
            (AttemptResult::CircuitOpen, _) => {
                ", not asked: its circuit breaker is open.".to_owned()
            }
            (AttemptResult::Cancelled, _) => {
                format!(", cancelled after {took:.0} ms: another target has answered first.")
            }
            (AttemptResult::Failed, code) => {
                format!(
                    ", failed after {took:.0} ms with {}.",
                    code.unwrap_or("an error")
                )
            }
        };
        if let Some(cause) = &self.cause {
            line += &format!(" Cause: {cause}.");
        }
        if let Some(id) = &self.upstream_request_id {
            line += &format!(" Its id there: {id}.");
        }
        if !self.dropped.is_empty() {
            line += &format!(" Dropped fields: {}.", self.dropped.join(", "));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use crate::outcome::Outcome;
    use crate::requests::report::{AppliedLimit, RefusingLimit};

    use super::*;

    fn attempt(target: &str, result: AttemptResult) -> AttemptReport {
        AttemptReport {
            target: target.to_owned(),
            model: None,
            road: Road::Relayed,
            result,
            code: None,
            cause: None,
            upstream_request_id: None,
            dropped: Vec::new(),
            started_ms: 1.0,
            answered_ms: 31.0,
        }
    }

    fn report() -> RequestReport {
        let limit = |limit: &str, key: Option<&str>| AppliedLimit {
            limit: limit.to_owned(),
            key: key.map(Into::into),
        };
        RequestReport {
            admission: Some(Box::new(Admission {
                limits: vec![limit("all keys", None), limit("key *", Some("team"))],
                ..Admission::default()
            })),
            ..RequestReport::completed("req_1".to_owned())
        }
    }

    #[test]
    fn a_fallback_is_explained_with_its_attempts_and_losses() {
        let mut report = report();
        report.attempts = vec![
            AttemptReport {
                code: Some("upstream_error"),
                cause: Some("connection reset".to_owned()),
                ..attempt("first", AttemptResult::Failed)
            },
            attempt("second", AttemptResult::CircuitOpen),
            AttemptReport {
                model: Some("qwen3".to_owned()),
                road: Road::Translated,
                dropped: vec!["top_k".to_owned()],
                upstream_request_id: Some("abc".to_owned()),
                ..attempt("third", AttemptResult::Answered)
            },
        ];
        (report.input_tokens, report.output_tokens) = (Some(71), Some(13));
        report.cache_read_tokens = Some(30);
        report.first_event_ms = Some(40.0);
        assert_eq!(
            report.explanation(),
            [
                "req_1: a streaming request to messages by the key 'team' for the model 'small'.",
                "Admitted by 'all keys', 'key *' of the key 'team'.",
                "Attempt 1: 'first', relayed, failed after 30 ms with upstream_error. Cause: connection reset.",
                "Attempt 2: 'second', relayed, not asked: its circuit breaker is open.",
                "Attempt 3: 'third' as 'qwen3', translated, began to answer after 30 ms. Its id there: abc. \
                 Dropped fields: top_k.",
                "Reported tokens: 71 of the prompt, 30 of them from a cache, 13 of the answer; no cost is known.",
                "Ended as completed after 412 ms, first event after 40 ms; status 200.",
            ]
        );
    }

    #[test]
    fn a_refusal_is_explained_with_its_limit() {
        let mut report = report();
        let admission = report.admission.as_mut().unwrap();
        admission.queued_ms = Some(2000.0);
        admission.refused_by = Some(RefusingLimit {
            limit: "key *".into(),
            dimension: "requests_per_minute",
            retry_after_ms: Some(1500),
        });
        (report.outcome, report.status) = (Outcome::Shed, 429);
        report.code = Some("rate_limit_exceeded");
        assert_eq!(
            report.explanation()[1..],
            [
                "It waited 2000 ms in a queue.",
                "Refused by the limit 'key *' (requests_per_minute); the same request fits after 1500 ms. \
                 These limits apply: 'all keys', 'key *' of the key 'team'.",
                "Ended as shed after 412 ms; status 429, code rate_limit_exceeded.",
            ]
        );
        report.admission = None;
        assert_eq!(
            report.explanation()[1],
            "It ended before any limit was asked."
        );
    }
}
