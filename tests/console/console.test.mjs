// The console in a real browser, in front of a real gateway.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { after, afterEach, before, test } from "node:test";
import { API_KEY, browser, firstTry, gateway, open, signedIn } from "./gateway.mjs";
import { upstream } from "./upstream.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PROTOCOLS = ["responses", "chat", "messages"];
const SCREENS = ["play", "live", "requests", "usage", "keys", "upstreams", "models", "about"];

/** Promised are 100 ms for a stop and 50 ms for a task; a busy machine takes longer, and a fault much longer. */
const TOLERANCE = 1000;
/** The promise for the first paint, in milliseconds: the best of a few keeps it on a busy machine, too. */
const FIRST_PAINT = 200;
const RELOADS = 5;

let chrome, house, gate, play;
const problems = [];

before(async () => {
  house = await upstream((answer) => play(answer));
  [chrome, gate] = await Promise.all([browser(), gateway(house.url)]);
});
after(async () => {
  await chrome?.close();
  await gate?.stop();
  house?.close();
});
afterEach(() => {
  assert.deepEqual(problems.splice(0), []);
});

const protocol = (page, name) =>
  page.locator(`input[name=play-protocol][value=${name}]`).check({ force: true });
const sendButton = (page) => page.locator(".composer .primary");
const isIdle = (page) => page.waitForFunction(
  () => document.querySelector(".composer .primary")?.textContent === "Send");

async function ask(page, text) {
  const answers = await page.locator(".answer").count();
  await page.fill("#play-message", text);
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction((n) => document.querySelectorAll(".answer").length > n, answers);
}

