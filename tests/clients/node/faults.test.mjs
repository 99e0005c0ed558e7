// The SDKs behind a gateway whose upstreams fail: they raise, or hand out the event that says so.
//
// As in test_sdk_faults.py: the simulator draws each fault by a seed and knows whether anything is lost with it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { before, describe, test } from "node:test";

import Anthropic, { AnthropicError } from "@anthropic-ai/sdk";

import { configured, simulator } from "./programs.mjs";
import { openais } from "./sdks.mjs";

const { SLUICEGATE_SIMULATOR_BIN, SLUICEGATE_SDK_FAULTS = "100" } = process.env;
const SEEDS = Number(SLUICEGATE_SDK_FAULTS);
const KEY = "sg_test_upstreams_key_00000000000000000";
const SAID = "Hello, you there.";
const HONEST = `You said: ${SAID}`;
const messages = [{ role: "user", content: SAID }];
const TEXT = ["responses", "chat", "messages"];

/** A stream says that it failed. */
class FailureTold extends Error {}

/** What `fetch` itself raises when the connection breaks within a body, as it does in a long reply. */
const isBroken = (error) => error instanceof TypeError && error.message === "terminated";

/** Whether a stream is asked for under a seed. */
const streams = (seed) => Math.floor(seed / 3) % 4 !== 0;

let url;
before(async () => {
  url = await simulator();
});

/** A gateway with a model and an upstream for each seed, so that no breaker opens for what another one did. */
function gateway(family, upstreams) {
  const hash = createHash("sha256").update(KEY).digest("hex");
  const protocols = JSON.stringify(family === "text" ? TEXT : ["images_generations"]);
  const limits = ["[limits]", 'request_timeout = "8s"', 'stream_timeout = "8s"'];
  const lines = [...limits, "[[keys]]", 'name = "faults"', `hash = "sha256:${hash}"`];
  lines.push('scopes = ["text", "messages", "images"]');
  for (let seed = 0; seed < SEEDS; seed++) {
    lines.push("[[upstreams]]", `name = "upstream-${seed}"`, `base_url = "${url}"`);
    lines.push(`protocol = "${upstreams[seed % upstreams.length]}"`, 'head_timeout = "2s"', 'event_idle = "2s"');
  }
  for (let seed = 0; seed < SEEDS; seed++) {
    lines.push("[[models]]", `id = "model-${seed}"`, `family = "${family}"`, `protocols = ${protocols}`);
    lines.push(`targets = [{ upstream = "upstream-${seed}", model = "fault-${seed}" }]`);
    if (family === "text") lines.push("string_input = true");
  }
  return configured(lines);
}

/** What the first seeds do: for each the fault and whether it loses something, streamed or not. */
function faults() {
  const told = execFileSync(SLUICEGATE_SIMULATOR_BIN, ["--faults", String(SEEDS)], { encoding: "utf8" });
  const rows = told.trimEnd().split("\n").map((line) => line.trim().split(/\s+/));
  return rows.map(([seed, stream, lost, plain, lostPlain]) =>
    streams(Number(seed)) ? { name: stream, loses: lost === "loses" } : { name: plain, loses: lostPlain === "loses" },
  );
}

