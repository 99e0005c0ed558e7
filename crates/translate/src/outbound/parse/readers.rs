//! The lenient readers of the protocols, and how their ends are named in neutral events.

use engine::Stop;
use wire::lenient::OtherContent;

use super::stream_parser::NeutralReader;

impl NeutralReader for chat::lenient::Reader {
    fn neutral_stop(&self) -> Option<Stop> {
        use chat::lenient::Finish;
        let finish = self.finish().ok().filter(|_| self.has_first())?;
        Some(match finish {
            Finish::ToolCalls => Stop::ToolCalls,
            Finish::Length => Stop::MaxTokens,
            Finish::ContentFilter => Stop::Refused,
            _ => match self.stop_sequence() {
                Some(text) => Stop::StopText(text.to_owned()),
                None => Stop::End,
            },
        })
    }

    fn other_content(&self) -> &[OtherContent] {
        self.other_content()
    }

    fn is_done(&self) -> bool {
        self.is_done()
    }

    fn answer_id(&self) -> &str {
        self.id()
    }
}

impl NeutralReader for messages::lenient::Reader {
    fn neutral_stop(&self) -> Option<Stop> {
        use messages::lenient::Stop as Reason;
        Some(match self.stop().filter(|_| self.is_ended())? {
            Reason::StopSequence(Some(text)) => Stop::StopText(text.clone()),
            Reason::ToolUse => Stop::ToolCalls,
            Reason::MaxTokens => Stop::MaxTokens,
            Reason::ContextFull => Stop::ContextFull,
            Reason::Refusal => Stop::Refused,
            Reason::PauseTurn => Stop::Paused,
            _ => Stop::End,
        })
    }

    fn breaks_order(&self) -> bool {
        self.breaks_order()
    }

    fn other_content(&self) -> &[OtherContent] {
        self.other_content()
    }
}

impl NeutralReader for responses::lenient::Reader {
    fn neutral_stop(&self) -> Option<Stop> {
        use responses::lenient::Finish;
        Some(match self.finish()? {
            Finish::Completed if self.has_calls() => Stop::ToolCalls,
            Finish::Completed => Stop::End,
            Finish::ContentFilter => Stop::Refused,
            _ => Stop::MaxTokens,
        })
    }

    fn breaks_order(&self) -> bool {
        self.breaks_order()
    }

    fn other_content(&self) -> &[OtherContent] {
        self.other_content()
    }
}