test("an answer and its events appear before it ends", async () => {
  for (const name of PROTOCOLS) {
    const finish = withResolvers();
    play = async ({ text, end }) => {
      text("Hello, **world**");
      await finish.promise;
      end();
    };
    const page = await signedIn(chrome, gate.console, problems);
    await protocol(page, name);
    await ask(page, "Hello");
    await page.locator(".answer-body strong", { hasText: "world" }).waitFor();
    assert.equal(await sendButton(page).textContent(), "Stop");
    assert.ok(await page.locator(".tape-row").count() >= 2, name);
    finish.resolve();
    await isIdle(page);
    const explain = page.locator(".answer-facts a");
    assert.match(await explain.getAttribute("href"), /^#\/requests\/req_/);
    await explain.click();
    await page.getByText("Attempt 1: 'house'").waitFor();
    await page.context().close();
  }
});

test("the events are still there after a click on Play", async () => {
  play = async ({ text, end }) => {
    for (let event = 0; event < 100; event++) text(`word ${event} `);
    end();
  };
  const page = await signedIn(chrome, gate.console, problems);
  await ask(page, "Many");
  await isIdle(page);
  const last = page.locator(".tape-row", { hasText: "end of the body" });
  await last.waitFor();
  // The last events are drawn again a moment after they have come.
  await page.waitForTimeout(300);
  await page.getByRole("link", { name: "Play", exact: true }).click();
  await page.waitForFunction(() => location.hash === "#/play");
  await page.waitForFunction(() => {
    const list = document.querySelector(".tape-list");
    return list.scrollTop + list.clientHeight >= list.scrollHeight - 1;
  });
  assert.ok(await last.isVisible());
  await page.context().close();
});

test("stop closes the upstream", async (context) => {
  const asked = withResolvers();
  play = async ({ text, closed }) => {
    text("Hello");
    asked.resolve({ closed });
    await closed;
  };
  const page = await signedIn(chrome, gate.console, problems);
  await ask(page, "Hello");
  await page.locator(".answer-body", { hasText: "Hello" }).waitFor();
  const { closed } = await asked.promise;
  await page.evaluate(() => {
    addEventListener("keydown", () => {
      window.stoppedAt = performance.timeOrigin + performance.now();
    }, { capture: true, once: true });
  });
  await page.keyboard.press("Escape");
  await isIdle(page);
  const took = await closed - await page.evaluate(() => window.stoppedAt);
  context.diagnostic(`the upstream was closed ${took.toFixed(1)} ms after the key`);
  assert.ok(took < TOLERANCE, `${took} ms`);
  await page.context().close();
});

test("ten thousand events keep the page responsive", async (context) => {
  play = async ({ text, end }) => {
    for (let event = 0; event < 10_000; event++) text(`word ${event} `);
    end();
  };
  const page = await signedIn(chrome, gate.console, problems);
  await protocol(page, "chat");
  await page.evaluate(() => {
    window.longest = 0;
    const seen = (list) => {
      for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
    };
    new PerformanceObserver(seen).observe({ type: "longtask" });
  });
  await ask(page, "Many");
  await page.locator(".answer-body", { hasText: "word 9999" }).waitFor();
  await isIdle(page);
  // Tasks of less than 50 ms are not reported.
  const longest = await page.evaluate(() => window.longest);
  context.diagnostic(longest === 0 ? "no task took 50 ms" : `the longest task took ${longest} ms`);
  assert.ok(longest < TOLERANCE, `a task took ${longest} ms`);
  await page.context().close();
});

test("a tool is called, gets its scripted result, and the second answer is shown", async () => {
  for (const name of PROTOCOLS) {
    play = async ({ body, text, call, end }) => {
      const result = body.messages.find((message) => message.role === "tool");
      if (!result) return call("get_weather", '{"city":"Delft"}');
      text(`The tool said: ${JSON.stringify(result.content)}`);
      return end();
    };
    const page = await signedIn(chrome, gate.console, problems);
    await protocol(page, name);
    await page.locator("details.tools summary").click();
    await page.getByText("Insert an example").click();
    await ask(page, "What is the weather in Delft?");
    await page.locator(".answer-body", { hasText: "The tool said" }).waitFor();
    await isIdle(page);
    await page.context().close();
  }
});

test("an operator ends a request in Live", async () => {
  play = async ({ text, closed }) => {
    text("Hello");
    await closed;
  };
  const page = await signedIn(chrome, gate.console, problems);
  await ask(page, "Hello");
  await page.locator(".answer-body", { hasText: "Hello" }).waitFor();
  const operator = await page.context().newPage();
  await operator.goto(`${gate.console}#/live`);
  await operator.getByRole("button", { name: /^End/ }).first().click();
  await operator.locator("dialog[open] button.danger, dialog[open] button.primary").first().click();
  await isIdle(page);
  await page.locator(".answer-facts a").click();
  await page.getByText("Ended as ended_by_operator").waitFor();
  await page.context().close();
});

test("hostile output does nothing", async () => {
  const hostile = "<img src=x onerror=alert(1)><script>alert(2)</script> "
    + "[link](javascript:alert(3)) ![image](https://evil.example/a.png) `</code><b>`";
  play = async ({ text, end }) => {
    text(hostile);
    end();
  };
  const page = await signedIn(chrome, gate.console, problems);
  await ask(page, hostile);
  await isIdle(page);
  const body = page.locator(".answer-body");
  assert.match(await body.textContent(), /<img src=x onerror=alert\(1\)>/);
  assert.equal(await page.locator(".answer-body img, .answer-body script, .answer-body b").count(), 0);
  for (const link of await page.locator(".answer-body a").all()) {
    assert.match(await link.getAttribute("href"), /^https?:/);
  }
  await page.context().close();
});

test("a revoked session asks for the key, and goes on", async () => {
  const page = await signedIn(chrome, gate.console, problems);
  await page.context().clearCookies();
  await page.goto(`${gate.console}#/upstreams`);
  await page.getByLabel("Admin key").waitFor();
  await page.context().close();
});

test("the keyboard reaches Play, sends a request, and reads its events", async () => {
  play = async ({ text, end }) => {
    text("Hello");
    end();
  };
  const page = await signedIn(chrome, gate.console, problems);
  await page.locator("#play-model").focus();
  for (let presses = 0; presses < 40; presses++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(() => document.activeElement?.id === "play-message")) break;
  }
  assert.equal(await page.evaluate(() => document.activeElement?.id), "play-message");
  await page.keyboard.type("Hello");
  await page.keyboard.press("Control+Enter");
  await page.locator(".answer-facts").waitFor();
  await page.locator(".tape-list").focus();
  await page.keyboard.press("ArrowDown");
  await page.getByRole("group", { name: "Raw data" }).waitFor();
  await page.context().close();
});

