//! The access record of one request. Logs and counts its outcome exactly once, on drop.

use std::future::poll_fn;
use std::sync::{Arc, PoisonError};
use std::task::Poll;
use std::time::Duration;

use answer::{Asked, Report, Reported};
use catalog::Model;
use http::HeaderMap;
use policy::accounting::{Ended, JournalEntry};
use policy::clock;
use policy::lifecycle::Lifecycle;
use policy::limit::{Attempt, Counts, FinalUsage, Permit, QuotaState};
use policy::revocation::Revocation;
use quota::Money;
use relay::End;
use telemetry::log::AccessLine;
use telemetry::metrics::Metrics;
use telemetry::metrics::gen_ai::{Generation, Tokens};
use telemetry::outcome::Outcome;
use telemetry::requests::history::RequestHistory;
use telemetry::requests::live::{LiveRequest, LiveRequests, Registration};
use telemetry::requests::report::{Admission, ReceivedAt, RequestReport};
use telemetry::traces::context::Hex;
use telemetry::traces::request::RequestTrace;
use tokio::time::Instant;

use crate::background::{Background, Uncharged};
use crate::connection::state::ConnectionState;
use crate::exchange::targets::{self, Targets};

/// The access record of a request, from its head to its last byte. Dropping it writes the log line.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) connection: Arc<ConnectionState>,
    /// The time at which the request was received.
    pub(crate) started: Instant,
    /// The gateway's id of the request.
    pub(crate) id: String,
    /// The client's own id of the request, if it is safe to log.
    pub(crate) client_id: Option<String>,
    /// The request as a part of its trace, if traces are exported.
    pub(crate) trace: Option<Arc<RequestTrace>>,
    /// The endpoint, from a closed list.
    pub(crate) route: &'static str,
    /// The name of the key.
    pub(crate) key: Option<Arc<str>>,
    /// The revocation of the key, if it is a key of the store.
    pub(crate) revocation: Option<Revocation>,
    /// The client's name of the model, once it is known that the catalog serves it.
    pub(crate) model: Option<String>,
    /// The id of the catalog's entry for the model, if that is a pattern.
    pub(crate) pattern: Option<String>,
    pub(crate) status: u16,
    /// The code of the error, if the request failed.
    pub(crate) code: Option<&'static str>,
    /// The internal cause, which the client does not see.
    pub(crate) cause: Option<String>,
    pub(crate) targets: Arc<Targets>,
    pub(crate) stream: bool,
    /// The outcome. A record that is dropped without one means that the client disconnected, or a
    /// panic.
    pub(crate) outcome: Option<Outcome>,
    /// The counts of the answer, once it has ended.
    pub(crate) counts: Counts,
    /// The tokens that the targets have reported, of all attempts together.
    reported: Option<Tokens>,
    /// The usage that the request is charged for, if it matters to any limit or journal.
    settled: Option<engine::Usage>,
    /// The usage and the images that an unbuffered relayed reply reports, known with its last byte.
    pub(crate) relayed: Option<Arc<Reported>>,
    pub(crate) first_event: Option<Instant>,
    /// The permit of the request, released with the last byte.
    pub(crate) permit: Option<Permit>,
    /// The state of the quotas when one of them refused the request.
    pub(crate) refused: Option<Box<QuotaState>>,
    /// The time that the request has waited in queues of quotas, if it has.
    pub(crate) queued: Option<Duration>,
    /// The entry of the request in the journal of usage, if there is one.
    pub(crate) journal: Option<Box<JournalEntry>>,
    /// The decision of the limits, once they were asked.
    pub(crate) admission: Option<Box<Admission>>,
    /// The registration of the request among those in flight.
    pub(crate) live: Option<Registration>,
    /// The cost of the request, if it is known.
    cost: Option<Money>,
    pub(crate) history: Arc<RequestHistory>,
}

impl Record {
    /// Starts the record of a request that was just received.
    pub(crate) fn new(
        metrics: Arc<Metrics>,
        history: Arc<RequestHistory>,
        connection: Arc<ConnectionState>,
        id: String,
    ) -> Self {
        Self {
            metrics,
            history,
            connection,
            started: Instant::now(),
            id,
            client_id: None,
            trace: None,
            route: "other",
            key: None,
            revocation: None,
            model: None,
            pattern: None,
            status: 0,
            code: None,
            cause: None,
            targets: Arc::default(),
            stream: false,
            outcome: None,
            counts: Counts::default(),
            reported: None,
            settled: None,
            relayed: None,
            first_event: None,
            permit: None,
            refused: None,
            queued: None,
            journal: None,
            admission: None,
            live: None,
            cost: None,
        }
    }

