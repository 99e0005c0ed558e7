//! Keys of the store: create, list, show, change, rotate and revoke.

mod forms;
mod limits;

use accounting::{KeyChange, NewKey, StoredKey};
use auth::{Entry, KeyHash, KeyRing, Pattern, PatternError, RingProblem, Scope, Scopes};
use policy::{clock, keys};
use quota::Caps;

use self::forms::{Created, KeyChangeForm, KeyList, KeyView, NewKeyForm, Rotation};
use self::limits::Limits;
use super::AdminRequest;
use super::failure::Failure;
use super::parameters::{Kind, Parameter};

/// Creates a key, and shows it.
pub(super) async fn create(admin: &AdminRequest<'_>, form: NewKeyForm) -> Result<Created, Failure> {
    refuse_fixed_name(admin, &form.name)?;
    let key = keys::generate().map_err(Failure::internal)?;
    let new = NewKey {
        hash: KeyHash::of(&key),
        scopes: scopes(&form.scopes)?,
        models: models(form.models)?,
        expires: expiry(form.expires)?,
        limits: caps(form.limits)?,
        name: form.name,
    };
    check(&new.name, new.hash, new.scopes, new.models.as_ref())?;
    let stored = admin
        .accounting()?
        .store
        .create_key(new, admin.by())
        .await?;
    admin.note("create", &stored).await;
    Ok(Created::new(&key, &stored))
}

/// Lists the keys.
pub(super) async fn list(admin: &AdminRequest<'_>) -> Result<KeyList, Failure> {
    let revoked = admin.parameters.get("revoked") == Some("true");
    let found = admin.accounting()?.store.list_keys(revoked).await?;
    let keys = found.iter().map(KeyView::of).collect();
    Ok(KeyList { keys })
}

/// Shows a key, which may be revoked.
pub(super) async fn show(admin: &AdminRequest<'_>) -> Result<KeyView, Failure> {
    let found = admin.accounting()?.store.key(admin.id).await?;
    let key = found.ok_or_else(|| no_key(admin.id))?;
    Ok(KeyView::of(&key))
}

/// Changes the properties of a key that the body has.
pub(super) async fn change(
    admin: &AdminRequest<'_>,
    form: KeyChangeForm,
) -> Result<KeyView, Failure> {
    let before = in_use(admin).await?;
    let change = read_change(form)?;
    if let Some(name) = change.name.as_ref().filter(|name| **name != before.name) {
        refuse_fixed_name(admin, name)?;
    }
    if let Some(hash) = before.hashes.first() {
        let name = change.name.as_ref().unwrap_or(&before.name);
        let models = change.models.as_ref().unwrap_or(&before.models).as_ref();
        let scopes = change.scopes.unwrap_or(before.scopes);
        check(name, hash.hash, scopes, models)?;
    }
    let store = &admin.accounting()?.store;
    let changed = store.change_key(admin.id, change, admin.by()).await?;
    admin.note("change", &changed).await;
    Ok(KeyView::of(&changed))
}

/// Replaces a key by a new one, and shows that. The old one is accepted for a while.
pub(super) async fn rotate(admin: &AdminRequest<'_>, form: Rotation) -> Result<Created, Failure> {
    let old_until = overlap(form.overlap.as_deref().unwrap_or(OVERLAP))?;
    let key = keys::generate().map_err(Failure::internal)?;
    let (hash, by) = (KeyHash::of(&key), admin.by());
    let store = &admin.accounting()?.store;
    let rotated = store.rotate_key(admin.id, hash, old_until, by).await?;
    admin.note("rotate", &rotated).await;
    Ok(Created::new(&key, &rotated))
}

/// Revokes a key permanently.
pub(super) async fn revoke(admin: &AdminRequest<'_>) -> Result<KeyView, Failure> {
    let ends_streams = admin.parameters.get("streams") == Some("end");
    let store = &admin.accounting()?.store;
    let revoked = store.revoke_key(admin.id, ends_streams, admin.by()).await?;
    admin.note("revoke", &revoked).await;
    Ok(KeyView::of(&revoked))
}

/// Returns the key of the path, unless it is revoked.
async fn in_use(admin: &AdminRequest<'_>) -> Result<StoredKey, Failure> {
    let found = admin.accounting()?.store.key(admin.id).await?;
    let found = found.filter(|key| key.revoked.is_none());
    found.ok_or_else(|| no_key(admin.id))
}

