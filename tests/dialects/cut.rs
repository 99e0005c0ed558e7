//! Streams that are cut after each of their events: the log has the usage that the server had
//! reported by then, of all attempts together.

use std::sync::Arc;

use testkit::dialects::{Case, Mode};
use testkit::reading::{Reading, Usage};
use testkit::{Gateway, Response, in_parallel, log};

use crate::player::Player;
use crate::{Visit, gateway, player, visits};

#[test]
fn cut_streams_have_used_what_was_reported() {
    check_cuts(Case::all());
}

#[test]
fn cut_recorded_streams_have_used_what_was_reported() {
    check_cuts(Case::recorded());
}

/// The log has the usage that a recorded reply reports, whatever the protocol of the client.
#[test]
fn recorded_replies_have_used_what_they_report() {
    let cases = Arc::new(Case::recorded());
    let mut replies = visits(&cases);
    replies.retain(|visit| visit.mode == Mode::Plain && !visit.case.body(Mode::Plain).1);
    let gateway = gateway(&replies, &Player::start(Arc::clone(&cases)).url);
    let wrong: Vec<_> = in_parallel(&replies, |visit| visit.differs(&gateway));
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(
        !replies.is_empty() && wrong.is_empty(),
        "{}",
        wrong.join("\n")
    );
}

fn check_cuts(cases: Vec<Case>) {
    let cases = Arc::new(cases);
    let streams: Vec<_> = visits(&cases)
        .into_iter()
        .filter(|visit| visit.mode == Mode::Stream && visit.case.body(Mode::Stream).1)
        .filter(|visit| visit.case.wire.status.is_none_or(|status| status == 200))
        .collect();
    let player = Player::start(Arc::clone(&cases));
    let gateway = gateway(&streams, &player.url);
    let wrong: Vec<String> = in_parallel(&streams, |visit| visit.cuts(&gateway, &player))
        .into_iter()
        .flatten()
        .collect();
    assert!(
        !streams.is_empty() && wrong.is_empty(),
        "{}",
        wrong.join("\n")
    );
}

impl Visit<'_> {
    /// Requests the plain reply, and returns how the log differs.
    fn differs(&self, gateway: &Gateway) -> Option<String> {
        let response = gateway.ask(self.client, &self.body("Hello."));
        let found = used(gateway, &response);
        let reading = Reading::of(self.case.protocol, self.case.body(Mode::Plain).0, true, 1);
        let owed = reading.usage.map(Usage::totals).unwrap_or_default();
        let (name, status) = (self.name(), response.status);
        (found != owed).then(|| format!("{name}, {status}: {found:?} instead of {owed:?}"))
    }

    /// Requests the stream with each of its cuts, and returns how the log differs.
    fn cuts(&self, gateway: &Gateway, player: &Player) -> Vec<String> {
        let (body, _) = self.case.body(Mode::Stream);
        let ends = player::event_ends(body);
        let (mut owed, mut wrong) = ([0; 2], Vec::new());
        for (event, end) in ends.iter().enumerate() {
            owed = self.reported(event, &body[..*end], owed);
            let body = self.body(&player::prompt_to_cut_after(event));
            let response = gateway.ask(self.client, &body);
            let found = used(gateway, &response);
            let attempts = player.attempts(&self.model(), event);
            let all = owed.map(|count| count * attempts);
            if found != all {
                let (name, status) = (self.name(), response.status);
                wrong.push(format!(
                    "{name}, cut after event {event}, {status}: {found:?} instead of {all:?}"
                ));
            }
        }
        wrong
    }

    /// Returns the tokens of input and output that were reported up to this event, with which the
    /// stream ends: the largest of all. `before` are those up to the event before.
    fn reported(&self, event: usize, stream: &[u8], before: [u64; 2]) -> [u64; 2] {
        let is_case = |name: &str| self.case.name == name;
        let elsewhere = ELSEWHERE.iter().find(|(name, ..)| is_case(name));
        if let Some((_, _, counts)) = elsewhere.filter(|(_, first, _)| event >= *first) {
            return *counts;
        }
        let left = LEFT_AFTER.iter().find(|(name, _)| is_case(name));
        if left.is_some_and(|(_, last)| event > *last) {
            return before;
        }
        let reading = Reading::of(self.case.protocol, stream, false, 1);
        let [input, output] = reading.usage.map(Usage::totals).unwrap_or_default();
        [before[0].max(input), before[1].max(output)]
    }
}

/// Returns the tokens of input and output in the log.
fn used(gateway: &Gateway, response: &Response) -> [u64; 2] {
    let line = log::line(gateway, response);
    // Servers also report zeros before they know better.
    let found = ["input_tokens", "output_tokens"].map(|name| line[name].as_u64());
    found.map(Option::unwrap_or_default)
}

/// The counts of servers that have them in places of their own, which only some clients read, and the
/// event from which on they are reported.
const ELSEWHERE: [(&str, usize, [u64; 2]); 9] = [
    // The sum of the iterations.
    ("anthropic/compaction", 9, [664, 33]),
    // The sum of the models.
    ("groq/compound", 6, [5_003, 359]),
    // In the last event, which has no blank line after it.
    ("llama-cpp/done-without-blank-line", 3, [8, 3]),
    // In the choice.
    ("moonshot/usage-in-choice", 2, [9, 2]),
    // Beside the error.
    ("openrouter/limit-then-error", 3, [43, 10]),
    // Without the reasoning, which is beside the answer.
    ("xai/text", 5, [12, 42]),
    ("xai/tool-call", 3, [12, 42]),
    // Beside a picture that is cut or empty.
    ("openai-images/cut-picture", 1, [9, 100]),
    ("openai-images/empty-picture", 1, [9, 100]),
];

/// The last event that is read of streams that contradict themselves.
const LEFT_AFTER: [(&str, usize); 7] = [
    ("anthropic/fault-lost-block-start", 2),
    ("anthropic/fault-no-message-start", 2),
    ("anthropic/fault-spliced-streams", 6),
    ("openai-responses/fault-argument-deltas", 6),
    ("openai-responses/fault-deltas-against-done", 9),
    ("openai-responses/fault-lost-event", 7),
    // An edit, for which nobody has asked.
    ("recorded/images-stream-edit.sse", 0),
];