    /// Sets the client's name of the model, and the catalog's entry for it.
    pub(crate) fn set_model(&mut self, name: &str, entry: &Model) {
        self.model = Some(name.to_owned());
        self.pattern = entry.prefix().map(|_| entry.id.clone());
    }

    /// Registers the request among those in flight, before the limits are asked.
    pub(crate) fn register(&mut self, requests: &Arc<LiveRequests>, key: &Arc<str>, model: &str) {
        let mut request = LiveRequest::new(
            self.id.clone(),
            self.route,
            Arc::clone(key),
            shortened(model),
        );
        request.started = self.started;
        request.at_ms = self.received_ms();
        request.stream = self.stream;
        let registration = requests.register(request);
        // A request asks its limits once.
        let _ = self.targets.live.set(Arc::clone(registration.request()));
        self.live = Some(registration);
    }

    /// The time at which the request was received, in Unix milliseconds, by the clock.
    fn received_ms(&self) -> i64 {
        let elapsed = i64::try_from(self.started.elapsed().as_millis());
        clock::unix_ms().saturating_sub(elapsed.unwrap_or(i64::MAX))
    }

    /// Adds the headers for the client of the upstream's response: of the one that answers, or of
    /// the last one that has failed.
    pub(crate) fn pass_headers(&self, headers: &mut HeaderMap) {
        let failed = self.targets.passed.read();
        let failed = failed.unwrap_or_else(PoisonError::into_inner);
        let passed = match self.targets.served_by.get() {
            Some(by) => by.meta.passed.as_ref(),
            None => failed.as_ref(),
        };
        for (name, value) in passed.into_iter().flat_map(|passed| passed.iter()) {
            headers.append(name, value.clone());
        }
    }

    /// Notes the end of an answer that its engine brought to its end.
    pub(crate) fn finish(&mut self, end: End) {
        self.counts.usage = end.usage;
        self.end(if end.incomplete {
            Outcome::Incomplete
        } else {
            Outcome::Completed
        });
    }

    /// Waits until the request must be aborted, by a shutdown, by an operator, because the lease of a
    /// quota was lost, or because its key was revoked, and returns its outcome.
    pub(crate) fn aborting(
        &self,
        lifecycle: &Lifecycle,
    ) -> impl Future<Output = Outcome> + Send + use<> {
        let (connection, lifecycle) = (Arc::clone(&self.connection), lifecycle.clone());
        let targets = Arc::clone(&self.targets);
        let revocation = self.revocation.clone();
        let is_revoked = move || revocation.as_ref().is_some_and(Revocation::ends_streams);
        // The others are looked at after the connection is registered to be woken.
        poll_fn(move |cx| match connection.shutdown.poll(cx, &lifecycle) {
            Poll::Ready(abort) => Poll::Ready(abort.into()),
            Poll::Pending if is_revoked() => Poll::Ready(Outcome::Revoked),
            Poll::Pending if targets.is_ended_by_operator() => {
                Poll::Ready(Outcome::EndedByOperator)
            }
            Poll::Pending => Poll::Pending,
        })
    }

    /// Returns the state of the quotas when the request was admitted or refused.
    pub(crate) fn quotas(&self) -> QuotaState {
        match (&self.permit, &self.refused) {
            (Some(permit), _) => permit.quotas(),
            (None, Some(refused)) => **refused,
            (None, None) => QuotaState::default(),
        }
    }

    /// Releases the permit, and counts the usage of the request.
    pub(crate) fn release_permit(&mut self) {
        if let Some(permit) = self.permit.take() {
            if !permit.losses().is_empty() {
                self.connection.shutdown.set_losses(&[]);
            }
            let mut failed = std::mem::take(&mut *self.targets.failed());
            let counts = std::mem::take(&mut self.counts);
            let attempt = |asked, counts| self.attempt(asked, counts, &permit);
            let rival = self.targets.rival();
            failed.extend(rival.and_then(|asked| attempt(asked, Counts::default())));
            let last = attempt(self.targets.current(), counts);
            if let Some((background, id)) = self.goes_on_in_background(&permit, last.as_ref()) {
                return self.leave_to(&background, id, permit, failed);
            }
            // Most requests have one attempt, for which no list is allocated.
            let attempts = if failed.is_empty() {
                last.as_slice()
            } else {
                failed.extend(last);
                &failed
            };
            self.reported = reported(attempts);
            let is_estimated = permit.is_estimated();
            let charge = permit.end(attempts);
            if let Some(hedge) = self.targets.hedge.get() {
                hedge.permit.end();
            }
            if is_estimated {
                self.settled = Some(charge.usage);
                self.cost = charge.cost;
            }
            if let Some(entry) = &mut self.journal {
                entry.charge = charge;
            }
        }
    }