fn no_key(id: &str) -> Failure {
    let id = wire::truncate_for_error(id);
    Failure::not_found(format!(
        "id: there is no key '{id}', or it is revoked; GET /admin/v1/keys?revoked=true lists all keys"
    ))
}

/// Refuses a name that a key of the configuration has: that key would hide the one of the store.
fn refuse_fixed_name(admin: &AdminRequest<'_>, name: &str) -> Result<(), Failure> {
    match admin.state.policies.current().keys.is_fixed(name) {
        true => Err(Failure::name_taken(format!(
            "name: a key of the configuration is named '{}', choose another name",
            wire::truncate_for_error(name)
        ))),
        false => Ok(()),
    }
}

fn read_change(form: KeyChangeForm) -> Result<KeyChange, Failure> {
    let null = |field| Failure::invalid(field, "is null, but cannot be cleared");
    let name = |name: Option<String>| name.ok_or_else(|| null("name"));
    let scopes = |list: Option<Vec<String>>| scopes(&list.ok_or_else(|| null("scopes"))?);
    Ok(KeyChange {
        name: form.name.map(name).transpose()?,
        scopes: form.scopes.map(scopes).transpose()?,
        models: form.models.map(models).transpose()?,
        expires: form.expires.map(expiry).transpose()?,
        limits: form.limits.map(caps).transpose()?,
    })
}

/// Returns an error that names the field if a key ring would refuse such a key.
fn check(
    name: &str,
    hash: KeyHash,
    scopes: Scopes,
    models: Option<&Vec<Pattern>>,
) -> Result<(), Failure> {
    let mut entry = Entry::new(name, hash, scopes);
    entry.models = models.cloned();
    let Err(problems) = KeyRing::new([entry]) else {
        return Ok(());
    };
    let field = match problems.iter().next() {
        Some(RingProblem::NoScopes(_)) => "scopes",
        Some(RingProblem::NoModels(_)) => "models",
        _ => "name",
    };
    Err(Failure::invalid(field, problems))
}

fn scopes(list: &[String]) -> Result<Scopes, Failure> {
    list.iter().try_fold(Scopes::default(), |all, word| {
        let scope = word.parse::<Scope>();
        let scope = scope.map_err(|error| Failure::invalid("scopes", error))?;
        Ok(all.union(scope.into()))
    })
}

fn models(list: Option<Vec<String>>) -> Result<Option<Vec<Pattern>>, Failure> {
    let parse = |list: Vec<String>| list.iter().map(|pattern| pattern.parse()).collect();
    let patterns = list.map(parse).transpose();
    patterns.map_err(|error: PatternError| Failure::invalid("models", error))
}

/// Reads an expiry, as `keys new` does, to Unix seconds. It has to be in the future.
fn expiry(text: Option<String>) -> Result<Option<i64>, Failure> {
    let Some(text) = text else {
        return Ok(None);
    };
    let at = keys::expiry(&text).map_err(|problem| Failure::value("expires", problem))?;
    match at > clock::unix_seconds() {
        true => Ok(Some(at)),
        false => Err(Failure::invalid(
            "expires",
            format!("'{text}' is not in the future"),
        )),
    }
}

fn caps(limits: Option<Limits>) -> Result<Option<Caps>, Failure> {
    limits.map(|limits| limits.caps()).transpose()
}

/// Returns the end of a span from now, in Unix seconds.
fn overlap(text: &str) -> Result<i64, Failure> {
    let now = clock::timestamp();
    let end = text.parse::<jiff::Span>().ok().and_then(|span| {
        let now = now.to_zoned(jiff::tz::TimeZone::UTC);
        now.checked_add(span).ok()
    });
    let end = end.map(|end| end.timestamp()).filter(|end| *end >= now);
    end.map(jiff::Timestamp::as_second).ok_or_else(|| {
        let found = wire::truncate_for_error(text);
        Failure::invalid(
            "overlap",
            format!("is '{found}', but must be a span of time such as 24h or 7d"),
        )
    })
}

/// The query parameters of the list.
pub(super) const OF_LIST: [Parameter; 1] = [Parameter {
    name: "revoked",
    kind: Kind::Word(&["true", "false"]),
    description: "True to list revoked keys, too.",
}];
/// The query parameters of a revocation.
pub(super) const OF_REVOKE: [Parameter; 1] = [Parameter {
    name: "streams",
    kind: Kind::Word(&["end", "finish"]),
    description: "Whether running streams of the key are ended, or finish. Default: finish.",
}];
/// The overlap of a rotation that names none.
const OVERLAP: &str = "24h";
