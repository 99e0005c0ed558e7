//! Paths into JSON documents: chains of borrowed steps that allocate nothing until printed.

use std::fmt;

/// A path into a JSON document, such as `input[0].content[1].image_url`.
///
/// A path is built on the stack while a document is walked, each step borrowing the previous one.
/// It is formatted only when an error is reported.
///
/// ```
/// use sluicegate_wire::Path;
///
/// let input = Path::ROOT.key("input");
/// let first = input.index(0);
/// assert_eq!(first.key("role").to_string(), "input[0].role");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    /// The root of the document; formats as an empty string.
    pub const ROOT: Path<'static> = Path {
        parent: None,
        step: Step::Root,
    };

    /// Returns the path of the member `name` of the object at this path.
    #[must_use]
    pub fn key(&'a self, name: &'a str) -> Path<'a> {
        Path {
            parent: Some(self),
            step: Step::Key(name),
        }
    }

    /// Returns the path of the element at `position` of the array at this path.
    #[must_use]
    pub fn index(&'a self, position: usize) -> Path<'a> {
        Path {
            parent: Some(self),
            step: Step::Index(position),
        }
    }

    fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Key(name) if self.parent.is_some_and(|parent| !parent.is_root()) => {
                write!(f, ".{name}")
            }
            Step::Key(name) => f.write_str(name),
            Step::Index(position) => write!(f, "[{position}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_like_the_field_names_of_a_person() {
        let tools = Path::ROOT.key("tools");
        let tool = tools.index(3);
        assert_eq!(Path::ROOT.to_string(), "");
        assert_eq!(tool.key("name").to_string(), "tools[3].name");
        assert_eq!(Path::ROOT.index(2).to_string(), "[2]");
    }
}