    /// Returns where a response waits for its usage, and its id, if it is made in the background and its
    /// usage is not known yet.
    fn goes_on_in_background(
        &self,
        permit: &Permit,
        last: Option<&Attempt>,
    ) -> Option<(Arc<Background>, String)> {
        let is_charged = match &last?.known {
            FinalUsage::Complete(counts) => counts.usage.is_some(),
            FinalUsage::Partial(_) | FinalUsage::Unfinished(_) => false,
            FinalUsage::Unused => true,
        };
        let place = self.targets.in_background.get();
        place
            .filter(|_| !is_charged && permit.is_estimated())
            .cloned()
    }

    /// Leaves the charge of the request to the retrieval of its response.
    fn leave_to(
        &mut self,
        background: &Background,
        id: String,
        mut permit: Permit,
        failed: Vec<Attempt>,
    ) {
        permit.release_place();
        let place = self.targets.current().place().unwrap_or_default();
        let served_by = self.targets.served_by.get();
        let name = served_by.map_or_else(String::new, |by| by.target.clone());
        let request = Uncharged {
            permit,
            journal: self.journal.take(),
            failed,
            target: (place, name),
            metrics: Arc::clone(&self.metrics),
        };
        background.insert(id, request);
    }

    /// Returns the attempt at a target that has answered, or is still asked.
    fn attempt(&self, asked: &Asked, counts: Counts, permit: &Permit) -> Option<Attempt> {
        let target = asked.place()?;
        let counts = targets::counts_of(asked, counts);
        let known = match self.outcome {
            Some(Outcome::Completed | Outcome::Incomplete) => FinalUsage::Complete(counts),
            Some(
                Outcome::UpstreamError
                | Outcome::UpstreamTruncated
                | Outcome::Internal
                | Outcome::Refused
                | Outcome::Shed,
            ) => FinalUsage::Partial(counts),
            // A model notices that nobody reads its text, and stops.
            _ if self.stream && !permit.makes_pictures() => FinalUsage::Partial(counts),
            _ => FinalUsage::Unfinished(counts),
        };
        Some(Attempt { target, known })
    }

    /// Sets the outcome. The first one that is set wins.
    pub(crate) fn end(&mut self, outcome: Outcome) {
        self.outcome.get_or_insert(outcome);
    }
}

/// The sums of the reported tokens; `None` if no target has reported any.
fn reported(attempts: &[Attempt]) -> Option<Tokens> {
    let usages = attempts.iter().filter_map(|attempt| attempt.known.usage());
    usages.fold(None, |sum: Option<Tokens>, usage| {
        let sum = sum.unwrap_or_default();
        Some(Tokens {
            input: sum.input.saturating_add(usage.input),
            cache_read: sum.cache_read.saturating_add(usage.cache_read),
            cache_write: sum.cache_write.saturating_add(usage.cache_write),
            output: sum.output.saturating_add(usage.output),
            reasoning: sum.reasoning.saturating_add(usage.reasoning),
        })
    })
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.outcome.is_none() && std::thread::panicking() {
            (self.status, self.code, self.outcome) =
                (500, Some("server_error"), Some(Outcome::Internal));
        }
        let outcome = self.outcome.unwrap_or_else(|| self.connection.outcome());
        if let Some(Report { usage, pictures }) = self.relayed.take().map(|it| it.take()) {
            self.counts.usage = usage;
            self.counts.pictures = pictures.into();
        }
        self.release_permit();
        if matches!(outcome, Outcome::ClientGone | Outcome::SlowReader) {
            self.status = 499;
        }
        let took = self.started.elapsed();
        self.count(outcome, took);
        if let Some(entry) = self.journal.take() {
            let served_by = self.targets.served_by.get();
            entry.close(&Ended {
                outcome: outcome.as_str(),
                status: self.status,
                target: served_by.map(|by| by.target.as_str()),
            });
        }
        if let Some(cause) = &mut self.cause {
            cause.truncate(cause.floor_char_boundary(MAX_CAUSE));
        }
        self.log(outcome, took);
        if let Some(key) = self.key.take() {
            let history = Arc::clone(&self.history);
            history.push(Arc::new(self.report(key, outcome, took)));
        }
    }
}

