//! The requests that this gateway answers and has answered, for operators: how each one was admitted,
//! which targets were tried, what was dropped, what it cost and how it ended. They contain no prompts
//! and no answers.

// The report of one finished request.
pub mod report;

// The methods and paths of the endpoints.
pub mod routes;

// The explanation of a report in sentences.
mod explain;

// The requests whose traces are exported.
pub mod sampling;

// The queue of finished requests before the exporter.
pub mod trace_queue;

// The most recent reports.
pub mod history;

// The requests in flight.
pub mod live;
