//! Members of Chat Completions that only some vendors have.

use chat::{Effort, Message, Part, Request, TextPart};
use engine::{CachedPrefixes, TextRequest};
use serde_json::json;
use wire::TextOr;

use super::super::{DroppedField, DroppedFields, Settings, cache_control};

/// Sets the reasoning effort, or the switch by which thinking is turned off.
pub(super) fn set_effort(body: &mut Request, request: &TextRequest, settings: &Settings) {
    let Some(effort) = request.reasoning.effort else {
        return;
    };
    if effort == engine::Effort::None && settings.quirks.thinking_switch {
        let off = json!({ "type": "disabled" });
        body.extra.insert("thinking".to_owned(), off);
    } else {
        body.reasoning_effort = Some(Effort::from(effort.as_str()));
    }
}

/// Adds the breakpoint behind the instructions, if the upstream knows it. There is no place for one
/// behind the tools, which are before the instructions in the prompt.
pub(super) fn mark_prefixes(
    messages: &mut [Message],
    request: &TextRequest,
    settings: &Settings,
    dropped: &mut DroppedFields,
) {
    let CachedPrefixes { tools, system } = request.cached;
    let last = messages
        .iter_mut()
        .take_while(|message| matches!(message, Message::System(_)))
        .last();
    let lifetime = system.filter(|_| settings.quirks.cache_control);
    if let (Some(lifetime), Some(Message::System(message))) = (lifetime, last) {
        if let TextOr::Text(text) = &message.content {
            let mut part = TextPart::new(text.clone());
            let mark = cache_control(lifetime);
            part.extra.insert("cache_control".to_owned(), mark);
            message.content = TextOr::List(vec![Part::Text(part)]);
        }
    } else if tools.or(system).is_some() {
        dropped.add(DroppedField::CacheBreakpoint);
    }
}