impl Record {
    /// Counts the request in the metrics.
    fn count(&self, outcome: Outcome, took: Duration) {
        self.metrics
            .request_ended(self.route, self.status, self.code, took);
        if self.stream {
            self.metrics.stream_ended(self.route, outcome);
        }
        let settled = self.settled.map(|usage| (usage.prompt(), usage.output));
        let reported = self.reported.map(|tokens| (tokens.input, tokens.output));
        if let Some((input, output)) = settled.or(reported) {
            self.metrics.tokens(input, output);
        }
        self.targets
            .current()
            .left_out()
            .iter()
            .for_each(|kind| self.metrics.left_out(kind));
        self.count_generation(outcome, took);
    }

    /// Counts the request in the metrics of generative AI, if a target was asked.
    fn count_generation(&self, outcome: Outcome, took: Duration) {
        let model = self.pattern.as_ref().or(self.model.as_ref());
        let Some(model) = model.filter(|_| self.targets.has_attempts()) else {
            return;
        };
        let served_by = self.targets.served_by.get();
        let first_event = self
            .first_event
            .map(|first| first.duration_since(self.started));
        self.metrics.generated(&Generation {
            route: self.route,
            model,
            target: served_by.map_or("", |by| &by.target),
            provider: served_by.map_or("sluicegate", |by| by.provider),
            outcome,
            took,
            first_event,
            tokens: self.reported,
            cost: self.cost,
            trace: self.trace.as_ref().map(|trace| &trace.context),
        });
    }

    /// Writes the line of the request to the log.
    fn log(&self, outcome: Outcome, took: Duration) {
        let served_by = self.targets.served_by.get();
        let left_out = self.targets.current().left_out();
        let left_out = (!left_out.is_empty()).then(|| left_out.join(","));
        let trace = self.trace.as_ref();
        let trace_id = trace.map(|trace| trace.context.trace.to_hex());
        let line = AccessLine {
            request_id: &self.id,
            client_request_id: self.client_id.as_deref(),
            trace_id: trace_id.as_ref().map(Hex::as_str),
            route: self.route,
            transport: self.connection.transport(),
            key: self.key.as_deref(),
            model: self.model.as_deref(),
            target: served_by.map(|by| by.target.as_str()),
            hedge: self.targets.hedge.get().map(|hedge| hedge.target.as_str()),
            upstream_request_id: served_by.and_then(|by| by.meta.request_id.as_deref()),
            status: self.status,
            code: self.code,
            cause: self.cause.as_deref(),
            stream: self.stream,
            outcome: outcome.as_str(),
            input_tokens: self.reported.map(|tokens| tokens.input),
            output_tokens: self.reported.map(|tokens| tokens.output),
            left_out: left_out.as_deref(),
            queued_ms: self.queued.map(milliseconds),
            first_event_ms: self.first_event_ms(),
            took_ms: milliseconds(took),
        };
        line.log();
    }

    /// The report of the ended request, which takes its texts.
    fn report(&mut self, key: Arc<str>, outcome: Outcome, took: Duration) -> RequestReport {
        RequestReport {
            at: ReceivedAt(self.at_ms()),
            request_id: std::mem::take(&mut self.id),
            client_request_id: self.client_id.take(),
            trace: self.trace.take(),
            route: self.route,
            key,
            model: self.model.as_deref().map(shortened),
            stream: self.stream,
            outcome,
            status: self.status,
            code: self.code,
            cause: self.cause.take(),
            admission: self.admission.take(),
            attempts: self.targets.take_attempts(),
            left_out: self.targets.current().left_out().clone(),
            input_tokens: self.reported.map(|tokens| tokens.input),
            cache_read_tokens: self.reported.map(|tokens| tokens.cache_read),
            cache_write_tokens: self.reported.map(|tokens| tokens.cache_write),
            output_tokens: self.reported.map(|tokens| tokens.output),
            reasoning_tokens: self.reported.map(|tokens| tokens.reasoning),
            cost: self.cost,
            first_event_ms: self.first_event_ms(),
            took_ms: milliseconds(took),
        }
    }

