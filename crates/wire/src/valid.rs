//! Values that have been held against every rule, and say so by their type.

/// Declares a type for a value that keeps every rule. Only the module that declares it can make one.
///
/// ```
/// mod validate {
///     pub struct Request { pub model: String }
///
///     sluicegate_wire::valid! {
///         /// A request that keeps every rule.
///         pub struct ValidRequest(Request);
///     }
///
///     impl Request {
///         pub fn validate(self) -> Option<ValidRequest> {
///             (!self.model.is_empty()).then_some(ValidRequest(self))
///         }
///     }
/// }
///
/// let valid = validate::Request { model: "m".into() }.validate().unwrap();
/// assert_eq!(valid.model, "m");
/// assert_eq!(valid.into_inner().model, "m");
/// ```
#[macro_export]
macro_rules! valid {
    ($(#[$meta:meta])* $vis:vis struct $name:ident($inner:ty);) => {
        $(#[$meta])*
        $vis struct $name($inner);

        impl $name {
            /// The value itself.
            #[must_use]
            $vis fn into_inner(self) -> $inner {
                self.0
            }
        }

        impl ::std::ops::Deref for $name {
            type Target = $inner;

            fn deref(&self) -> &$inner {
                &self.0
            }
        }
    };
}
