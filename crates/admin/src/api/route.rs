//! The paths of the admin API.

use http::Method;

/// A path of the admin API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    /// `/keys`
    Keys,
    /// `/keys/{id}`
    Key(&'a str),
    /// `/keys/{id}/rotate`
    Rotate(&'a str),
    /// `/usage`
    Usage,
    /// `/usage/rows`
    Rows,
    /// `/requests/{id}`
    Request(&'a str),
    /// `/limits`
    Limits,
    /// `/prices`
    Prices,
    /// `/audit`
    Audit,
}

impl<'a> Route<'a> {
    /// Returns the route of a complete path.
    pub(crate) fn of(path: &'a str) -> Option<Self> {
        let rest = path.strip_prefix(super::PREFIX)?.strip_prefix('/')?;
        let parts: Vec<&str> = rest.split('/').collect();
        match *parts {
            ["keys"] => Some(Self::Keys),
            ["keys", id] if !id.is_empty() => Some(Self::Key(id)),
            ["keys", id, "rotate"] if !id.is_empty() => Some(Self::Rotate(id)),
            ["usage"] => Some(Self::Usage),
            ["usage", "rows"] => Some(Self::Rows),
            ["requests", id] if !id.is_empty() => Some(Self::Request(id)),
            ["limits"] => Some(Self::Limits),
            ["prices"] => Some(Self::Prices),
            ["audit"] => Some(Self::Audit),
            _ => None,
        }
    }

    /// Returns the methods of the route, as in the header `Allow`.
    pub(crate) fn methods(self) -> &'static str {
        match self {
            Self::Keys => "GET, POST",
            Self::Key(_) => "GET, PATCH, DELETE",
            Self::Rotate(_) => "POST",
            _ => "GET",
        }
    }

    pub(crate) fn allows(self, method: &Method) -> bool {
        self.methods()
            .split(", ")
            .any(|allowed| allowed == method.as_str())
    }
}
