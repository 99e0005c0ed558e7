//! The playing of a fault: the behaviour of its upstream.

use serde_json::{Value, json};
use simulator::honest::Reply;
use simulator::{Cut, Play, Protocol, Request, honest};

use super::{Change, Fault, Hollow, Kind, Spot};

impl Fault {
    /// The upstream's behaviour. A strict vendor refuses a request before anything else can happen to it.
    pub(crate) fn play(&self, request: &Request) -> Play {
        let strict = self.strict.as_ref();
        let refused = strict.and_then(|strict| strict.refused(request));
        refused.unwrap_or_else(|| self.play_kind(request))
    }

    fn play_kind(&self, request: &Request) -> Play {
        match &self.kind {
            Kind::Scenario(scenario) => scenario.play(request),
            Kind::Foreign(foreign) => self.paced(foreign.play()),
            Kind::Cut(spot, cut) => {
                let play = self.answered(self.honest(request));
                let length = play.body_bytes().len();
                play.cut_at(spot.of(length), *cut)
            }
            Kind::HeadCut(spot, cut) => {
                let head = HEAD.as_bytes();
                let play = Play::new().bytes(head[..spot.of(head.len() - 1)].to_vec());
                match cut {
                    Cut::Reset => play.reset(),
                    Cut::Close | Cut::Clean => play.close(),
                    Cut::Hold => play.hold(),
                }
            }
            Kind::Changed(spot, change) => {
                let play = self.honest(request);
                let pieces: Vec<_> = play.pieces().map(|piece| piece.to_vec()).collect();
                self.answered(play.with_pieces(change.of(pieces, *spot)))
            }
            Kind::Hollow(hollow) => self.answered(hollow.play(request)),
            Kind::Rewritten(rewrite) => self.answered(rewrite.of(self.honest(request))),
            Kind::Shutdown(spot) => {
                let play = self.answered(self.honest(request));
                let length = play.body_bytes().len();
                play.cut_at(spot.of(length), Cut::Hold)
            }
            _ => self.answered(self.honest(request)),
        }
    }

    /// The reply of a conforming upstream.
    fn honest(&self, request: &Request) -> Play {
        let play = honest::answer(request);
        if self.client == Protocol::Images {
            self.drawing.lengthened(play)
        } else {
            play
        }
    }

    /// An answer in its coding and at its pace.
    fn answered(&self, play: Play) -> Play {
        self.paced(self.encode_answer(play))
    }

    fn paced(&self, play: Play) -> Play {
        let play = if self.pace.pieces.is_empty() {
            play
        } else {
            play.chunked_by(&self.pace.pieces)
        };
        if self.pace.pause.is_zero() {
            play
        } else {
            play.paced(self.pace.pause)
        }
    }
}

impl Change {
    /// Changes the pieces of a body.
    fn of(self, mut pieces: Vec<Vec<u8>>, spot: Spot) -> Vec<Vec<u8>> {
        if pieces.is_empty() {
            return pieces;
        }
        let event = spot.of(pieces.len() - 1);
        let at = |piece: &Vec<u8>| spot.of(piece.len().saturating_sub(1));
        match self {
            Self::EventLost => {
                pieces.remove(event);
            }
            Self::EventDoubled => pieces.insert(event, pieces[event].clone()),
            Self::EventLate => {
                let next = (event + 1).min(pieces.len() - 1);
                pieces.swap(event, next);
            }
            _ => {
                let mut body = pieces.concat();
                let place = at(&body);
                match self {
                    Self::Inserted(byte) => body.insert(place, byte),
                    Self::Removed if !body.is_empty() => {
                        body.remove(place);
                    }
                    Self::Byte(byte) if !body.is_empty() => body[place] = byte,
                    _ => {}
                }
                pieces = vec![body];
            }
        }
        pieces
    }
}

impl Hollow {
    /// The plain reply of a conforming upstream, made invalid.
    fn play(self, request: &Request) -> Play {
        let Reply::Json(honest, mut reply) = honest::plain(request) else {
            return honest::answer(request);
        };
        let status = match self {
            Self::Empty => {
                reply = json!({});
                honest
            }
            Self::Unfinished => {
                unfinish(&mut reply);
                honest
            }
            Self::Status(status) => status,
        };
        Play::json(status, &reply)
    }
}

/// Removes the member by which a reply of any protocol says that it is finished.
fn unfinish(reply: &mut Value) {
    match reply["object"].as_str() {
        Some("response") => reply["status"] = "in_progress".into(),
        Some(_) => reply["choices"][0]["finish_reason"] = Value::Null,
        None if reply["type"] == "message" => reply["stop_reason"] = Value::Null,
        None => reply["data"] = json!([]),
    }
}

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
