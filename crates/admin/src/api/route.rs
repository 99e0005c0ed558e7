//! Finds the operation of a request.

use http::Method;

use super::failure::Failure;
use super::operation::Operation;
use super::operations::OPERATIONS;

/// Returns the operation of a method and path, and the id in the path.
pub(super) fn find<'p>(
    method: &Method,
    path: &'p str,
) -> Result<(&'static Operation, &'p str), Failure> {
    let operations = OPERATIONS.iter();
    let of_path = operations.filter_map(|operation| Some((operation, operation.id_in(path)?)));
    let of_path: Vec<_> = of_path.collect();
    if of_path.is_empty() {
        return Err(Failure::no_path(path, &paths()));
    }
    let find = |method: &str| {
        // The response to HEAD is the one to GET without its content (RFC 9110 §9.3.2), which the
        // listener leaves out.
        let method = if method == "HEAD" { "GET" } else { method };
        let mut found = of_path.iter();
        found.find(|(operation, _)| operation.description.method == method)
    };
    find(method.as_str()).copied().ok_or_else(|| {
        let allowed = METHODS.into_iter().filter(|method| find(method).is_some());
        let allowed = allowed.collect::<Vec<_>>().join(", ");
        Failure::method(method, path, &allowed)
    })
}

/// Returns the list of all paths, without their common beginning.
fn paths() -> String {
    let mut paths = Vec::new();
    for operation in OPERATIONS.iter() {
        let path = operation.description.path.trim_start_matches("/admin/v1/");
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    let last = paths.pop().unwrap_or_default();
    format!("/admin/v1/{} and {last}", paths.join(", "))
}

/// The methods of operations, in the order of the header `Allow`.
const METHODS: [&str; 5] = ["GET", "HEAD", "POST", "PATCH", "DELETE"];
