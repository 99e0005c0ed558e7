//! The lists of models from which upstreams state facts.

use futures_util::future::join_all;
use policy::Policy;

/// Reads the lists of all upstreams that have one, and returns a note for each that cannot be read.
pub(crate) async fn read(policy: &Policy) -> String {
    let upstreams = policy.routes.upstreams();
    let lists = upstreams.filter_map(|it| Some((&it.config.name, it.model_list.as_ref()?)));
    let notes = lists.map(async |(name, list)| match list.refresh().await {
        Ok(_) => String::new(),
        Err(cause) => {
            format!("note: the list of models of upstream '{name}' cannot be read: {cause}\n")
        }
    });
    join_all(notes).await.concat()
}

/// Returns a note that names the upstreams with a list, if there are any.
pub(crate) fn unread(policy: &Policy) -> String {
    let upstreams = policy
        .routes
        .upstreams()
        .filter(|it| it.model_list.is_some());
    let names: Vec<_> = upstreams.map(|it| it.config.name.as_str()).collect();
    if names.is_empty() {
        return String::new();
    }
    let names = names.join(", ");
    format!("note: the lists of models of the upstreams {names} are read with --ask\n")
}
