//! Options that Chat Completions and Responses share.

crate::open_enum! {
    /// Controls whether the model calls tools.
    pub enum ToolMode {
        /// The model must not call tools.
        None = "none",
        /// The model decides whether to call tools.
        Auto = "auto",
        /// The model must call at least one tool.
        Required = "required",
    }
}

crate::open_enum! {
    /// Reasoning effort.
    pub enum Effort {
        /// No reasoning.
        None = "none",
        /// Minimal effort.
        Minimal = "minimal",
        /// Low effort.
        Low = "low",
        /// Medium effort.
        Medium = "medium",
        /// High effort.
        High = "high",
        /// Extra-high effort.
        XHigh = "xhigh",
        /// Maximum effort.
        Max = "max",
    }
}
