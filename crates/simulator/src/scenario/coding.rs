//! Models for tests of coding agents.

use super::{Scenario, pair, size};
use crate::honest::{self, Coding};

scenarios! {
    "coding-agent" [] "writes and edits the files that the prompt asks for, with tools of the request or in the text" =>
        |request, _| honest::coding(request, Coding::Plain).play(request);
    "coding-agent-thinking" [] "the same after a thought, whose seal it checks when it comes back" =>
        |request, _| honest::coding(request, Coding::Thinking).play(request);
    "coding-agent-window-N" (2) [] "the same, but a history with more than N results of tools is too long" =>
        |request, [results, _]| honest::coding(request, Coding::Window(size(results))).play(request);
    "coding-agent-failing-N" (1) [] "the same, but overloaded once the history has N results of tools" =>
        |request, [results, _]| honest::coding(request, Coding::FailingAfter(size(results))).play(request);
}
