//! The rows of the field map by the paths of their fields.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use vendor::Protocol;

use super::{Row, chat, messages, responses};

/// All rows.
pub(super) struct Table {
    /// In the order of the page.
    pub(super) rows: Vec<Row>,
    /// The whole request of each client protocol.
    roots: BTreeMap<Protocol, Node>,
}

/// The rows of one field, and of the fields nested in it.
#[derive(Default)]
pub(super) struct Node {
    pub(super) rows: Vec<Row>,
    /// The members of an object.
    members: BTreeMap<&'static str, Node>,
    /// Each entry of an array.
    pub(super) entry: Option<Box<Node>>,
}

impl Node {
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        self.members.get(name)
    }

    /// Returns true if fields nested in this one have rows.
    pub(super) fn has_nested(&self) -> bool {
        self.entry.is_some() || !self.members.is_empty()
    }

    fn add(&mut self, row: Row) {
        let mut node = self;
        for step in row.field.split('.') {
            let name = step.trim_end_matches(ENTRY);
            node = node.members.entry(name).or_default();
            for _ in step[name.len()..].matches(ENTRY) {
                node = node.entry.get_or_insert_default();
            }
        }
        node.rows.push(row);
    }
}

/// The whole request of a client protocol.
pub(super) fn root(client: Protocol) -> Option<&'static Node> {
    TABLE.roots.get(&client)
}

/// The field with this path.
pub(super) fn find(client: Protocol, field: &str) -> Option<&'static Node> {
    field.split('.').try_fold(root(client)?, |node, step| {
        let name = step.trim_end_matches(ENTRY);
        let entries = step[name.len()..].matches(ENTRY);
        entries
            .into_iter()
            .try_fold(node.member(name)?, |node, _| node.entry.as_deref())
    })
}

pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let rows = [responses::ROWS, chat::ROWS, messages::ROWS].concat();
    let mut roots = BTreeMap::<_, Node>::new();
    for row in &rows {
        roots.entry(row.client).or_default().add(*row);
    }
    Table { rows, roots }
});

/// The name of each entry of an array in a path.
const ENTRY: &str = "[]";