/** Asks under every seed, some at once, and holds what came of it against what the simulator did. */
async function campaign(ask, isRaised) {
  const drawn = faults();
  const told = [];
  let next = 0;
  const worker = async () => {
    while (next < SEEDS) {
      const seed = next++;
      try {
        told[seed] = { answer: await ask(`model-${seed}`, seed) };
      } catch (error) {
        told[seed] = { raised: isRaised(error), error };
      }
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  const wrong = told.flatMap(({ answer, raised, error }, seed) => {
    const isRight = answer === undefined ? raised : answer === HONEST && !drawn[seed].loses;
    return isRight ? [] : [`seed ${seed}, ${drawn[seed].name}: ${String(answer ?? error).slice(0, 200)}`];
  });
  const whole = told.filter(({ answer }) => answer === HONEST).length;
  assert.deepEqual(wrong, []);
  assert.ok(whole > 0 && whole < SEEDS / 2, `${whole} of ${SEEDS} are whole`);
}

/** The last event of a stream; those of failure are raised. */
async function last(stream, each = () => {}) {
  let event;
  for await (event of await stream) each(event);
  return event;
}

const asks = {
  responses: (client) => async (model, seed) => {
    const ask = { model, input: SAID };
    let response;
    if (streams(seed)) {
      const end = await last(client.responses.create({ ...ask, stream: true }));
      if (end?.type === "response.failed" || end?.type === "error") throw new FailureTold();
      if (end?.type !== "response.completed") return `without an end: ${end?.type}`;
      response = end.response;
    } else {
      response = await client.responses.create(ask);
    }
    if (response.status === "failed") throw new FailureTold();
    return response.output.flatMap(({ content }) => content.map(({ text }) => text)).join("");
  },

  chat: (client) => async (model, seed) => {
    if (!streams(seed)) {
      const [choice] = (await client.chat.completions.create({ model, messages })).choices;
      return choice.finish_reason === "stop" ? choice.message.content : choice.finish_reason;
    }
    let [text, finish] = ["", null];
    await last(client.chat.completions.create({ model, messages, stream: true }), ({ choices }) => {
      for (const { delta, finish_reason } of choices) {
        text += delta.content ?? "";
        finish = finish_reason ?? finish;
      }
    });
    return finish === "stop" ? text : `without an end: ${finish}`;
  },

  images: (client) => async (model, seed) => {
    const large = !streams(seed) && Math.floor(seed / 12) % 2 === 0;
    const ask = { model, prompt: SAID, size: large ? "1280x1024" : "64x64", output_format: large ? "jpeg" : "png" };
    let picture;
    if (streams(seed)) {
      const end = await last(client.images.generate({ ...ask, stream: true, partial_images: 2 }));
      if (end?.type !== "image_generation.completed") return `without an end: ${end?.type}`;
      picture = end.b64_json;
    } else {
      picture = (await client.images.generate(ask)).data?.[0]?.b64_json ?? "";
    }
    const tail = Buffer.from(picture, "base64").subarray(-2).toString("hex");
    return tail === "ffd9" || tail === "6082" ? HONEST : "half a picture";
  },
};

for (const { name, Client, APIError } of openais) {
  describe(name, () => {
    for (const [protocol, ask] of Object.entries(asks)) {
      const isOfImages = protocol === "images";
      test(`no fault is a success: ${protocol}`, async () => {
        const address = await gateway(isOfImages ? "images" : "text", isOfImages ? ["images"] : TEXT);
        const client = new Client({ baseURL: `${address}/v1`, apiKey: KEY, maxRetries: 0 });
        const isTold = (error) => error instanceof APIError || error instanceof FailureTold;
        await campaign(ask(client), (error) => isTold(error) || (isOfImages && isBroken(error)));
      });
    }
  });
}

describe("anthropic", () => {
  test("no fault is a success: messages", async () => {
    const client = new Anthropic({ baseURL: await gateway("text", TEXT), apiKey: KEY, maxRetries: 0 });
    const ask = async (model, seed) => {
      const body = { model, messages, max_tokens: 512 };
      if (!streams(seed)) return (await client.messages.create(body)).content[0].text;
      if (Math.floor(seed / 12) % 2 === 0) return (await client.messages.stream(body).finalMessage()).content[0].text;
      let text = "";
      const end = await last(client.messages.create({ ...body, stream: true }), ({ delta }) => {
        text += delta?.text ?? "";
      });
      return end?.type === "message_stop" ? text : `without an end: ${end?.type}`;
    };
    await campaign(ask, (error) => error instanceof AnthropicError);
  });
});
