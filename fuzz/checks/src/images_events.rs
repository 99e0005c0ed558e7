//! Any lines as the events of an Images stream, of each operation, with and without a count of
//! pictures.

use images::{Event, Fold, Grammar, Operation, StreamError};

use crate::leading_text;

/// Checks one input; a panic is a finding.
pub fn check(bytes: &[u8]) {
    let lines = leading_text(bytes);
    let events: Vec<_> = lines
        .lines()
        .filter_map(|line| Event::read(line).ok())
        .collect();
    events.iter().for_each(is_written_the_same);
    for operation in [Operation::Generation, Operation::Edit] {
        for count in [None, Some(1), Some(2)] {
            fold(operation, count, &events);
        }
    }
}

fn is_written_the_same(event: &Event) {
    let (written, mut framed) = (event.data(), Vec::new());
    assert_eq!(Event::read(&written).as_ref(), Ok(event), "nothing is lost");
    assert!(!written.contains(['\r', '\n']), "an event is one line");
    event.write(&mut framed);
    let mut expected = Vec::new();
    sse::encode(event.name(), &written, &mut expected);
    assert_eq!(framed, expected, "written in place or not");
}

/// The fold goes as far as the grammar, and only a stream with all its pictures is a reply.
fn fold(operation: Operation, count: Option<u32>, events: &[Event]) {
    let (mut grammar, mut fold) = (Grammar::new(operation, count), Fold::new(operation, count));
    for event in events {
        let kept = grammar.push(event).is_ok();
        assert_eq!(
            fold.push(event.clone()).is_ok(),
            kept,
            "the fold goes as far as the grammar"
        );
        if !kept {
            return;
        }
    }
    let is_whole = grammar.finish().is_ok();
    match fold.finish() {
        Ok(reply) => {
            assert!(is_whole && !reply.data.is_empty());
            assert!(
                count.is_none_or(|count| reply.data.len() == count as usize),
                "all pictures are there"
            );
        }
        Err(StreamError::Failed(_)) => {
            assert!(is_whole && events.iter().any(|event| matches!(event, Event::Error(_))));
        }
        Err(StreamError::Offence(_)) => {
            assert!(!is_whole, "only what leaves the grammar is an offence");
        }
    }
}
