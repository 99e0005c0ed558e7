//! One generation, from the queue to its terminal event.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::{EngineError, Stop, TextEvent, Usage};
use tokio::sync::mpsc::Sender;

use crate::loaded_model::LoadedModel;
use crate::pool::Job;
use crate::prepare::{OutputFormat, PreparedRequest};
use crate::prompt::{Task, render};
use crate::sample::Sampler;
use crate::session::Session;
use crate::stop::StopFilter;
use crate::tools::{self, Function, Need};
use crate::writer::{EndReason, Halt, Writer, now};

pub(crate) type EventSender = Sender<Result<TextEvent, EngineError>>;

/// A queued generation. Dropping the receiver of `events` cancels it.
pub(crate) struct Generate {
    pub(crate) loaded: Arc<LoadedModel>,
    pub(crate) prepared: PreparedRequest,
    pub(crate) events: EventSender,
    pub(crate) timeout: Option<Duration>,
    /// True once the engine was dropped.
    pub(crate) closed: Arc<AtomicBool>,
}

impl Job for Generate {
    fn is_wanted(&self) -> bool {
        !self.events.is_closed()
    }

    fn run(self: Box<Self>) {
        let last = Run::new(&self).finish().map_err(|halt| match halt {
            Halt::Failed(error) => error,
            Halt::Cancelled => closed(),
        });
        // Fails if the caller has gone away, which is fine.
        let _ = self.events.try_send(last);
    }

    fn refuse(self: Box<Self>) {
        // Fails if the caller has gone away, which is fine.
        let _ = self.events.try_send(Err(closed()));
    }
}

/// A running generation.
struct Run<'g> {
    job: &'g Generate,
    writer: Writer<'g>,
    plan: String,
    reasoning: u64,
}

impl<'g> Run<'g> {
    fn new(job: &'g Generate) -> Self {
        let prepared = &job.prepared;
        let writer = Writer {
            tokenizer: &job.loaded.tokenizer,
            session: Session::new(&job.loaded.model),
            sampler: Sampler::new(prepared.sampling.clone(), prepared.prompt.tokens),
            written: 0,
            deadline: job.timeout.and_then(|timeout| now().checked_add(timeout)),
            cancelled: Box::new(|| job.events.is_closed() || job.closed.load(Ordering::Relaxed)),
        };
        Self {
            job,
            writer,
            plan: String::new(),
            reasoning: 0,
        }
    }

    /// Writes the plan, then a call or an answer, and returns the terminal event.
    fn finish(mut self) -> Result<TextEvent, Halt> {
        let stop = match self.think()? {
            Some(stop) => stop,
            None => self.call_or_answer()?,
        };
        let usage = Usage {
            input: self.job.prepared.prompt.tokens,
            output: self.writer.written,
            reasoning: self.reasoning,
            ..Usage::default()
        };
        Ok(TextEvent::Finished {
            stop,
            usage: Some(usage),
        })
    }

    fn call_or_answer(&mut self) -> Result<Stop, Halt> {
        let Some(selection) = &self.job.prepared.selection else {
            return self.answer();
        };
        match selection.need {
            Need::ModelDecides if !self.decide(&selection.functions)? => self.answer(),
            Need::ModelDecides | Need::Required => self.call(&selection.functions),
        }
    }

