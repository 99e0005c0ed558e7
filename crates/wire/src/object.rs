//! Structs that are read from JSON objects and from nothing else.

/// Reads and writes structs as objects only.
///
/// What serde derives for a struct also takes an array of its fields' values, in order. In JSON nobody means
/// that: such an array is a wrong type. A struct that is named here carries `#[serde(remote = "Self")]` beside
/// its derives; a struct with a flattened field reads objects only by itself. For structs that are read and
/// never written there is [`read_objects!`](crate::read_objects).
///
/// ```
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// #[serde(remote = "Self")]
/// pub struct Name { pub name: String }
///
/// sluicegate_wire::objects!(Name);
///
/// let ada = Name { name: "ada".into() };
/// assert_eq!(serde_json::from_str::<Name>(r#"{"name":"ada"}"#).unwrap(), ada);
/// assert_eq!(serde_json::to_string(&ada).unwrap(), r#"{"name":"ada"}"#);
/// assert!(serde_json::from_str::<Name>(r#"["ada"]"#).is_err());
/// ```
#[macro_export]
macro_rules! objects {
    ($($name:ident),+ $(,)?) => {
        $crate::read_objects!($($name),+);

        $(impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, to: S) -> ::std::result::Result<S::Ok, S::Error> {
                // The method of the derive, which goes before the trait's.
                <$name>::serialize(self, to)
            }
        })+
    };
}

/// Reads structs from objects only; see [`objects!`](crate::objects).
#[macro_export]
macro_rules! read_objects {
    ($($name:ident),+ $(,)?) => {
        $(impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(from: D) -> ::std::result::Result<Self, D::Error> {
                struct Members;

                impl<'de> ::serde::de::Visitor<'de> for Members {
                    type Value = $name;

                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: ::serde::de::MapAccess<'de>>(
                        self,
                        members: A,
                    ) -> ::std::result::Result<$name, A::Error> {
                        <$name>::deserialize(::serde::de::value::MapAccessDeserializer::new(members))
                    }
                }

                from.deserialize_map(Members)
            }
        })+
    };
}
