//! Any lines as the events of a Messages stream.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sluicegate_fuzz::read_events;

fuzz_target!(|lines: &str| read_events!(messages, lines, messages::Event::MessageStop(_)));
