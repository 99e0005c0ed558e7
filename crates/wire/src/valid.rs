//! Newtypes for values that have passed validation.

/// Declares a newtype for a validated value. Only the declaring module can construct it.
///
/// ```
/// mod validate {
///     pub struct Request { pub model: String }
///
///     sluicegate_wire::valid! {
///         /// A request that passed validation.
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
            /// Returns the inner value.
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
