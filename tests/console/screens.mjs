// `npm run screens FOLDER`: screenshots of each screen, wide and narrow, light and dark, of a gateway with
// some requests behind it. SLUICEGATE_BIN names the gateway.

import { mkdir, writeFile } from "node:fs/promises";
import { API_KEY, browser, gateway, signedIn } from "./gateway.mjs";
import { upstream } from "./upstream.mjs";

const SCREENS = ["play", "live", "requests", "request", "usage", "keys", "upstreams", "models", "about"];
const ANSWER = [
  "A **sluice gate** holds water back and lets it through in measured amounts:\n\n",
  "1. The gate is lifted by a rack.\n", "2. Water passes *below* the gate.\n",
  "3. The level behind it falls slowly.\n\n",
  "```rust\nlet flow = gate.open(0.25);\n```\n",
];

/** Answers word by word; a request for a slow answer stays open. */
async function answer({ body, text, end, closed }) {
  const asked = JSON.stringify(body.messages.at(-1));
  for (const part of ANSWER.flatMap((line) => line.split(/(?<= )/))) {
    text(part);
    await new Promise((resume) => setTimeout(resume, 8));
  }
  if (asked.includes("slowly")) await closed;
  else end();
}

/** Sends requests of both kinds, so that no screen is empty. */
async function fill(page) {
  await page.evaluate(async (key) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json",
      "x-sluicegate-console": "1" };
    const post = (path, body) =>
      fetch(`/play/v1/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    const messages = [{ role: "user", content: "How does a sluice gate work?" }];
    for (let turn = 0; turn < 6; turn++) {
      await (await post("chat/completions", { model: "small", messages })).text();
      await (await post("messages", { model: "small", max_tokens: 64, top_k: 4, messages })).text();
      await (await post("chat/completions", { model: "absent", messages })).text();
    }
    const slowly = [{ role: "user", content: "Answer slowly." }];
    void post("chat/completions", { model: "small", messages: slowly, stream: true });
    void post("messages", { model: "small", max_tokens: 64, messages: slowly, stream: true });
  }, API_KEY);
}

/** Makes a key, and changes its limits. */
const makeKey = (page) => page.evaluate(async () => {
  const { api } = await import("/console/api.js");
  const key = { name: "mobile", scopes: ["text", "messages"], limits: { concurrency: 8 } };
  const { id } = await api("POST", "/admin/v1/keys", key);
  await api("PATCH", `/admin/v1/keys/${id}`, { models: ["small"], expires: "90d" });
});

/** The address of the newest request of Messages, as the screen of its explanation. */
const explained = (page) => page.evaluate(async () => {
  const { api } = await import("/console/api.js");
  const { requests } = await api("GET", "/admin/v1/requests");
  return `requests/${requests.find(({ route }) => route === "messages").request_id}`;
});

/** A screenshot as WebP, which Playwright itself does not write. */
async function capture(page) {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 85 });
  return Buffer.from(data, "base64");
}

const [folder = "screens"] = process.argv.slice(2);
await mkdir(folder, { recursive: true });
const house = await upstream(answer);
const [chrome, gate] = await Promise.all([browser(), gateway(house.url)]);
let isFirst = true;
try {
  for (const width of [1440, 390]) {
    for (const colorScheme of ["light", "dark"]) {
      const options = { viewport: { width, height: 900 }, colorScheme, deviceScaleFactor: 1.5 };
      const page = await signedIn(chrome, gate.console, [], options);
      await fill(page);
      await page.fill("#play-message", "How does a sluice gate work?");
      await page.keyboard.press("Control+Enter");
      await page.locator(".answer-facts").waitFor();
      await page.mouse.move(0, 0);
      if (isFirst) await makeKey(page);
      isFirst = false;
      for (const screen of SCREENS) {
        const address = screen === "request" ? await explained(page) : screen;
        await page.evaluate((hash) => { location.hash = `#/${hash}`; }, address);
        // The stream of changes has an event a second.
        await page.waitForTimeout(1500);
        const path = `${folder}/${screen}-${width}-${colorScheme}.webp`;
        await writeFile(path, await capture(page));
        console.log(path);
      }
      await page.context().close();
    }
  }
} finally {
  await chrome.close();
  await gate.stop();
  house.close();
}
process.exit(0);
