// The keys of the store: list, make, change, rotate, revoke; and how much of each limit is in use.
import {
  announce,
  clear,
  el,
  formatCount,
  formatMoney,
  formatMs,
  formatShort,
  formatTime,
  replace,
} from "./dom.js";
import { api } from "./api.js";
import {
  badge,
  bar,
  copyButton,
  empty,
  field,
  loader,
  openForm,
  row,
  show,
  table,
  tags,
  whenRequestsFinish,
  words,
} from "./parts.js";
import { auditLog } from "./audit.js";
import { keyForm } from "./key-form.js";

/** @type {Column[]} */
const COLUMNS = [
  { title: "Name" },
  { title: "May use" },
  { title: "Limits" },
  { title: "State" },
  { title: "Change", class: "num plain", hidden: true },
];

/** @type {import("./app.js").Screen} */
export const screen = {
  id: "keys",
  title: "Keys",
  mount(container) {
    const list = el("div");
    const limits = el("div");
    const known = new Map();
    const changes = auditLog((id) => known.get(id));
    const revoked = el("input", { type: "checkbox", onchange: () => void load() });
    const make = el(
      "button",
      { type: "button", class: "primary", hidden: true, onclick: () => edit(null, load) },
      "Make a key",
    );
    const load = loader(
      list,
      () => api("GET", `/admin/v1/keys?revoked=${revoked.checked}`),
      ({ keys }) => {
        make.hidden = toolbar.hidden = false;
        const hadFocus = list.contains(document.activeElement);
        replace(list, keyTable(keys, load));
        for (const { id, name } of keys) known.set(id, name);
        void changes.load();
        if (hadFocus) make.focus();
      },
    );
    const loadLimits = loader(
      limits,
      // Only the store of the limits knows the shares of each gateway, and it may be away.
      () =>
        api("GET", "/admin/v1/limits?replicas=true").catch(() => api("GET", "/admin/v1/limits")),
      (answer) => replace(limits, limitBars(answer.limits)),
      () => clear(limits),
    );
    const toolbar = el(
      "div",
      { class: "toolbar", hidden: true },
      make,
      el("label", { class: "check" }, revoked, "Show revoked keys"),
    );
    container.append(toolbar, list, limits, changes.node);
    void load();
    // Without a store, the list says so for both.
    return whenRequestsFinish(() => void loadLimits(), 2000);
  },
};

/**
 * @param {Api.Key[]} keys
 * @param {() => Promise<void>} reload
 */
function keyTable(keys, reload) {
  if (keys.length === 0) {
    return empty(
      "No key has been made yet",
      "A key that is made here works at once. Keys of the configuration are not listed.",
    );
  }
  return table(
    "Keys",
    COLUMNS,
    keys.map((key) =>
      row(COLUMNS, [
        [key.name, el("code", { class: "soft line" }, key.id)],
        [
          el("span", { class: "line" }, key.scopes.join(", ")),
          key.models ? tags(key.models) : el("span", { class: "soft" }, "every model"),
        ],
        limitLines(key.limits),
        state(key),
        key.revoked
          ? ""
          : el(
              "div",
              { class: "row-actions" },
              action("Change", key, () => edit(key, reload)),
              action("Rotate", key, () => rotate(key, reload)),
              action("Revoke", key, () => revoke(key, reload), "risky"),
            ),
      ]),
    ),
    "cards",
  );
}

/**
 * @param {string} word
 * @param {Api.Key} key
 * @param {() => void} onclick
 * @param {string} [kind]
 */
function action(word, key, onclick, kind = "") {
  return el(
    "button",
    { type: "button", class: `quiet ${kind}`, "aria-label": `${word} ${key.name}`, onclick },
    word,
  );
}