    /// The time at which the request was received, in Unix milliseconds.
    fn at_ms(&mut self) -> i64 {
        match self.live.take() {
            Some(live) => live.request().at_ms,
            None => self.received_ms(),
        }
    }

    fn first_event_ms(&self) -> Option<f64> {
        let first = self.first_event?;
        Some(milliseconds(first.duration_since(self.started)))
    }
}

/// The maximum length of a logged cause, in bytes.
pub(crate) const MAX_CAUSE: usize = 1024;

/// Shortens a text that a client or an upstream has chosen, for a report that is retained.
pub(crate) fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_NAME)].to_owned()
}

/// The maximum length of a name in a report, in bytes.
const MAX_NAME: usize = 256;

/// Converts a duration to milliseconds, with microsecond precision.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Outcomes that code can set.
    const OUTCOMES: [Outcome; 4] = [
        Outcome::Completed,
        Outcome::UpstreamTruncated,
        Outcome::Timeout,
        Outcome::Shutdown,
    ];

    /// Returns the series of a counter with their values.
    fn counted(metrics: &Metrics, name: &str) -> Vec<(String, u64)> {
        let text = metrics.render(0, Duration::ZERO);
        let lines = text
            .lines()
            .filter(|line| line.starts_with(&format!("sluicegate_{name}_total{{")));
        lines
            .filter_map(|line| line.rsplit_once(' '))
            .map(|(at, n)| (at.to_owned(), n.parse().unwrap()))
            .collect()
    }

    fn stream(metrics: &Arc<Metrics>) -> Record {
        let mut record = Record::new(
            Arc::clone(metrics),
            Arc::default(),
            Arc::default(),
            "req_1".to_owned(),
        );
        record.stream = true;
        record.status = 200;
        record
    }

    /// A request has exactly one outcome, in whatever order outcomes are set: the first one that is
    /// set, or else that its client disconnected. No other task can report a second one, because a
    /// record has one owner and cannot be cloned.
    #[test]
    fn c06_a_request_has_exactly_one_outcome() {
        let orders = OUTCOMES
            .iter()
            .flat_map(|first| OUTCOMES.iter().map(move |second| vec![*first, *second]));
        for noted in orders.chain([vec![], vec![Outcome::Completed]]) {
            let metrics = Arc::new(Metrics::default());
            let mut record = stream(&metrics);
            for outcome in &noted {
                record.end(*outcome);
            }
            drop(record);
            let expected = noted.first().copied().unwrap_or(Outcome::ClientGone);
            let (streams, requests) = (
                counted(&metrics, "streams_ended"),
                counted(&metrics, "requests"),
            );
            assert_eq!(streams.iter().map(|(_, n)| n).sum::<u64>(), 1, "{noted:?}");
            assert!(
                streams[0]
                    .0
                    .contains(&format!("outcome=\"{}\"", expected.as_str())),
                "{noted:?}: {streams:?}"
            );
            assert_eq!(requests.iter().map(|(_, n)| n).sum::<u64>(), 1, "{noted:?}");
            assert_eq!(
                requests[0].0.contains("status=\"499\""),
                expected == Outcome::ClientGone,
                "{requests:?}"
            );
        }
    }

    /// Concurrent requests share only the counters: when many end at once, none is lost and none
    /// counted twice.
    #[test]
    fn c06_outcomes_that_come_at_once_are_all_counted_once() {
        const EACH: usize = 200;
        let metrics = Arc::new(Metrics::default());
        thread::scope(|scope| {
            for place in 0..8 {
                let metrics = &metrics;
                scope.spawn(move || {
                    for turn in 0..EACH {
                        let mut record = stream(metrics);
                        // Every other client disconnects just before the end is noted.
                        if (place + turn) % 2 == 0 {
                            record.end(Outcome::Completed);
                        }
                    }
                });
            }
        });
        let streams = counted(&metrics, "streams_ended");
        assert_eq!(
            streams.iter().map(|(_, n)| *n).collect::<Vec<_>>(),
            [4 * EACH as u64; 2],
            "{streams:?}"
        );
    }

    /// A record that could be cloned could be reported twice. This function compiles only while
    /// `Record` is not `Clone`.
    #[allow(dead_code, reason = "that it compiles is what is shown")]
    fn a_record_cannot_be_cloned() {
        trait Ambiguous<A> {
            fn is() {}
        }
        impl<T> Ambiguous<()> for T {}
        struct OfClone;
        impl<T: Clone> Ambiguous<OfClone> for T {}
        <Record as Ambiguous<_>>::is();
    }
}
