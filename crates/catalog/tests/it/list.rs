//! Model lists, as clients see them.

use serde::Serialize;
use sluicegate_catalog::{Catalog, Family, Model, Page, Protocol};
use wire::Violations;

fn pretty(body: &impl Serialize) -> String {
    serde_json::to_string_pretty(body).unwrap()
}

/// Returns the ids of a page of the built-in models, and the page's `has_more`.
fn page(
    limit: Option<i64>,
    after: Option<&str>,
    before: Option<&str>,
) -> Result<(Vec<String>, bool), Violations> {
    let page = Page {
        limit,
        after_id: after.map(str::to_owned),
        before_id: before.map(str::to_owned),
    };
    let list = Catalog::builtin().list(&page, |_| true)?;
    let ids: Vec<_> = list.data.into_iter().map(|entry| entry.id).collect();
    assert_eq!(
        (list.first_id.as_ref(), list.last_id.as_ref()),
        (ids.first(), ids.last())
    );
    Ok((ids, list.has_more))
}

#[test]
fn the_whole_list_is_the_fixture() {
    let list = Catalog::builtin().list(&Page::default(), |_| true).unwrap();
    assert_eq!(
        pretty(&list),
        include_str!("fixtures/models-list.json").trim_end()
    );
}

#[test]
fn one_model_is_the_fixture() {
    let catalog = Catalog::builtin();
    let entry = catalog
        .retrieve("alt-flash", Protocol::Responses, |_| true)
        .unwrap();
    assert_eq!(
        pretty(&entry),
        include_str!("fixtures/models-retrieve.json").trim_end()
    );
    assert_eq!(
        catalog
            .retrieve("alt-flash", Protocol::Responses, |_| false)
            .unwrap_err()
            .code,
        "model_not_found"
    );
    assert_eq!(
        catalog
            .retrieve("nope", Protocol::Responses, |_| true)
            .unwrap_err()
            .kind
            .status(),
        404
    );
}

#[test]
fn models_hidden_from_the_key_are_not_listed() {
    let catalog = Catalog::builtin();
    let list = catalog
        .list(&Page::default(), |model| model.family == Family::Messages)
        .unwrap();
    assert_eq!(
        list.data
            .iter()
            .map(|entry| entry.id.as_str())
            .collect::<Vec<_>>(),
        ["msg-sonnet-5"]
    );
    let hidden = Page {
        after_id: Some("alt-flash".to_owned()),
        ..Page::default()
    };
    assert!(
        catalog
            .list(&hidden, |model| model.id != "alt-flash")
            .is_err()
    );
    let nothing = catalog.list(&Page::default(), |_| false).unwrap();
    let empty = r#"{"object":"list","data":[],"has_more":false,"first_id":null,"last_id":null}"#;
    assert_eq!(serde_json::to_string(&nothing).unwrap(), empty);
}

/// The names behind a pattern are not known, and neither its id nor one of them is a listed model.
#[test]
fn patterns_are_not_listed() {
    let model = |id: &str| Model::new(id, Family::Text, [Protocol::Chat]);
    let catalog = Catalog::new(vec![model("*"), model("gpt-5"), model("gpt-*")]).unwrap();
    let list = catalog.list(&Page::default(), |_| true).unwrap();
    assert_eq!(
        list.data
            .iter()
            .map(|entry| entry.id.as_str())
            .collect::<Vec<_>>(),
        ["gpt-5"]
    );
    assert_eq!(
        catalog
            .retrieve("gpt-5", Protocol::Responses, |_| true)
            .unwrap()
            .id,
        "gpt-5"
    );
    for id in ["gpt-*", "gpt-4", "*"] {
        let error = catalog
            .retrieve(id, Protocol::Responses, |_| true)
            .unwrap_err();
        assert_eq!(error.code, "model_not_found", "{id}");
    }
}

#[test]
fn pages_meet_without_gap_or_overlap() {
    let (all, more) = page(Some(1000), None, None).unwrap();
    assert_eq!((all.len(), more), (10, false));
    for limit in 1..=11 {
        let (mut forwards, mut backwards) = (Vec::new(), Vec::new());
        loop {
            let (ids, more) = page(Some(limit), forwards.last().map(String::as_str), None).unwrap();
            forwards.extend(ids);
            if !more {
                break;
            }
        }
        assert_eq!(forwards, all);
        loop {
            let first = backwards.first().map_or(all[9].as_str(), String::as_str);
            let (mut ids, more) = page(Some(limit), None, Some(first)).unwrap();
            ids.append(&mut backwards);
            backwards = ids;
            if !more {
                break;
            }
        }
        assert_eq!(backwards, all[..9]);
    }
}

#[test]
fn both_cursors_bound_the_page() {
    let between = page(Some(2), Some("model-5.6-terra"), Some("msg-sonnet-5")).unwrap();
    assert_eq!(
        between,
        (
            vec!["model-5.6-sol".to_owned(), "model-5.6-luna".to_owned()],
            true
        )
    );
    assert_eq!(
        page(None, Some("msg-sonnet-5"), Some("model-5.5")).unwrap(),
        (vec![], false)
    );
    assert_eq!(
        page(None, Some("model-image-2"), None).unwrap(),
        (vec![], false)
    );
}

#[test]
fn invalid_page_parameters_are_rejected_by_name() {
    let violations = |found: Violations| {
        found
            .iter()
            .map(|v| (v.param.clone(), v.code().as_str()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        violations(page(Some(0), None, None).unwrap_err()),
        [("limit".to_owned(), "integer_below_min_value")]
    );
    let found = page(Some(1001), Some("nope"), Some("nope")).unwrap_err();
    assert_eq!(
        violations(found),
        [
            ("limit".to_owned(), "integer_above_max_value"),
            ("after_id".to_owned(), "invalid_value"),
            ("before_id".to_owned(), "invalid_value"),
        ]
    );
    assert!(page(Some(-1), None, Some("model-6-astra")).is_err());
}

#[test]
fn newest_models_come_first_and_ties_keep_catalog_order() {
    let model = |id: &str, created| {
        let mut model = Model::new(id, Family::Text, [Protocol::Chat]);
        model.created = created;
        model
    };
    let catalog = Catalog::new(vec![
        model("a", 1),
        model("b", 2),
        model("c", 1),
        model("d", -1),
    ])
    .unwrap();
    let list = catalog.list(&Page::default(), |_| true).unwrap();
    let entries: Vec<_> = list
        .data
        .iter()
        .map(|entry| format!("{} {}", entry.id, entry.created_at))
        .collect();
    assert_eq!(
        entries,
        [
            "b 1970-01-01T00:00:02Z",
            "a 1970-01-01T00:00:01Z",
            "c 1970-01-01T00:00:01Z",
            "d 1969-12-31T23:59:59Z"
        ]
    );
}
