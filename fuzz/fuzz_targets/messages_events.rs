//! Any lines as the events of a Messages stream: what is read is written the same, the fold goes as far as the
//! grammar, and only a stream that ended well is a message.

#![no_main]

use libfuzzer_sys::fuzz_target;
use messages::{Event, Fold, Grammar};

fuzz_target!(|lines: &str| {
    let (mut grammar, mut fold) = (Grammar::new(), Fold::new());
    for event in lines.lines().filter_map(|line| Event::read(line).ok()) {
        let written = event.data();
        assert_eq!(Event::read(&written).as_ref(), Ok(&event), "nothing is lost");
        assert!(!written.contains(['\r', '\n']), "an event is one line");
        let kept = grammar.push(&event).is_ok();
        assert_eq!(fold.push(&event).is_ok(), kept, "the fold goes as far as the grammar");
        if !kept {
            return;
        }
        assert_eq!(grammar.is_ended(), event.is_terminal(), "only a terminal event ends a stream");
        if grammar.is_ended() {
            let succeeded = matches!(event, Event::MessageStop(_));
            let message = fold.finish();
            assert_eq!(message.is_ok(), succeeded, "only a stream that ended well is a message");
            assert!(message.is_ok_and(|message| message.stop_reason.is_some()) == succeeded, "and says why it ended");
            return;
        }
    }
    assert!(fold.finish().is_err(), "a stream without an end is no message");
});