    /// Writes a plan, if reasoning is enabled. Returns a stop reason if no tokens are left for an
    /// answer.
    fn think(&mut self) -> Result<Option<Stop>, Halt> {
        let cap = self.job.prepared.plan.min(self.left());
        if cap == 0 {
            return Ok(None);
        }
        let prompt = self.prompt(Task::Plan);
        let events = &self.job.events;
        let mut filter = StopFilter::new(&["\n".to_owned()]);
        let mut plan = String::new();
        let ended = self.writer.write(&prompt, None, cap, |bytes| {
            let filtered = filter.push(bytes);
            plan += &filtered.text;
            send_text(events, TextEvent::Reasoning, filtered.text);
            if filtered.stopped.is_some() && !plan.is_empty() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        let rest = filter.finish();
        plan += &rest;
        send_text(events, TextEvent::Reasoning, rest);
        self.reasoning = self.writer.written;
        plan.trim().clone_into(&mut self.plan);
        Ok(match ended {
            EndReason::ContextFull => Some(Stop::ContextFull),
            _ if self.left() == 0 => Some(Stop::MaxTokens),
            _ => None,
        })
    }

    fn answer(&mut self) -> Result<Stop, Halt> {
        let prepared = &self.job.prepared;
        let (task, constraint) = match &prepared.output {
            OutputFormat::Text => (Task::Answer, None),
            OutputFormat::Json { schema, constraint } => (
                Task::Json(schema.as_ref()),
                Some(constraint.as_ref().clone()),
            ),
        };
        let prompt = self.prompt(task);
        let events = &self.job.events;
        let mut filter = StopFilter::new(&prepared.stop);
        let mut stopped = None;
        let cap = self.left();
        let ended = self.writer.write(&prompt, constraint, cap, |bytes| {
            let filtered = filter.push(bytes);
            send_text(events, TextEvent::Text, filtered.text);
            stopped = filtered.stopped;
            if stopped.is_some() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        if let Some(text) = stopped {
            return Ok(Stop::StopText(text));
        }
        send_text(events, TextEvent::Text, filter.finish());
        Ok(stop(ended, Stop::End))
    }

    /// Returns true if the model prefers to call one of the functions.
    fn decide(&mut self, functions: &[Function]) -> Result<bool, Halt> {
        let prompt = self.prompt(Task::Decide(functions));
        if !self.writer.session.fits(&prompt) {
            return Ok(false);
        }
        let scores = self.writer.begin(&prompt)?;
        Ok(tools::prefers_yes(&scores, self.writer.tokenizer))
    }

    fn call(&mut self, functions: &[Function]) -> Result<Stop, Halt> {
        let function = match functions {
            [function] => function,
            _ => match self.choose(functions)? {
                Ok(function) => function,
                Err(stop) => return Ok(stop),
            },
        };
        let events = &self.job.events;
        let id = self.writer.sampler.id("call");
        // A cancellation is noticed at the next token.
        let _ = events.try_send(Ok(TextEvent::Call {
            id,
            name: function.name.clone(),
        }));
        let prompt = self.prompt(Task::Arguments(function));
        let mut filter = StopFilter::new(&[]);
        let cap = self.left();
        let ended = self
            .writer
            .write(&prompt, Some(function.arguments.clone()), cap, |bytes| {
                send_text(events, TextEvent::Arguments, filter.push(bytes).text);
                ControlFlow::Continue(())
            })?;
        Ok(stop(ended, Stop::ToolCalls))
    }

    /// Lets the model choose one of several functions. The inner error is the stop reason if there
    /// was no room for it.
    fn choose<'f>(
        &mut self,
        functions: &'f [Function],
    ) -> Result<Result<&'f Function, Stop>, Halt> {
        let names: Vec<&str> = functions
            .iter()
            .map(|function| function.name.as_str())
            .collect();
        let constraint = self.job.loaded.grammars.choice(&names)?;
        let prompt = self.prompt(Task::Choose(functions));
        let mut name = Vec::new();
        let cap = self.left();
        let ended = self.writer.write(&prompt, Some(constraint), cap, |bytes| {
            name.extend_from_slice(bytes);
            ControlFlow::Continue(())
        })?;
        let found = functions
            .iter()
            .find(|function| function.name.as_bytes() == name);
        Ok(match (ended, found) {
            (EndReason::Complete, Some(function)) => Ok(function),
            (EndReason::Complete, None) => {
                return Err(EngineError::Internal(
                    "the model chose an unknown function".to_owned(),
                )
                .into());
            }
            (ended, _) => Err(stop(ended, Stop::End)),
        })
    }

    fn prompt(&self, task: Task<'_>) -> Vec<u32> {
        render(
            self.writer.tokenizer,
            &self.job.prepared.prompt.conversation,
            task,
            &self.plan,
        )
    }

    /// The number of tokens that may still be written.
    fn left(&self) -> u64 {
        self.job.prepared.cap.saturating_sub(self.writer.written)
    }
}

/// The error of a generation whose engine was dropped.
pub(crate) fn closed() -> EngineError {
    EngineError::Unavailable("the engine was closed".to_owned())
}

/// Sends a text event, unless its text is empty.
fn send_text(events: &EventSender, event: fn(String) -> TextEvent, text: String) {
    if !text.is_empty() {
        // A cancellation is noticed at the next token.
        let _ = events.try_send(Ok(event(text)));
    }
}

fn stop(ended: EndReason, done: Stop) -> Stop {
    match ended {
        EndReason::Complete | EndReason::ReaderStopped => done,
        EndReason::TokenLimit => Stop::MaxTokens,
        EndReason::ContextFull => Stop::ContextFull,
    }
}