test("a key is made, shown once, and revoked", async () => {
  const page = await signedIn(chrome, gate.console, problems);
  await page.goto(`${gate.console}#/keys`);
  await page.getByRole("button", { name: /new key|make/i }).first().click();
  await page.getByLabel("Name").first().fill("mobile");
  await page.locator("dialog[open] input[type=checkbox]").first().check();
  await page.locator("dialog[open] button.primary").click();
  await page.getByText(/^sg_[\w-]{43}$/).first().waitFor();
  await page.context().close();
});

test("the printed link signs in once, and a picture has its previews in order", async () => {
  const first = await firstTry();
  try {
    const page = await open(chrome, first.link, problems);
    await page.getByRole("heading", { name: "Play", level: 1 }).waitFor();
    assert.ok(!page.url().includes("token"), page.url());
    await page.getByRole("button", { name: "A paper boat on a pond" }).click();
    await page.locator(".answer figure figcaption button").first().waitFor();
    await isIdle(page);
    assert.ok(await page.locator("input[name=play-protocol][value=images]").isChecked());
    const captions = await page.locator(".previews figcaption").allTextContents();
    assert.deepEqual(captions.map((it) => /\d/.exec(it)?.[0]), ["0", "1", "2"]);
    const widths = await page.locator(".answer figure img").evaluateAll(
      (images) => images.map((image) => image.naturalWidth > 0));
    assert.deepEqual(widths, [true, true, true, true]);
    await edit(page);
    const second = await open(chrome, first.link, problems);
    await second.getByText("This link was used before").waitFor();
  } finally {
    await first.stop();
  }
});

/** Edits the picture that is shown, with a second reference and a mask of a stroke and a rectangle. */
async function edit(page) {
  const answers = await page.locator(".answer").count();
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save" }).click();
  const picture = readFileSync(await (await saved).path());
  await page.getByRole("button", { name: "Use as reference" }).first().click();
  const reference = { name: "second.png", mimeType: "image/png", buffer: picture };
  await page.setInputFiles("input[type=file]", reference);
  await page.waitForFunction(() => document.querySelectorAll(".attachments li").length === 2);
  const stage = await page.locator(".mask-stage canvas").boundingBox();
  await page.mouse.move(stage.x + stage.width / 4, stage.y + stage.height / 4);
  await page.mouse.down();
  await page.mouse.move(stage.x + stage.width / 2, stage.y + stage.height / 2, { steps: 4 });
  await page.mouse.up();
  for (const [label, value] of [["Left", 10], ["Top", 10], ["Width", 60], ["Height", 40]]) {
    await page.getByLabel(label, { exact: true }).fill(String(value));
  }
  await page.getByRole("button", { name: "Add the rectangle" }).click();
  await page.locator(".mask-status", { hasText: "2 marks" }).waitFor();
  await ask(page, "Add a yellow sun");
  await isIdle(page);
  const facts = page.locator(".answer-facts").nth(answers);
  assert.match(await facts.textContent(), /End\s*completed/);
}

test("a page of a known origin calls the gateway, and another one does not", async () => {
  const site = createServer((_, response) => response.end("<!doctype html><title>A page</title>"));
  await new Promise((listening) => site.listen(0, "127.0.0.1", listening));
  const { port } = site.address();
  const own = await gateway(house.url, [`http://127.0.0.1:${port}`]);
  const context = await chrome.newContext();
  const models = async (host) => {
    const page = await context.newPage();
    await page.goto(`http://${host}:${port}/`);
    // The header makes the browser ask first, with a preflight.
    return page.evaluate(async ([url, key]) => {
      try {
        const answer = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
        return [answer.status, Boolean(answer.headers.get("x-request-id"))];
      } catch (error) {
        return error.name;
      }
    }, [`${own.address}/v1/models`, API_KEY]);
  };
  assert.deepEqual(await models("127.0.0.1"), [200, true]);
  assert.equal(await models("localhost"), "TypeError");
  await context.close();
  await own.stop();
  site.close();
});

