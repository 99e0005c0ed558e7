//! The agents, and how each is started without a terminal.

use crate::gateway::KEYS;

/// A coding agent, in a configuration that uses one protocol.
pub(super) struct Agent {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// The protocol that it uses, for the page.
    pub(super) protocol: &'static str,
    /// The route of its requests in the log.
    pub(super) route: &'static str,
    pub(super) program: &'static str,
    /// False if it never offers tools.
    pub(super) calls_tools: bool,
    pub(super) start: fn(&Job) -> Start,
}

/// The task of an agent.
pub(super) struct Job<'a> {
    /// The address of the gateway.
    pub(super) gateway: &'a str,
    pub(super) model: &'a str,
    pub(super) prompt: &'a str,
}

/// The arguments and the environment of an agent.
pub(super) struct Start {
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(&'static str, String)>,
}

pub(super) const AGENTS: [Agent; 7] = [
    Agent {
        name: "codex",
        title: "Codex",
        program: "codex",
        start: codex,
        ..RESPONSES
    },
    Agent {
        name: "claude-code",
        title: "Claude Code",
        program: "claude",
        start: claude,
        ..MESSAGES
    },
    Agent {
        name: "opencode-responses",
        start: |job| opencode(job, "openai", TEXT_KEY),
        ..RESPONSES
    },
    Agent {
        name: "opencode-messages",
        start: |job| opencode(job, "anthropic", MESSAGES_KEY),
        ..MESSAGES
    },
    CHAT,
    Agent {
        name: "qwen-code",
        title: "Qwen Code",
        program: "qwen",
        start: qwen,
        ..CHAT
    },
    Agent {
        name: "aider",
        title: "aider",
        program: "aider",
        calls_tools: false,
        start: aider,
        ..CHAT
    },
];

/// OpenCode, which can use every protocol.
const CHAT: Agent = Agent {
    name: "opencode-chat",
    title: "OpenCode",
    protocol: "Chat",
    route: "chat_completions",
    program: "opencode",
    calls_tools: true,
    start: |job| opencode(job, "openai-compatible", TEXT_KEY),
};
const RESPONSES: Agent = Agent {
    protocol: "Responses",
    route: "responses",
    ..CHAT
};
const MESSAGES: Agent = Agent {
    protocol: "Messages",
    route: "messages",
    ..CHAT
};

fn codex(job: &Job) -> Start {
    let base_url = format!("{}/v1", job.gateway);
    let provider = format!(
        "model_providers.gateway={{ name = \"Gateway\", base_url = \"{base_url}\", env_key = \"SLUICEGATE_TEXT_KEY\", wire_api = \"responses\" }}"
    );
    let settings = [
        "model_provider=\"gateway\"",
        &provider,
        "model_reasoning_effort=\"low\"",
        "check_for_update_on_startup=false",
        "analytics.enabled=false",
        "features.plugins=false",
    ];
    let settings = settings.iter().flat_map(|setting| ["-c", *setting]);
    // Its sandbox needs features of the kernel that containers lack.
    let mode = [
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
    ];
    let args = ["exec", "--model", job.model]
        .into_iter()
        .chain(mode)
        .chain(settings);
    Start {
        args: args.chain([job.prompt]).map(str::to_owned).collect(),
        env: vec![("SLUICEGATE_TEXT_KEY", TEXT_KEY.to_owned())],
    }
}

fn claude(job: &Job) -> Start {
    let mode = ["--permission-mode", "acceptEdits"];
    let args = ["-p", "--model", job.model].into_iter().chain(mode);
    Start {
        args: args.chain([job.prompt]).map(str::to_owned).collect(),
        env: vec![
            ("ANTHROPIC_BASE_URL", job.gateway.to_owned()),
            ("ANTHROPIC_AUTH_TOKEN", MESSAGES_KEY.to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ],
    }
}

/// OpenCode with one of the packages for model servers that it includes.
fn opencode(job: &Job, package: &str, key: &str) -> Start {
    let config = serde_json::json!({
        "autoupdate": false,
        "share": "disabled",
        "provider": {"gateway": {
            "npm": format!("@ai-sdk/{package}"),
            "options": {"baseURL": format!("{}/v1", job.gateway), "apiKey": key},
            "models": {job.model: {}},
        }},
    });
    let model = format!("gateway/{}", job.model);
    Start {
        args: ["run", "--model", &model, job.prompt]
            .map(str::to_owned)
            .to_vec(),
        env: vec![
            ("OPENCODE_CONFIG_CONTENT", config.to_string()),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1".to_owned()),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
        ],
    }
}

fn qwen(job: &Job) -> Start {
    let mode = ["--auth-type", "openai", "--approval-mode", "auto-edit"];
    let args = mode.into_iter().chain(["--prompt", job.prompt]);
    Start {
        args: args.map(str::to_owned).collect(),
        env: vec![
            ("OPENAI_BASE_URL", format!("{}/v1", job.gateway)),
            ("OPENAI_API_KEY", TEXT_KEY.to_owned()),
            ("OPENAI_MODEL", job.model.to_owned()),
        ],
    }
}

fn aider(job: &Job) -> Start {
    let quiet = [
        "--no-analytics",
        "--no-check-update",
        "--no-git",
        "--no-pretty",
        "--no-show-model-warnings",
        "--no-show-release-notes",
        "--yes-always",
    ];
    let model = format!("openai/{}", job.model);
    let args = quiet
        .into_iter()
        .chain(["--model", &model, "--message", job.prompt]);
    Start {
        args: args.map(str::to_owned).collect(),
        env: vec![
            ("OPENAI_API_BASE", format!("{}/v1", job.gateway)),
            ("OPENAI_API_KEY", TEXT_KEY.to_owned()),
            ("LITELLM_LOCAL_MODEL_COST_MAP", "True".to_owned()),
        ],
    }
}

const TEXT_KEY: &str = KEYS[0].1;
const MESSAGES_KEY: &str = KEYS[1].1;
