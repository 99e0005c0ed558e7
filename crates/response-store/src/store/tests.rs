//! Tests of the store.

use super::*;

fn store(keep_bytes: u64) -> ResponseStore {
    ResponseStore::new(&Responses {
        keep: Some(Duration::from_secs(60)),
        keep_bytes: bytesize::ByteSize::b(keep_bytes),
    })
    .unwrap()
}

/// An answer with this id and one message.
fn answer(id: &str) -> StoredResponse {
    let response =
        format!(r#"{{"id":"resp_{id}","output":[{{"type":"message","id":"msg_{id}"}}]}}"#);
    StoredResponse::new(vec![r#"{"role":"user"}"#.into()], response, false).unwrap()
}

/// The memory of an answer for the key `k`, in bytes.
fn size() -> u64 {
    answer("1").size() as u64 + 1
}

#[test]
fn an_answer_takes_its_texts_and_a_fixed_amount() {
    // The item of the input, the response, its id three times, the id of its item twice, and the
    // fixed parts.
    let texts = 15 + 58 + 3 * 6 + 2 * 5;
    assert_eq!(answer("1").size(), texts + 512 + 64 + 64 + 64);
}

#[test]
fn the_oldest_answers_make_room_for_new_ones() {
    let kept = store(2 * size());
    for id in ["1", "2", "3"] {
        assert!(kept.insert("k", answer(id)));
    }
    let has = |id: &str| {
        (
            kept.get("k", &format!("resp_{id}")).is_some(),
            kept.item("k", &format!("msg_{id}")).is_some(),
        )
    };
    assert_eq!(
        ["1", "2", "3"].map(has),
        [(false, false), (true, true), (true, true)]
    );
    let bytes = usize::try_from(2 * size()).unwrap();
    assert_eq!(
        kept.figures(),
        StoreFigures {
            responses: 2,
            bytes,
            evicted: 1
        }
    );
}

/// A key that keeps much displaces its own answers.
#[test]
fn the_key_that_uses_most_makes_room() {
    // The ids of the first key are longer.
    let kept = store(4 * size() + 64);
    assert!(kept.insert("a", answer("old")));
    for id in ["1", "2", "3", "4", "5"] {
        assert!(kept.insert("b", answer(id)));
    }
    assert!(kept.get("a", "resp_old").is_some());
    let of_b = ["1", "2", "3", "4", "5"].map(|id| kept.get("b", &format!("resp_{id}")).is_some());
    assert_eq!(of_b, [false, false, true, true, true]);
    assert!(kept.insert("a", answer("new")));
    assert!(kept.get("a", "resp_old").is_some());
    assert!(kept.get("b", "resp_3").is_none());
}

#[test]
fn an_answer_larger_than_the_store_is_not_kept() {
    let kept = store(size() - 1);
    assert!(!kept.insert("k", answer("1")));
    assert_eq!(
        kept.figures(),
        StoreFigures {
            responses: 0,
            bytes: 0,
            evicted: 0
        }
    );
}

#[test]
fn the_same_id_replaces_an_answer() {
    let kept = store(2 * size());
    for _ in 0..3 {
        assert!(kept.insert("k", answer("1")));
    }
    let bytes = usize::try_from(size()).unwrap();
    assert_eq!(
        kept.figures(),
        StoreFigures {
            responses: 1,
            bytes,
            evicted: 0
        }
    );
    assert!(kept.item("k", "msg_1").is_some());
}

#[test]
fn an_answer_is_for_its_own_key() {
    let kept = store(10 * size());
    assert!(kept.insert("a", answer("1")));
    assert!(kept.insert("b", answer("2")));
    for (key, own, other) in [("a", "1", "2"), ("b", "2", "1")] {
        assert!(kept.get(key, &format!("resp_{own}")).is_some());
        assert!(kept.item(key, &format!("msg_{own}")).is_some());
        assert!(kept.get(key, &format!("resp_{other}")).is_none());
        assert!(kept.item(key, &format!("msg_{other}")).is_none());
        assert!(!kept.remove(key, &format!("resp_{other}")));
    }
    assert!(kept.get("c", "resp_1").is_none());
    assert_eq!(kept.figures().responses, 2);
}

#[test]
fn an_item_belongs_to_the_latest_answer_that_has_it() {
    let kept = store(10 * size());
    let of = |id: &str, text: &str| {
        let item = format!(r#"{{"type":"message","id":"msg","text":"{text}"}}"#);
        StoredResponse::new(
            Vec::new(),
            format!(r#"{{"id":"{id}","output":[{item}]}}"#),
            false,
        )
        .unwrap()
    };
    kept.insert("k", of("resp_1", "old"));
    kept.insert("k", of("resp_2", "new"));
    let text = || {
        let (answer, position) = kept.item("k", "msg")?;
        answer.output(position).map(std::borrow::Cow::into_owned)
    };
    assert!(kept.remove("k", "resp_1"));
    assert_eq!(
        text().unwrap(),
        r#"{"type":"message","id":"msg","text":"new"}"#
    );
    assert!(kept.remove("k", "resp_2"));
    assert_eq!(text(), None);
    assert!(!kept.remove("k", "resp_2"));
    assert_eq!(kept.figures().bytes, 0);
}

#[tokio::test(start_paused = true)]
async fn answers_are_kept_for_a_limited_time() {
    let kept = store(10 * size());
    kept.insert("k", answer("1"));
    tokio::time::advance(Duration::from_secs(59)).await;
    kept.insert("k", answer("2"));
    assert!(kept.get("k", "resp_1").is_some());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(kept.get("k", "resp_1").is_none());
    assert!(kept.item("k", "msg_1").is_none());
    assert!(kept.get("k", "resp_2").is_some());
    assert_eq!((kept.figures().responses, kept.figures().evicted), (1, 0));
}

#[test]
fn reasoning_that_only_its_server_can_read_is_left_out() {
    let items = [
        r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm."}]}"#,
        r#"{"type":"reasoning","id":"rs_2","summary":[],"content":[]}"#,
        r#"{"type":"reasoning","id":"rs_3","summary":[],"encrypted_content":"c2VhbA=="}"#,
        r#"{"type":"reasoning","id":"rs_4","content":[{"type":"reasoning_text","text":"Hm."}]}"#,
    ];
    let response = format!(r#"{{"id":"resp_1","output":[{}]}}"#, items.join(","));
    let output = |is_relayed| {
        let answer = StoredResponse::new(Vec::new(), response.clone(), is_relayed).unwrap();
        (0..4)
            .map(|at| answer.output(at).map(std::borrow::Cow::into_owned))
            .collect::<Vec<_>>()
    };
    let mended = r#"{"summary":[],"type":"reasoning","id":"rs_4","content":[{"type":"reasoning_text","text":"Hm."}]}"#;
    assert_eq!(
        output(true),
        [
            None,
            None,
            Some(items[2].to_owned()),
            Some(mended.to_owned())
        ]
    );
    assert_eq!(output(false)[0], Some(items[0].to_owned()));
}