test("axe finds nothing on any screen, wide and narrow, light and dark", async () => {
  play = async ({ text, end }) => {
    text("Hello");
    end();
  };
  for (const width of [390, 1440]) {
    for (const colorScheme of ["light", "dark"]) {
      const options = { viewport: { width, height: 900 }, colorScheme };
      const page = await signedIn(chrome, gate.console, problems, options);
      await ask(page, "Hello");
      await isIdle(page);
      // The policy of the page refuses a script element, and this is no part of the page.
      for (const screen of SCREENS) {
        await page.evaluate((id) => { location.hash = `#/${id}`; }, screen);
        await page.locator(`#main h1`).waitFor();
        await page.waitForTimeout(300);
        await page.evaluate(AXE);
        const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
        const violations = found.violations.map((it) =>
          `${it.id}: ${it.nodes.map((node) => node.target).join(", ")}`);
        assert.deepEqual(violations, [], `${screen} at ${width} px, ${colorScheme}`);
        const overflow = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.ok(overflow <= 0, `${screen} at ${width} px is ${overflow} px too wide`);
      }
      await page.context().close();
    }
  }
});

test("the page is painted soon, and its files are compressed", async (context) => {
  const page = await signedIn(chrome, gate.console, problems);
  const paints = [];
  for (let reload = 0; reload < RELOADS; reload++) {
    await page.reload();
    await page.getByRole("heading", { name: "Play", level: 1 }).waitFor();
    const paint = await page.waitForFunction(
      () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    paints.push(await paint.jsonValue());
  }
  context.diagnostic(`first contentful paint after ${paints.map((it) => it.toFixed(0)).join(", ")} ms`);
  assert.ok(Math.min(...paints) <= FIRST_PAINT, `${paints}`);
  const fresh = await open(chrome, gate.console, problems);
  await fresh.getByLabel("Admin key").waitFor();
  const transferred = await fresh.evaluate(() => {
    const files = performance.getEntries().filter((it) => /\/(console\/[\w-]+\.\w+)?$/.test(it.name));
    return files.map(({ name, encodedBodySize, decodedBodySize }) =>
      ({ name, encodedBodySize, decodedBodySize }));
  });
  const sum = transferred.reduce((all, { encodedBodySize }) => all + encodedBodySize, 0);
  context.diagnostic(`${transferred.length} files of ${sum} bytes`);
  assert.ok(transferred.length > 25 && sum > 0 && sum <= 80 * 1024, JSON.stringify(transferred));
  await fresh.context().close();
  await page.context().close();
});

test("no screen asks another origin", async () => {
  const page = await signedIn(chrome, gate.console, problems);
  const origins = new Set();
  page.on("request", (request) => origins.add(new URL(request.url()).origin));
  for (const screen of SCREENS) {
    await page.goto(`${gate.console}#/${screen}`);
    await page.reload();
    await page.locator("#main h1").waitFor();
    await page.waitForLoadState("load");
  }
  assert.deepEqual([...origins], [new URL(gate.console).origin]);
  await page.context().close();
});

test("the request as code has its effort, and the address of the gateway", async () => {
  const page = await signedIn(chrome, gate.console, problems);
  for (const [name, expected] of [
    ["responses", /"reasoning": \{"effort": "low"\}/],
    ["chat", /"reasoning_effort": "low"/],
    ["messages", /"output_config": \{"effort": "low"\}/],
  ]) {
    await protocol(page, name);
    await page.getByLabel("Reasoning effort").selectOption("low");
    await page.getByRole("tab", { name: "curl" }).click();
    const code = page.locator("#play-panel-curl pre");
    await page.waitForFunction(() => document.querySelector("#play-panel-curl pre")?.textContent);
    assert.match(await code.textContent(), expected);
    assert.ok((await code.textContent()).includes(`${gate.address}/v1/`), await code.textContent());
    await page.getByRole("tab", { name: "Message" }).click();
  }
  const efforts = await page.getByLabel("Reasoning effort").locator("option").allTextContents();
  assert.deepEqual(efforts, ["default", "low", "medium", "high", "xhigh", "max"]);
  await page.context().close();
});

test("changes of keys and prices are shown", async () => {
  const page = await signedIn(chrome, gate.console, problems);
  const name = await page.evaluate(async () => {
    const { api } = await import("/console/api.js");
    const limits = { concurrency: 4 };
    const made = await api("POST", "/admin/v1/keys", { name: "audited", scopes: ["text"], limits });
    await api("PATCH", `/admin/v1/keys/${made.id}`, { limits: { concurrency: 8 } });
    return made.name;
  });
  await page.goto(`${gate.console}#/keys`);
  const changes = page.getByRole("table", { name: "Changes of keys" });
  const first = changes.locator("tbody tr").first();
  await first.getByText(name).waitFor();
  assert.match(await first.textContent(), /changed.*limits: concurrency 4 → concurrency 8/);
  await page.goto(`${gate.console}#/usage`);
  const prices = page.getByRole("table", { name: "Prices" });
  assert.match(await prices.locator("tbody tr").textContent(), /^small0\.150\.0750\.60flex: input 0\.075/);
  await page.context().close();
});

test("the gateways that hold a shared limit are listed", async () => {
  const page = await signedIn(chrome, gate.console, problems);
  const limit = {
    limit: "all keys", scope: "", concurrency: 20, in_use: 4, requests: null, tokens: null,
    budget: "5.00", spent: "1.25", reserved: "0.00", degraded: false,
    lent: [
      { part: "concurrency", held: 6, free: 8, replicas: [
        { replica: "gate-1", held: 6, waiting: 0 }, { replica: "gate-2", held: 6, waiting: 2 }] },
      { part: "budget", held: "0.50", free: "3.25", replicas: [
        { replica: "gate-1", held: "0.50", waiting: "0.00" }] },
    ],
  };
  await page.route("**/admin/v1/limits?replicas=true", (route) => route.fulfill({ json: { limits: [limit] } }));
  await page.goto(`${gate.console}#/keys`);
  const holders = page.getByRole("table", { name: "Gateways that share all keys" });
  await holders.waitFor();
  assert.deepEqual(await holders.locator("tr").evaluateAll(
    (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent))), [
    ["Held by", "concurrency", "budget"],
    ["gate-1", "6", "0.50"],
    ["gate-2", "waits for 2 6", "–"],
    ["nobody", "8", "3.25"],
  ]);
  await page.context().close();
});

