//! A model for tests of coding agents.

use super::{Scenario, pair};
use crate::honest;

scenarios! {
    "coding-agent" [] "writes the file that the prompt asks for, with a tool of the request or as an edit in the text" =>
        |request, _| honest::coding(request).play(request);
}
