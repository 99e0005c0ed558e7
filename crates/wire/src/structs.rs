//! Macros for the structs of a JSON API.

/// Declares structs of a JSON API that keep unrecognized fields.
///
/// The structs are `#[non_exhaustive]`, because such APIs keep adding fields. Each has the usual
/// derives and:
///
/// - the field `extra`, which keeps the fields that are not declared,
/// - `skip_serializing_if` for each field whose type is written as `Option<…>`,
/// - [`OpenMembers`](crate::OpenMembers), the names of the declared fields,
/// - `new`, which takes all other fields and leaves out the optional ones. A struct without other
///   fields has no `new`.
///
/// ```
/// sluicegate_wire::open_structs! {
///     /// A function that the model may call.
///     pub struct Function {
///         /// The name.
///         pub name: String,
///         /// True to enforce the schema of the arguments.
///         pub strict: Option<bool>,
///     }
/// }
///
/// let text = r#"{"name":"get_weather","cache":{}}"#;
/// let function: Function = serde_json::from_str(text).unwrap();
/// assert_eq!(serde_json::to_string(&function).unwrap(), text);
/// assert_eq!(Function::new("get_weather".into()).strict, None);
/// ```
#[macro_export]
macro_rules! open_structs {
    ($($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* })+) => {
        $($crate::wire_struct!(open [$(#[$meta])*] $name [] [] [] $($fields)*);)+
    };
}

/// Declares structs of a JSON API that ignore unrecognized fields.
///
/// Otherwise they are like the structs of [`open_structs!`](crate::open_structs). Only JSON objects
/// are deserialized, as by [`objects!`](crate::objects).
#[macro_export]
macro_rules! closed_structs {
    ($($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* })+) => {
        $($crate::wire_struct!(closed [$(#[$meta])*] $name [] [] [] $($fields)*);)+
    };
}

/// Declares one struct. The first two rules move one field at a time to the lists of all, required
/// and optional fields.
#[doc(hidden)]
#[macro_export]
macro_rules! wire_struct {
    ($kind:ident $head:tt $name:ident [$($all:tt)*] $required:tt [$($optional:ident)*]
        $(#[$meta:meta])* pub $field:ident: Option<$type:ty>, $($rest:tt)*
    ) => {
        $crate::wire_struct!($kind $head $name
            [$($all)* $(#[$meta])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,]
            $required [$($optional)* $field] $($rest)*);
    };
    ($kind:ident $head:tt $name:ident [$($all:tt)*] [$($required:tt)*] $optional:tt
        $(#[$meta:meta])* pub $field:ident: $type:ty, $($rest:tt)*
    ) => {
        $crate::wire_struct!($kind $head $name
            [$($all)* $(#[$meta])* pub $field: $type,] [$($required)* $field: $type,] $optional $($rest)*);
    };
    (open [$($head:tt)*] $name:ident [$($fields:tt)*] $required:tt [$($optional:ident)*]) => {
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[non_exhaustive]
        $($head)*
        pub struct $name {
            $($fields)*
            /// Unrecognized fields, kept as received.
            #[serde(flatten)]
            pub extra: $crate::Object,
        }

        $crate::wire_struct!(names $name $required [$($optional)*]);
        $crate::wire_struct!($name $required [$($optional)* extra]);
    };
    (names $name:ident [$($field:ident: $type:ty,)*] [$($optional:ident)*]) => {
        impl $crate::OpenMembers for $name {
            const NAMES: &'static [&'static str] = &[$(stringify!($field),)* $(stringify!($optional),)*];

            fn others(&self) -> &$crate::Object {
                &self.extra
            }
        }
    };
    (closed [$($head:tt)*] $name:ident [$($fields:tt)*] $required:tt $optional:tt) => {
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(remote = "Self")]
        #[non_exhaustive]
        $($head)*
        pub struct $name {
            $($fields)*
        }

        $crate::objects!($name);
        $crate::wire_struct!($name $required $optional);
    };
    ($name:ident [] $optional:tt) => {};
    ($name:ident [$($field:ident: $type:ty,)+] [$($optional:ident)*]) => {
        impl $name {
            #[doc = concat!("Creates a `", stringify!($name), "` from its required fields. All others are absent.")]
            #[must_use]
            pub fn new($($field: $type),+) -> Self {
                Self { $($field,)+ $($optional: ::std::default::Default::default(),)* }
            }
        }
    };
}
