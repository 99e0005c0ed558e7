//! The log of administrative changes.

/// One change of a key. Entries are written with the change itself and never deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// The position in the log, which rises by each entry.
    pub id: i64,
    /// The Unix time in seconds.
    pub at: i64,
    /// The administrator or program that made the change.
    pub actor: String,
    /// The kind of the change.
    pub action: AuditAction,
    /// The id of the key.
    pub key: String,
    /// The epoch of the keys after the change.
    pub epoch: u64,
    /// The properties of the key, as far as they were changed.
    pub details: serde_json::Value,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditAction {
    /// A key was created.
    Create,
    /// Properties of a key were changed.
    Change,
    /// A key got a new hash.
    Rotate,
    /// A key was revoked.
    Revoke,
}

/// A page of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only entries of the key with this id.
    pub key: Option<String>,
    /// Only entries before this position.
    pub before: Option<i64>,
    /// The largest number of entries.
    pub limit: u32,
}

impl AuditAction {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Create, Self::Change, Self::Rotate, Self::Revoke];

    /// Returns the name of the kind as stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Rotate => "rotate",
            Self::Revoke => "revoke",
        }
    }
}

impl Default for AuditQuery {
    fn default() -> Self {
        Self {
            key: None,
            before: None,
            limit: 100,
        }
    }
}
