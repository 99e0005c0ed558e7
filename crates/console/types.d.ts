// The documents of the admin API as the console reads them. For the type check alone: browsers never load it.

declare namespace Api {
  /** A request in flight. */
  interface LiveRequest {
    request_id: string;
    at: string;
    route: string;
    key: string;
    model: string | null;
    stream: boolean;
    state: "waiting" | "asking" | "streaming";
    target: string | null;
    /** About one a token. */
    events: number;
    age_ms: number;
  }

  /** A target that was asked, or not asked because its circuit was open. Times count from the request. */
  interface Attempt {
    target: string;
    model: string | null;
    road: "relayed" | "translated" | "embedded";
    result: "answered" | "failed" | "circuit_open" | "cancelled";
    code: string | null;
    cause: string | null;
    upstream_request_id: string | null;
    dropped: string[];
    started_ms: number;
    answered_ms: number;
  }

  interface Admission {
    limits: { limit: string; key: string | null }[];
    refused_by: { limit: string; dimension: string; retry_after_ms: number | null } | null;
    queued_ms: number | null;
    degraded: boolean;
    reserved_tokens: number;
  }

  /** A request that has ended. */
  interface Request {
    request_id: string;
    client_request_id: string | null;
    at: string;
    route: string;
    key: string;
    model: string | null;
    stream: boolean;
    outcome: string;
    status: number;
    code: string | null;
    cause: string | null;
    /** Null if it ended before any limit was asked. */
    admission: Admission | null;
    attempts: Attempt[];
    /** Parts of the answer that the protocol of the client cannot express. */
    left_out: string[];
    input_tokens: number | null;
    cache_read_tokens: number | null;
    output_tokens: number | null;
    cost: string | null;
    first_event_ms: number | null;
    took_ms: number;
  }

  interface Explanation {
    text: string[];
    request: Request | null;
    /** The row of the store. */
    usage: Record<string, unknown> | null;
  }

  interface KeyLimits {
    concurrency?: number;
    requests_per_minute?: number;
    tokens_per_minute?: number;
    budget?: { amount: string; currency: string; window: string; zone?: string };
  }

  interface Key {
    id: string;
    name: string;
    hashes?: { hash: string; until: string | null }[];
    scopes: string[];
    models: string[] | null;
    expires: string | null;
    limits: KeyLimits | null;
    created: string;
    revoked: string | null;
  }

  interface Rate {
    limit: number;
    remaining: number;
    reset_ms: number;
  }

  /** A limit that is in use. */
  interface Limit {
    limit: string;
    scope: string;
    concurrency: number | null;
    in_use: number;
    requests: Rate | null;
    tokens: Rate | null;
    budget: string | null;
    spent: string | null;
    reserved: string;
    degraded: boolean;
    /** The parts that the store of the limits lends. */
    lent: {
      part: string;
      held: number | string;
      free: number | string;
      replicas?: Holder[];
    }[];
  }

  /** The part of a limit that a gateway holds: a number, or an amount of money. */
  interface Holder {
    replica: string;
    held: number | string;
    waiting: number | string;
  }

  interface AuditEntry {
    id: number;
    at: string;
    actor: string;
    action: "create" | "change" | "rotate" | "revoke";
    key: string;
    details: Record<string, any>;
  }

  interface AuditPage {
    entries: AuditEntry[];
    next: number | null;
  }

  /** The price of a model. Amounts of tokens are for a million of them. */
  interface Price extends Record<string, any> {
    model: string;
    upstream?: string;
    valid_from?: string;
    input: string;
    cached_input?: string;
    output: string;
    tiers?: PriceTier[];
    pictures?: { size: string; quality: string; price: string }[];
  }

  interface PriceTier extends Record<string, any> {
    above: number;
    service_tier?: string;
  }

  interface UsageSum {
    start?: string;
    key?: string;
    model?: string;
    requests: number;
    unpriced: number;
    inexact: number;
    input: number;
    cache_read: number;
    cache_write: number;
    output: number;
    reasoning: number;
    pictures: number;
    cost: string;
  }

  interface Host {
    host: string;
    circuit: "closed" | "open" | "half_open";
    probe_in_ms: number | null;
    idle_connections: number;
  }

  interface Upstream {
    name: string;
    /** Null for the embedded engine. */
    protocol: string | null;
    hosts: Host[];
    recent: {
      attempts: number;
      answered: number;
      failures: { code: string; count: number }[];
      answer_ms: { p50: number; p95: number } | null;
      input_tokens: number;
      cache_read_tokens: number;
    };
  }

  interface Road {
    protocol: string;
    road: "relayed" | "translated" | "embedded";
    drops: string[];
    refuses: string[];
  }

  interface Target {
    target: string;
    model: string | null;
    weight: number | null;
    roads: Road[];
  }

  interface Model {
    id: string;
    family: string;
    targets: Target[];
  }

  interface About {
    version: string;
    features: string[];
    started: string;
    uptime_seconds: number;
    /** The base addresses of the public API, such as `http://127.0.0.1:8080`. */
    listen: string[];
    figures: { name: string; value: string; command: string }[];
  }
}

/** A column of a table; `hidden` ones have a title for screen readers alone. */
interface Column {
  title: string;
  class?: string;
  hidden?: boolean;
}

/** The series of the usage plot. */
interface Measure {
  name: string;
  of: (sum: Api.UsageSum) => number;
  format: (value: number) => string;
}