/** @param {Api.KeyLimits | null} limits */
function limitLines(limits) {
  const {
    concurrency,
    requests_per_minute: requests,
    tokens_per_minute: tokens,
    budget,
  } = limits ?? {};
  const lines = [
    concurrency && `${formatCount(concurrency)} at the same time`,
    requests && `${formatCount(requests)} requests/min`,
    tokens && `${formatCount(tokens)} tokens/min`,
    budget && `${formatMoney(budget.amount, budget.currency)} a ${budget.window}`,
  ].filter(Boolean);
  if (lines.length === 0) return el("span", { class: "soft" }, "none of its own");
  return el(
    "div",
    null,
    lines.map((line) => el("span", { class: "line" }, line)),
  );
}

/** @param {Api.Key} key */
function state(key) {
  if (key.revoked)
    return [badge("revoked", "idle"), el("span", { class: "soft line" }, formatTime(key.revoked))];
  const isExpired = key.expires !== null && Date.parse(key.expires) <= Date.now();
  const old = (key.hashes ?? []).filter(({ until }) => until && Date.parse(until) > Date.now());
  return el(
    "div",
    null,
    isExpired ? badge("expired", "warn") : badge("in use", "good"),
    el(
      "span",
      { class: "soft line" },
      key.expires ? `${isExpired ? "since" : "until"} ${formatTime(key.expires)}` : "never expires",
    ),
    old.map(({ until }) =>
      el("span", { class: "soft line" }, `old key accepted until ${formatTime(until)}`),
    ),
  );
}

/**
 * @param {Api.Key | null} key null to make one
 * @param {() => Promise<void>} reload
 */
function edit(key, reload) {
  const { content, read } = keyForm(key);
  openForm({
    title: key ? `Change ${key.name}` : "Make a key",
    content,
    action: key ? "Change" : "Make the key",
    submit: async () => {
      const form = read();
      if (!key) {
        const made = await api("POST", "/admin/v1/keys", form);
        void reload();
        return () => showKey(made.key, made.name);
      }
      if (Object.keys(form).length > 0) await api("PATCH", `/admin/v1/keys/${key.id}`, form);
      announce("The key was changed");
      void reload();
    },
  });
}

/**
 * Shows a key the only time that anybody can see it.
 * @param {string} key
 * @param {string} name
 */
function showKey(key, name) {
  const dialog = el("dialog", { "aria-labelledby": "made-title" });
  dialog.append(
    el(
      "div",
      { class: "dialog-body" },
      el("h2", { id: "made-title" }, `The key ${name}`),
      el("p", null, "Copy it now. The gateway keeps only its hash, so nobody can see it again."),
      el("div", { class: "secret" }, el("code", null, key), copyButton(key, "the key")),
      el(
        "div",
        { class: "actions" },
        el("button", { type: "button", class: "primary", onclick: () => dialog.close() }, "Done"),
      ),
    ),
  );
  show(dialog);
}

/**
 * @param {Api.Key} key
 * @param {() => Promise<void>} reload
 */
function rotate(key, reload) {
  const overlap = el(
    "select",
    null,
    [
      ["0s", "not at all"],
      ["1h", "for an hour"],
      ["24h", "for a day"],
      ["7d", "for 7 days"],
    ].map(([value, word]) => el("option", { value, selected: value === "24h" }, word)),
  );
  openForm({
    title: `Rotate ${key.name}`,
    content: [
      el("p", null, "Makes a new key with the same name, models and limits."),
      field("Accept the old key", overlap),
    ],
    action: "Rotate",
    submit: async () => {
      const made = await api("POST", `/admin/v1/keys/${key.id}/rotate`, { overlap: overlap.value });
      void reload();
      return () => showKey(made.key, key.name);
    },
  });
}

/**
 * @param {Api.Key} key
 * @param {() => Promise<void>} reload
 */
