//! Keys, their epoch and the audit log.

use auth::{Scope, Scopes};
use quota::{Budget, Caps, Window};
use serde_json::json;
use sluicegate_accounting::{
    AccountingStore, AuditAction, AuditQuery, KeyChange, StoreError, StoredHash,
};

use crate::support::{by, hash, new_key, on_each_store};

on_each_store! {
    a_created_key_is_found_as_it_was_given;
    every_write_raises_the_epoch_and_is_in_the_audit_log;
    change_keeps_absent_fields_and_clears_null_fields;
    a_rotated_key_has_both_hashes_until_the_old_one_ends;
    revoked_key_is_unlisted_and_frees_only_its_name;
    a_refused_write_changes_nothing;
}

async fn a_created_key_is_found_as_it_was_given(store: &dyn AccountingStore) {
    let mut new = new_key("team-a", 1);
    new.scopes = [Scope::Text, Scope::Images].into_iter().collect();
    new.models = Some(vec!["model-5.*".parse().unwrap(), "one".parse().unwrap()]);
    new.expires = Some(2_000);
    new.limits = Some(Caps {
        concurrency: Some(4),
        requests_per_minute: Some(60),
        tokens_per_minute: None,
        budget: Some(
            Budget::new(
                "50.00".parse().unwrap(),
                "USD".parse().unwrap(),
                Window::Month,
                "Europe/Berlin".parse().unwrap(),
            )
            .unwrap(),
        ),
    });
    let key = store.create_key(new.clone(), by(1_000)).await.unwrap();
    assert!(
        key.id.starts_with("key_") && key.id.len() == 28,
        "{}",
        key.id
    );
    assert_eq!(key.name, "team-a");
    assert_eq!(
        key.hashes,
        [StoredHash {
            hash: hash(1),
            until: None
        }]
    );
    assert_eq!((key.scopes, &key.models), (new.scopes, &new.models));
    assert_eq!((key.expires, &key.limits), (Some(2_000), &new.limits));
    assert_eq!(
        (key.created, key.changed, key.revoked),
        (1_000, 1_000, None)
    );
    assert!(!key.ends_streams);
    assert_eq!(store.key(&key.id).await.unwrap(), Some(key.clone()));
    let live = store.keys().await.unwrap();
    assert_eq!((live.epoch, live.keys), (1, vec![key]));
    assert_eq!(store.key("key_0").await.unwrap(), None);
}

async fn every_write_raises_the_epoch_and_is_in_the_audit_log(store: &dyn AccountingStore) {
    assert_eq!(store.epoch().await.unwrap(), 0);
    let id = store.create_key(new_key("a", 1), by(10)).await.unwrap().id;
    let change = KeyChange {
        name: Some("b".to_owned()),
        expires: Some(Some(99)),
        ..KeyChange::default()
    };
    store.change_key(&id, change, by(20)).await.unwrap();
    store.rotate_key(&id, hash(2), 60, by(30)).await.unwrap();
    store.revoke_key(&id, true, by(40)).await.unwrap();
    assert_eq!(store.epoch().await.unwrap(), 4);

    let log = store.audit(AuditQuery::default()).await.unwrap();
    let lines: Vec<_> = log
        .iter()
        .map(|entry| (entry.epoch, entry.at, entry.action, &entry.details))
        .collect();
    let created = json!({
        "name": "a", "scopes": ["text"], "models": null, "expires": null, "limits": null
    });
    let changed = json!({
        "name": {"from": "a", "to": "b"}, "expires": {"from": null, "to": 99}
    });
    assert_eq!(
        lines,
        [
            (
                4,
                40,
                AuditAction::Revoke,
                &json!({"name": "b", "ends_streams": true})
            ),
            (3, 30, AuditAction::Rotate, &json!({"old_until": 60})),
            (2, 20, AuditAction::Change, &changed),
            (1, 10, AuditAction::Create, &created),
        ]
    );
    assert!(
        log.iter()
            .all(|entry| entry.actor == "ada" && entry.key == id)
    );

    let page = AuditQuery {
        key: Some(id.clone()),
        before: Some(log[1].id),
        limit: 1,
    };
    assert_eq!(store.audit(page).await.unwrap(), log[2..3]);
    let other = AuditQuery {
        key: Some("key_0".to_owned()),
        ..AuditQuery::default()
    };
    assert_eq!(store.audit(other).await.unwrap(), []);
}

