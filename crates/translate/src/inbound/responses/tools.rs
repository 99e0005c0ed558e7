//! The tools of a Responses client as functions, and their calls in the form that the client knows.
//!
//! A freeform tool becomes a function with one text; the functions of a namespace get names that
//! join both; a search for tools that the client runs is a function. Tools that run at the vendor
//! are left out.

use std::collections::HashMap;

use responses::{FunctionCall, Item, Request, Tool};
use serde_json::Value;
use wire::{Json, Object, TextOr};

use super::super::freeform;

/// The tools that a client offers, as functions.
#[derive(Debug, Default)]
pub(super) struct ClientTools {
    /// The functions, in the order of the request.
    pub(super) functions: Vec<engine::Tool>,
    /// Fields that no function can carry, as in the field map.
    pub(super) dropped: Vec<String>,
    /// The tools by the names of their functions.
    tools: HashMap<String, ClientTool>,
}

/// A tool as the client knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientTool {
    pub(super) kind: Kind,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
}

/// The kind of a tool, which decides how it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// With JSON arguments
    /// (<https://platform.openai.com/docs/guides/function-calling>).
    Function,
    /// With a text (<https://platform.openai.com/docs/guides/function-calling#custom-tools>).
    Freeform,
    /// A search for further tools (<https://platform.openai.com/docs/guides/tools-tool-search>).
    Search,
}

impl ClientTools {
    /// Collects the tools of a request, and those that its items add.
    pub(super) fn of(request: &Request) -> Self {
        let mut tools = Self::default();
        for tool in request.tools.iter().flatten() {
            tools.offer(tool, None);
        }
        if let TextOr::List(items) = &request.input {
            items.iter().for_each(|item| tools.offer_those_of(item));
        }
        tools
    }

    /// Returns the tool that a function stands for.
    pub(super) fn find(&self, function: &str) -> Option<&ClientTool> {
        self.tools.get(function)
    }

    /// Returns the name of the function for a tool.
    pub(super) fn function_name(&self, namespace: Option<&str>, name: &str) -> String {
        let is_meant = |(_, tool): &(&String, &ClientTool)| {
            tool.name == name && tool.namespace.as_deref() == namespace
        };
        let found = self.tools.iter().find(is_meant);
        found.map_or_else(|| joined(namespace, name), |(function, _)| function.clone())
    }

    /// Offers the tools of an item: those that the client adds, and those that a search has found.
    fn offer_those_of(&mut self, item: &Item) {
        let Item::Other(members) = item else { return };
        if !matches!(item.kind(), "additional_tools" | "tool_search_output") {
            return;
        }
        for tool in parsed(members.get("tools")) {
            self.offer(&tool, None);
        }
    }

    fn offer(&mut self, tool: &Tool, namespace: Option<&str>) {
        match tool {
            Tool::Function(tool) => {
                let function = engine::Tool {
                    name: tool.name.clone(),
                    description: tool.description.clone(),
                    parameters: tool.parameters.clone(),
                    strict: tool.strict,
                };
                self.add(Kind::Function, namespace, function);
            }
            Tool::Other(members) => self.offer_other(tool.kind(), members, namespace),
            _ => self.drop("tools[]"),
        }
    }

    fn offer_other(&mut self, kind: &str, members: &Object, namespace: Option<&str>) {
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let description = text("description").map(str::to_owned);
        match (kind, text("name")) {
            ("custom", Some(name)) => {
                if members
                    .get("format")
                    .is_some_and(|format| format["type"] == "grammar")
                {
                    self.drop("tools[].format");
                }
                let grammar = members.get("format").and_then(|format| {
                    format["syntax"].as_str().zip(format["definition"].as_str())
                });
                let parameters = freeform::parameters(grammar);
                let function = engine::Tool {
                    name: name.to_owned(),
                    description,
                    parameters: Some(parameters),
                    strict: Some(false),
                };
                self.add(Kind::Freeform, namespace, function);
            }
            ("namespace", Some(name)) => {
                if description.is_some() {
                    self.drop("tools[].description");
                }
                for tool in parsed(members.get("tools")) {
                    self.offer(&tool, Some(name));
                }
            }
            ("tool_search", _) if text("execution") == Some("client") => {
                let function = engine::Tool {
                    name: SEARCH.to_owned(),
                    description,
                    parameters: members.get("parameters").map(Json::from),
                    strict: Some(false),
                };
                self.add(Kind::Search, None, function);
            }
            _ => self.drop("tools[]"),
        }
    }

    /// Adds a function for a tool, unless the tool is offered already.
    fn add(&mut self, kind: Kind, namespace: Option<&str>, mut function: engine::Tool) {
        let tool = ClientTool {
            kind,
            namespace: namespace.map(str::to_owned),
            name: function.name.clone(),
        };
        let mut name = joined(namespace, &tool.name);
        while let Some(other) = self.tools.get(&name) {
            if *other == tool {
                return;
            }
            name.push('_');
        }
        name.clone_into(&mut function.name);
        self.functions.push(function);
        self.tools.insert(name, tool);
    }

    fn drop(&mut self, field: &str) {
        if !self.dropped.iter().any(|known| known == field) {
            self.dropped.push(field.to_owned());
        }
    }
}

/// Returns the namespace of a call of a function.
pub(super) fn namespace_of(call: &FunctionCall) -> Option<&str> {
    call.extra.get("namespace")?.as_str()
}

/// Joins a namespace and a name as Codex does for servers that know no namespaces.
fn joined(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{}__{name}", namespace.trim_end_matches("__")),
        None => name.to_owned(),
    }
}

/// The tools of a list that can be read.
fn parsed(tools: Option<&Value>) -> Vec<Tool> {
    let tools = tools.and_then(Value::as_array).into_iter().flatten();
    let parsed = tools.map(|tool| serde_json::from_str(&tool.to_string()));
    parsed.filter_map(Result::ok).collect()
}

/// The name of the function that searches for tools.
pub(super) const SEARCH: &str = "tool_search";