test("a page that is left open does not grow", async (context) => {
  const page = await signedIn(chrome, gate.console, problems);
  const session = await page.context().newCDPSession(page);
  const size = async () => {
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    const { nodes } = await session.send("Memory.getDOMCounters");
    return { heap: usedSize, nodes };
  };
  for (const screen of ["play", "live", "requests", "usage", "keys", "upstreams"]) {
    await page.evaluate((id) => { location.hash = `#/${id}`; }, screen);
    await page.locator("#main h1").waitFor();
    await pass(page, 4000);
    const before = await size();
    await pass(page, 20_000);
    const after = await size();
    const heap = after.heap - before.heap;
    context.diagnostic(`${screen}: ${heap} bytes and ${after.nodes - before.nodes} nodes more`);
    assert.ok(heap < 1_000_000, `${screen} grew by ${heap} bytes`);
    assert.ok(after.nodes < before.nodes + 1000, `${screen} has ${after.nodes} nodes`);
  }
  await page.context().close();
});

/** Lets so many requests pass in the stream of changes, a hundred at once, and waits until the last of them are drawn. */
const pass = (page, count) => page.evaluate(async (count) => {
  const { changes } = await import("/console/api.js");
  const request = (id) => ({
    request_id: `req_${id}`, client_request_id: null, at: new Date().toISOString(), route: "chat",
    key: "console", model: "small", stream: true, outcome: "completed", status: 200, code: null,
    cause: null, admission: null, attempts: [], left_out: [], input_tokens: 7,
    cache_read_tokens: 0, output_tokens: 3, cost: null, first_event_ms: 4, took_ms: 9,
    state: "streaming", target: "house", events: 3, age_ms: 9,
  });
  for (let passed = 0; passed < count; passed += 100) {
    const first = window.passed ?? 0;
    window.passed = first + 100;
    const requests = Array.from({ length: 100 }, (_, number) => request(first + number));
    for (const name of ["requests", "live"]) {
      changes.dispatchEvent(new CustomEvent(name, { detail: { requests } }));
    }
    await new Promise((drawn) => requestAnimationFrame(drawn));
  }
  // New rows are added over several frames: those of a slow machine are long.
  const elements = () => document.querySelectorAll("*").length;
  for (let [same, last] = [0, elements()]; same < 10;) {
    await new Promise((drawn) => requestAnimationFrame(drawn));
    same = elements() === last ? same + 1 : 0;
    last = elements();
  }
}, count);

function withResolvers() {
  let resolve;
  const promise = new Promise((done) => { resolve = done; });
  return { promise, resolve };
}