function revoke(key, reload) {
  const streams = el("input", { type: "checkbox" });
  openForm({
    title: `Revoke ${key.name}?`,
    content: [
      el(
        "p",
        null,
        "Its requests are refused, here at once and on other gateways within seconds. " +
          "This cannot be undone.",
      ),
      el("label", { class: "check" }, streams, "Also end its running streams"),
    ],
    action: "Revoke",
    isDangerous: true,
    cancel: "Keep it",
    submit: async () => {
      await api("DELETE", `/admin/v1/keys/${key.id}${streams.checked ? "?streams=end" : ""}`);
      announce(`${key.name} is revoked`);
      void reload();
    },
  });
}

/** @param {Api.Limit[]} limits */
function limitBars(limits) {
  const shown = limits
    .map((limit) => ({ limit, bars: barsOf(limit) }))
    .filter(({ bars }) => bars.length > 0);
  return el(
    "section",
    { class: "section" },
    el("h2", null, "Limits in use"),
    shown.length === 0
      ? el("p", { class: "soft" }, "No request counts against a limit now.")
      : el(
          "ul",
          { class: "limit-list" },
          shown.map(({ limit, bars }) =>
            el(
              "li",
              null,
              el(
                "h3",
                null,
                limit.scope || "All keys",
                limit.limit !== "all keys" && el("span", { class: "soft" }, ` ${limit.limit}`),
                limit.degraded && [" ", badge("the store does not answer", "warn")],
              ),
              bars,
              holders(limit),
            ),
          ),
        ),
  );
}

/**
 * The gateways that hold a part of a limit that they share.
 * @param {Api.Limit} limit
 */
function holders({ limit, scope, lent }) {
  const all = lent.flatMap(({ replicas }) => (replicas ?? []).map(({ replica }) => replica));
  const names = [...new Set(all)].sort();
  if (names.length === 0) return null;
  const columns = [
    { title: "Held by" },
    ...lent.map(({ part }) => ({ title: words(part), class: "num" })),
  ];
  const rows = names.map((name) =>
    row(columns, [
      name,
      ...lent.map(({ replicas }) => held(replicas?.find(({ replica }) => replica === name))),
    ]),
  );
  rows.push(row(columns, ["nobody", ...lent.map(({ free }) => quantity(free))]));
  return table(`Gateways that share ${limit} ${scope}`, columns, rows, "holders");
}

/** @param {Api.Holder | undefined} holder */
function held(holder) {
  if (!holder) return "–";
  const isWaiting = Number(holder.waiting) > 0;
  const waits = `waits for ${quantity(holder.waiting)} `;
  return [isWaiting && el("span", { class: "soft" }, waits), quantity(holder.held)];
}

/** @param {number | string} amount a number, or an amount of money */
function quantity(amount) {
  return typeof amount === "number" ? formatCount(amount) : formatMoney(amount);
}

/** @param {Api.Limit} limit */
function barsOf(limit) {
  const { concurrency, in_use: inUse, requests, tokens, budget, spent, reserved } = limit;
  const bars = [];
  if (concurrency !== null)
    bars.push(
      bar(
        "at the same time",
        inUse,
        concurrency,
        `${formatCount(inUse)} of ${formatCount(concurrency)}`,
      ),
    );
  if (requests) bars.push(rate("requests/min", requests));
  if (tokens) bars.push(rate("tokens/min", tokens));
  if (budget !== null) {
    const more = Number(reserved) > 0 ? `, ${formatMoney(reserved)} reserved` : "";
    bars.push(
      bar(
        "budget",
        Number(spent),
        Number(budget),
        `${formatMoney(spent ?? "0")} of ${formatMoney(budget)}${more}`,
        Number(reserved),
      ),
    );
  }
  return bars;
}

/**
 * @param {string} name
 * @param {Api.Rate} rate
 */
function rate(name, { limit, remaining, reset_ms: reset }) {
  const used = Math.max(0, limit - remaining);
  const free = used >= limit / 2 ? `, free in ${formatMs(reset)}` : "";
  return bar(name, used, limit, `${formatShort(used)} of ${formatShort(limit)}${free}`);
}
