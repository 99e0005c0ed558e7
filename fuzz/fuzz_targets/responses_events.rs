//! Any lines as the events of a Responses stream.

#![no_main]

use libfuzzer_sys::fuzz_target;
use responses::Event;
use sluicegate_fuzz::read_events;

fuzz_target!(|lines: &str| read_events!(responses, lines, Event::Completed(_) | Event::Incomplete(_)));
