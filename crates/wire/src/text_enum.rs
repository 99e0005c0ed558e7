//! A macro for closed enums whose values each have a fixed text.

/// Declares an enum whose variants each have a fixed text: a name, or the sentence of an error.
///
/// Unlike [`open_enum!`](crate::open_enum) it declares a closed set of values. The documentation of
/// each variant ends with its text.
///
/// ```
/// sluicegate_wire::text_enum! {
///     /// Verbosity of the output.
///     pub enum Verbosity {
///         /// Low verbosity.
///         Low = "low",
///         /// High verbosity.
///         High = "high",
///     }
/// }
///
/// assert_eq!(Verbosity::Low.to_string(), "low");
/// assert_eq!(Verbosity::TEXTS, ["low", "high"]);
/// assert_eq!(Verbosity::named("high"), Some(Verbosity::High));
/// assert_eq!(Verbosity::named("vast"), None);
/// ```
#[macro_export]
macro_rules! text_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(
                $(#[$doc])*
                #[doc = concat!("\n\nText: `", $text, "`")]
                $variant,
            )+
        }

        impl $name {
            /// All values.
            pub const VALUES: &[Self] = &[$(Self::$variant),+];

            /// The texts of all values.
            pub const TEXTS: &[&'static str] = &[$($text),+];

            /// Returns the text of the value.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// Returns the value with the given text.
            #[must_use]
            pub fn named(text: &str) -> ::std::option::Option<Self> {
                match text {
                    $($text => ::std::option::Option::Some(Self::$variant),)+
                    _ => ::std::option::Option::None,
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
