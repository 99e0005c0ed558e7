// A gateway with an admin address, and a browser that opens its console.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createHash } from "node:crypto";
import { chromium } from "playwright-core";

const { SLUICEGATE_BIN, CHROMIUM = "/usr/bin/chromium" } = process.env;
/** The key of the admin API. */
export const ADMIN_KEY = "sg_test_admin_key_0000000000000000000";
/** The API key of every scope. */
export const API_KEY = "sg_test_console_key_00000000000000000";

/** Without these, the browser looks for hosts of its maker. */
const OFFLINE = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/**
 * Starts a gateway whose model `small` is at the upstream `url`, and returns the addresses of its console and
 * of its clients. Pages of `origins` may call it.
 */
export async function gateway(url, origins = []) {
  const folder = await mkdtemp(join(tmpdir(), "sluicegate-"));
  const config = join(folder, "sluicegate.toml");
  const hash = createHash("sha256").update(API_KEY).digest("hex");
  await writeFile(config, `
    cors = { origins = ${JSON.stringify(origins)} }
    [[keys]]
    name = "console"
    hash = "sha256:${hash}"
    scopes = ["text", "messages"]
    [[upstreams]]
    name = "house"
    protocol = "chat"
    base_url = "${url}"
    [[models]]
    id = "small"
    family = "text"
    protocols = ["responses", "chat", "messages"]
    targets = [{ upstream = "house", model = "up" }]
    [[quotas]]
    key = "*"
    requests_per_minute = 60000
    budget = { amount = "50.00", currency = "USD", window = "month" }
    [[prices]]
    model = "small"
    input = "0.15"
    cached_input = "0.075"
    output = "0.60"
    tiers = [{ service_tier = "flex", input = "0.075", output = "0.30" }]
    [state]
    accounting = "sqlite:${join(folder, "accounting.db")}"
    unknown_price = "free"
  `);
  return started(["--config", config], { SLUICEGATE_ADMIN_KEY: ADMIN_KEY }, folder);
}

/** Starts a gateway without a configuration: it makes its keys, and prints a link that signs in. */
export const firstTry = () => started([], {}, null);

async function started(options, variables, folder) {
  const args = ["serve", ...options, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
  const env = { ...process.env, ...variables };
  const child = spawn(SLUICEGATE_BIN, args, { env, stdio: ["ignore", "pipe", "ignore"] });
  const stop = async () => {
    child.kill("SIGINT");
    await once(child, "exit");
    if (folder) await rm(folder, { recursive: true, force: true });
  };
  let links;
  for await (const line of createInterface({ input: child.stdout })) {
    links ??= /^console: (?<link>(?<console>http:\/\/[^/]+\/)\S*)/.exec(line)?.groups;
    const address = /^sluicegate listens on (\S+)/.exec(line)?.[1];
    if (links && address) return { ...links, address, stop };
  }
  throw new Error(`${SLUICEGATE_BIN} did not start`);
}

/** Starts a browser. */
export const browser = () =>
  chromium.launch({ executablePath: CHROMIUM, args: OFFLINE });

/**
 * Opens a page of the console. Whatever must not happen is pushed to `problems`: errors of scripts,
 * violations of the content security policy, requests to other origins, and dialogs of the page.
 */
export async function open(started, address, problems, options = {}) {
  const context = await started.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  const origin = new URL(address).origin;
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    if (/Content Security Policy|Trusted/i.test(message.text())) problems.push(message.text());
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !/^(blob|data):/.test(url)) problems.push(`left the origin: ${url}`);
  });
  await page.goto(address);
  return page;
}

/** Opens the console, signs in with the admin key, and chooses the API key. */
export async function signedIn(started, address, problems, options = {}) {
  const page = await open(started, address, problems, options);
  await page.getByLabel("Admin key").fill(ADMIN_KEY);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Play", level: 1 }).waitFor();
  const settings = page.locator("details.play-settings");
  if (await settings.getAttribute("open") === null) await settings.locator("summary").first().click();
  await page.locator("#play-pasted").fill(API_KEY);
  await page.getByRole("button", { name: "Use this key" }).click();
  await page.waitForFunction(() => document.querySelector("#play-model")?.value === "small");
  return page;
}
