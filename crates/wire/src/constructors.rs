//! A macro for the constructors of wire structs.

/// Implements `new` for structs: it takes the required fields, and sets all others to their default.
///
/// Wire structs are `#[non_exhaustive]`, because their APIs keep adding fields, so other crates cannot write them as
/// literals. Each line lists the parameters of `new`, and after a semicolon the fields that are left out.
///
/// ```
/// #[derive(Debug)]
/// #[non_exhaustive]
/// pub struct Tool { pub name: String, pub strict: Option<bool> }
///
/// sluicegate_wire::constructors! {
///     Tool(name: String; strict);
/// }
///
/// let mut tool = Tool::new("get_weather".into());
/// tool.strict = Some(true);
/// ```
#[macro_export]
macro_rules! constructors {
    ($($name:ident($($field:ident: $type:ty),+; $($other:ident),*);)+) => {
        $(impl $name {
            #[doc = concat!("Creates a `", stringify!($name), "` from its required fields. All others are absent.")]
            #[must_use]
            pub fn new($($field: $type),+) -> Self {
                Self { $($field,)+ $($other: ::std::default::Default::default(),)* }
            }
        })+
    };
}
