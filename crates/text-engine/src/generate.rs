//! One generation from its place in the queue to its last event.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::{EngineError, Stop, TextEvent, Usage};
use tokio::sync::mpsc::Sender;

use crate::pool::Job;
use crate::prepare::{Prepared, Shape};
use crate::prompt::{Task, render};
use crate::sample::Sampler;
use crate::session::Session;
use crate::stop::Outlet;
use crate::tools::{Function, Need};
use crate::writer::{Ended, Halt, Writer, now};
use crate::{Engine, tools};

/// What a generation tells.
pub(crate) type Events = Sender<Result<TextEvent, EngineError>>;

/// A generation that waits for its place. Dropping the other end of `events` cancels it.
pub(crate) struct Generate {
    pub(crate) engine: Arc<Engine>,
    pub(crate) prepared: Prepared,
    pub(crate) events: Events,
    pub(crate) timeout: Option<Duration>,
    /// Whether the engine is gone.
    pub(crate) closed: Arc<AtomicBool>,
}

impl Job for Generate {
    fn is_wanted(&self) -> bool {
        !self.events.is_closed()
    }

    fn run(self: Box<Self>) {
        let ended = Run::new(&self).finish();
        let last = match ended {
            Ok(finished) => Ok(finished),
            Err(Halt::Failed(error)) => Err(error),
            Err(Halt::Cancelled) => Err(closed()),
        };
        // Nobody may be left to hear it.
        let _ = self.events.try_send(last);
    }

    fn refuse(self: Box<Self>) {
        // As above.
        let _ = self.events.try_send(Err(closed()));
    }
}

/// A generation that has its place.
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
            tokenizer: &job.engine.tokenizer,
            session: Session::new(&job.engine.model),
            sampler: Sampler::new(prepared.sampling.clone(), prepared.tokens),
            written: 0,
            deadline: job.timeout.and_then(|timeout| now().checked_add(timeout)),
            cancelled: Box::new(|| job.events.is_closed() || job.closed.load(Ordering::Relaxed)),
        };
        Self { job, writer, plan: String::new(), reasoning: 0 }
    }

    /// Thinks, then calls or answers; the last event.
    fn finish(mut self) -> Result<TextEvent, Halt> {
        let stop = match self.think()? {
            Some(stop) => stop,
            None => self.call_or_answer()?,
        };
        let usage = Usage {
            input: self.job.prepared.tokens,
            output: self.writer.written,
            reasoning: self.reasoning,
            ..Usage::default()
        };
        Ok(TextEvent::Finished { stop, usage: Some(usage) })
    }

    fn call_or_answer(&mut self) -> Result<Stop, Halt> {
        let Some(calling) = &self.job.prepared.calling else { return self.answer() };
        match calling.need {
            Need::Open if !self.decide(&calling.functions)? => self.answer(),
            Need::Open | Need::Sure => self.call(&calling.functions),
        }
    }

    /// Writes a plan, if one is wanted; why it ended, if there is nothing left for an answer.
    fn think(&mut self) -> Result<Option<Stop>, Halt> {
        let cap = self.job.prepared.plan.min(self.left());
        if cap == 0 {
            return Ok(None);
        }
        let prompt = self.prompt(Task::Plan);
        let (mut outlet, events, mut plan) = (Outlet::new(&["\n".to_owned()]), &self.job.events, String::new());
        let ended = self.writer.write(&prompt, None, cap, |bytes| {
            let flow = outlet.push(bytes);
            plan += &flow.text;
            tell(events, TextEvent::Reasoning, flow.text);
            if flow.stopped.is_some() && !plan.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        let rest = outlet.finish();
        plan += &rest;
        tell(events, TextEvent::Reasoning, rest);
        self.reasoning = self.writer.written;
        plan.trim().clone_into(&mut self.plan);
        Ok(match ended {
            Ended::Full => Some(Stop::ContextFull),
            _ if self.left() == 0 => Some(Stop::MaxTokens),
            _ => None,
        })
    }

    fn answer(&mut self) -> Result<Stop, Halt> {
        let prepared = &self.job.prepared;
        let (task, constraint) = match &prepared.shape {
            Shape::Text => (Task::Answer, None),
            Shape::Json { schema, constraint } => (Task::Json(schema.as_ref()), Some(constraint.as_ref().clone())),
        };
        let prompt = self.prompt(task);
        let (mut outlet, events, mut stopped) = (Outlet::new(&prepared.stop), &self.job.events, None);
        let cap = self.left();
        let ended = self.writer.write(&prompt, constraint, cap, |bytes| {
            let flow = outlet.push(bytes);
            tell(events, TextEvent::Text, flow.text);
            stopped = flow.stopped;
            if stopped.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if let Some(text) = stopped {
            return Ok(Stop::StopText(text));
        }
        tell(events, TextEvent::Text, outlet.finish());
        Ok(stop(ended, Stop::End))
    }

    /// Whether the model would rather say yes than no.
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
        // Cancelled is noticed at the next token.
        let _ = events.try_send(Ok(TextEvent::Call { id, name: function.name.clone() }));
        let prompt = self.prompt(Task::Arguments(function));
        let (mut outlet, cap) = (Outlet::new(&[]), self.left());
        let ended = self.writer.write(&prompt, Some(function.arguments.clone()), cap, |bytes| {
            tell(events, TextEvent::Arguments, outlet.push(bytes).text);
            ControlFlow::Continue(())
        })?;
        Ok(stop(ended, Stop::ToolCalls))
    }

    /// Which of several functions to call, or why there was no room to say so.
    fn choose<'f>(&mut self, functions: &'f [Function]) -> Result<Result<&'f Function, Stop>, Halt> {
        let names: Vec<&str> = functions.iter().map(|function| function.name.as_str()).collect();
        let constraint = self.job.engine.grammars.choice(&names)?;
        let prompt = self.prompt(Task::Choose(functions));
        let (mut name, cap) = (Vec::new(), self.left());
        let ended = self.writer.write(&prompt, Some(constraint), cap, |bytes| {
            name.extend_from_slice(bytes);
            ControlFlow::Continue(())
        })?;
        let found = functions.iter().find(|function| function.name.as_bytes() == name);
        Ok(match (ended, found) {
            (Ended::Done, Some(function)) => Ok(function),
            (Ended::Done, None) => return Err(EngineError::Internal("no such function".to_owned()).into()),
            (ended, _) => Err(stop(ended, Stop::End)),
        })
    }

    fn prompt(&self, task: Task<'_>) -> Vec<u32> {
        render(self.writer.tokenizer, &self.job.prepared.said, task, &self.plan)
    }

    /// Tokens that may still be written.
    fn left(&self) -> u64 {
        self.job.prepared.cap.saturating_sub(self.writer.written)
    }
}

/// The engine went before its work was done.
pub(crate) fn closed() -> EngineError {
    EngineError::Unavailable("the engine was closed".to_owned())
}

/// Tells of a piece of text, unless it is empty.
fn tell(events: &Events, event: fn(String) -> TextEvent, text: String) {
    if !text.is_empty() {
        // Cancelled is noticed at the next token.
        let _ = events.try_send(Ok(event(text)));
    }
}

fn stop(ended: Ended, done: Stop) -> Stop {
    match ended {
        Ended::Done | Ended::Enough => done,
        Ended::Cut => Stop::MaxTokens,
        Ended::Full => Stop::ContextFull,
    }
}