async fn change_keeps_absent_fields_and_clears_null_fields(store: &dyn AccountingStore) {
    let mut new = new_key("a", 1);
    new.models = Some(vec!["one".parse().unwrap()]);
    new.expires = Some(99);
    new.limits = Some(Caps::default());
    let before = store.create_key(new, by(1)).await.unwrap();
    let scopes = KeyChange {
        scopes: Some(Scopes::from(Scope::Images)),
        ..KeyChange::default()
    };
    let key = store.change_key(&before.id, scopes, by(2)).await.unwrap();
    let mut expected = before.clone();
    expected.scopes = Scope::Images.into();
    expected.changed = 2;
    assert_eq!(key, expected);
    let clear = KeyChange {
        models: Some(None),
        expires: Some(None),
        limits: Some(None),
        ..KeyChange::default()
    };
    let key = store.change_key(&before.id, clear, by(3)).await.unwrap();
    assert_eq!(
        (&key.models, key.expires, &key.limits),
        (&None, None, &None)
    );
    assert_eq!(store.key(&before.id).await.unwrap(), Some(key));
}

async fn a_rotated_key_has_both_hashes_until_the_old_one_ends(store: &dyn AccountingStore) {
    let id = store.create_key(new_key("a", 1), by(0)).await.unwrap().id;
    let hashes = async |key| store.key(key).await.unwrap().unwrap().hashes;
    let until = |seed, until| StoredHash {
        hash: hash(seed),
        until,
    };
    store.rotate_key(&id, hash(2), 100, by(10)).await.unwrap();
    assert_eq!(hashes(&id).await, [until(2, None), until(1, Some(100))]);
    // The end of a hash is never moved to later.
    store.rotate_key(&id, hash(3), 200, by(20)).await.unwrap();
    assert_eq!(
        hashes(&id).await,
        [until(3, None), until(2, Some(200)), until(1, Some(100))]
    );
    store.rotate_key(&id, hash(4), 300, by(100)).await.unwrap();
    assert_eq!(
        hashes(&id).await,
        [until(4, None), until(3, Some(300)), until(2, Some(200))]
    );
}

async fn revoked_key_is_unlisted_and_frees_only_its_name(store: &dyn AccountingStore) {
    let first = store.create_key(new_key("a", 1), by(0)).await.unwrap();
    let revoked = store.revoke_key(&first.id, true, by(5)).await.unwrap();
    assert_eq!((revoked.revoked, revoked.ends_streams), (Some(5), true));
    assert_eq!(store.key(&first.id).await.unwrap(), Some(revoked.clone()));
    assert_eq!(store.keys().await.unwrap().keys, []);
    assert_eq!(
        store.create_key(new_key("a", 1), by(6)).await,
        Err(StoreError::HashTaken)
    );
    let second = store.create_key(new_key("a", 2), by(7)).await.unwrap();
    assert_eq!(
        store.list_keys(false).await.unwrap(),
        std::slice::from_ref(&second)
    );
    assert_eq!(store.list_keys(true).await.unwrap(), [revoked, second]);
    let unknown = StoreError::UnknownKey(first.id.clone());
    let id = first.id.as_str();
    let no_change = KeyChange::default();
    assert_eq!(
        store.revoke_key(id, false, by(8)).await,
        Err(unknown.clone())
    );
    assert_eq!(
        store.change_key(id, no_change, by(8)).await,
        Err(unknown.clone())
    );
    assert_eq!(store.rotate_key(id, hash(3), 9, by(8)).await, Err(unknown));
}

async fn a_refused_write_changes_nothing(store: &dyn AccountingStore) {
    store.create_key(new_key("a", 1), by(0)).await.unwrap();
    let id = store.create_key(new_key("b", 2), by(0)).await.unwrap().id;
    let before = store.keys().await.unwrap();
    let name_taken = Err(StoreError::NameTaken("a".to_owned()));
    assert_eq!(store.create_key(new_key("a", 3), by(1)).await, name_taken);
    let rename = KeyChange {
        name: Some("a".to_owned()),
        ..KeyChange::default()
    };
    assert_eq!(store.change_key(&id, rename, by(1)).await, name_taken);
    assert_eq!(
        store.create_key(new_key("c", 2), by(1)).await,
        Err(StoreError::HashTaken)
    );
    assert_eq!(
        store.rotate_key(&id, hash(1), 9, by(1)).await,
        Err(StoreError::HashTaken)
    );
    let message = store
        .create_key(new_key("c d", 4), by(1))
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(
        message,
        r#"the key cannot be stored: the key name "c d" is invalid: expected 1 to 64 visible ASCII characters"#
    );
    assert_eq!(store.keys().await.unwrap(), before);
    assert_eq!(store.audit(AuditQuery::default()).await.unwrap().len(), 2);
}
