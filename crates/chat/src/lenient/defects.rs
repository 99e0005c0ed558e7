//! Forms of a choice that clients cannot read, and the forms that they need in their place.

/// The defects of a choice in an event: its parts that clients cannot read.
///
/// A client adds up the deltas of a choice, and the pieces of a call, by their indexes. It expects
/// the content to be a text, and appends every id and name to the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Defects {
    /// The position of the choice in the list of the event.
    pub place: usize,
    /// True if it has no index: it is choice 0.
    pub lacks_index: bool,
    /// True if it has neither a delta nor a message.
    pub lacks_delta: bool,
    /// True if the event of a stream has its delta under the name `message`.
    pub has_message: bool,
    /// The texts of a content that is a list.
    pub content: Option<ListedContent>,
    /// The pieces of calls that have to be written in another form.
    pub calls: Vec<CallDefects>,
    /// True if it has the finish reason of a `function_call`, which clients know as one of a list.
    pub has_old_finish: bool,
}

/// The texts of a content that is a list of texts and thoughts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedContent {
    /// The output text.
    pub text: String,
    /// All reasoning, in the list and beside the content, if the list has reasoning of its own.
    pub reasoning: Option<String>,
}

/// The defects of a piece of a call: its parts that clients cannot read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallDefects {
    /// The position of the piece in the list of calls; `None` for a `function_call`.
    pub place: Option<usize>,
    /// The index under which clients know the call.
    pub index: u64,
    /// True if the piece has no index or another one.
    pub has_other_index: bool,
    /// True for the first piece of the call.
    pub is_first: bool,
    /// True if an earlier piece has the id already.
    pub repeats_id: bool,
    /// The name, if it is new.
    pub name: Option<String>,
    /// True if an earlier piece has the name already.
    pub repeats_name: bool,
    /// The arguments, if they are JSON in place of a text, or absent from a plain reply.
    pub arguments: Option<String>,
}

impl CallDefects {
    /// The defects of a call of a plain reply that only lacks its arguments.
    pub(super) fn of_reply(position: usize) -> Self {
        Self {
            place: Some(position),
            index: position as u64,
            ..Self::default()
        }
    }
}

impl Defects {
    /// Returns true if clients can read all of it.
    pub(super) fn is_none(&self) -> bool {
        let Self {
            lacks_index,
            lacks_delta,
            has_message,
            content,
            calls,
            has_old_finish,
            ..
        } = self;
        let is_odd = *lacks_index || *lacks_delta || *has_message || *has_old_finish;
        !is_odd && content.is_none() && calls.is_empty()
    }
}
