//! Answers of real servers, from `tests/dialects`.

use std::sync::OnceLock;

use simulator::{Cut, Framing, Play, Protocol};
use testkit::dialects::{Case, Ends, Mode, Owed};
use testkit::dice::Dice;

/// An answer of a real server, and the client that requests it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foreign {
    case: &'static Case,
    pub(crate) client: Protocol,
    mode: Mode,
}

impl Foreign {
    /// Draws a visit of a case whose result is settled.
    pub(crate) fn draw(dice: &mut Dice) -> Self {
        let case = loop {
            let case = dice.one(cases());
            if !case.is_soft {
                break case;
            }
        };
        let (client, mode) = *dice.one(&case.visits());
        Self { case, client, mode }
    }

    pub(crate) fn name(&self) -> &str {
        &self.case.name
    }

    /// The protocol of the server.
    pub(crate) fn upstream(&self) -> Protocol {
        self.case.protocol
    }

    /// Returns true if the client requests a stream.
    pub(crate) fn streams(&self) -> bool {
        self.mode == Mode::Stream
    }

    /// Returns the result that the client has to see.
    pub(crate) fn owed(&self) -> Owed {
        self.case.owed(self.client, self.mode)
    }

    /// The response of the server, byte for byte.
    pub(crate) fn play(&self) -> Play {
        let (body, is_stream) = self.case.body(self.mode);
        let wire = &self.case.wire;
        let kind = if is_stream {
            "text/event-stream"
        } else {
            "application/json"
        };
        let kind = wire.content_type.as_deref().unwrap_or(kind);
        let mut headers = vec![("content-type", kind)];
        let own = wire.headers.iter();
        headers.extend(own.map(|(name, value)| (name.as_str(), value.as_str())));
        let ends = wire.ends.unwrap_or(if is_stream {
            Ends::Chunked
        } else {
            Ends::Length
        });
        let framing = match ends {
            Ends::Chunked | Ends::Cut => Framing::Chunked,
            Ends::Length | Ends::Short => Framing::Length(body.len()),
            Ends::Close => Framing::Bare,
        };
        let play = Play::new().head(wire.status.unwrap_or(200), &headers, framing);
        let play = play.body(body.to_vec());
        match ends {
            Ends::Chunked | Ends::Length => play.step(simulator::Step::End),
            Ends::Cut => play.cut_at(body.len(), Cut::Close),
            // One byte less than the length.
            Ends::Short => play.cut_at(body.len().saturating_sub(1), Cut::Close),
            Ends::Close => play.close(),
        }
    }
}

#[cfg(test)]
impl Foreign {
    /// The stream of the case with this name.
    pub(crate) fn planted(name: &str, client: Protocol) -> Self {
        let mode = Mode::Stream;
        let case = cases().iter().find(|case| case.name == name).unwrap();
        Self { case, client, mode }
    }
}

fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(Case::all)
}
