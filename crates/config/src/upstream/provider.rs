//! The vendors of upstreams, in the words of the conventions for telemetry of generative AI:
//! <https://github.com/open-telemetry/semantic-conventions-genai/blob/v0.1.0/docs/registry/attributes/gen-ai.md>.

use super::{Protocol, Upstream};

impl Upstream {
    /// The vendor of its preset, or else the vendor of its protocol. By the conventions, it says which form
    /// the telemetry has, and not who runs the server.
    pub fn provider(&self) -> &'static str {
        let preset = self.preset.as_deref();
        let known = preset.and_then(|preset| PROVIDERS.iter().find(|(name, _)| *name == preset));
        match (known, self.protocol()) {
            (Some((_, provider)), _) => provider,
            (None, Protocol::Messages) => "anthropic",
            (None, Protocol::Responses | Protocol::Chat | Protocol::Images) => "openai",
        }
    }
}

/// The presets of vendors that the conventions know.
const PROVIDERS: [(&str, &str); 10] = [
    ("openai", "openai"),
    ("azure", "azure.ai.openai"),
    ("anthropic", "anthropic"),
    ("bedrock", "aws.bedrock"),
    ("vertex", "gcp.vertex_ai"),
    ("gemini", "gcp.gemini"),
    ("groq", "groq"),
    ("mistral", "mistral_ai"),
    ("deepseek", "deepseek"),
    ("xai", "x_ai"),
];

#[cfg(test)]
mod tests {
    use super::PROVIDERS;
    use crate::Config;
    use crate::upstream::preset::Preset;

    #[test]
    fn the_provider_follows_from_the_preset_or_the_protocol() {
        for (settings, expected) in [
            (
                "preset = \"azure\"\nbase_url = \"http://a\"",
                "azure.ai.openai",
            ),
            ("preset = \"gemini\"", "gcp.gemini"),
            ("preset = \"ollama\"\nbase_url = \"http://a\"", "openai"),
            (
                "protocol = \"messages\"\nbase_url = \"http://a\"",
                "anthropic",
            ),
            ("protocol = \"images\"\nbase_url = \"http://a\"", "openai"),
        ] {
            let text = format!("[[upstreams]]\nname = \"a\"\n{settings}\n");
            let config = Config::parse(&text).unwrap();
            assert_eq!(config.upstreams[0].provider(), expected, "{settings}");
        }
    }

    #[test]
    fn the_presets_of_providers_exist() {
        for (preset, _) in PROVIDERS {
            assert!(Preset::find(preset).is_ok(), "{preset}");
        }
    }
}
