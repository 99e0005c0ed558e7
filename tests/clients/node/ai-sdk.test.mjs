// The AI SDK with its defaults: conversations over Responses, in which a turn refers to the items of earlier answers by
// `item_reference`, because the SDK expects the server to keep them.
//
// The upstream is the simulator, which counts the tokens of all turns that it gets. If a reference were lost, the input
// of the next turn would be smaller.

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";

import * as provider from "@ai-sdk/openai";
import * as providerPrevious from "@ai-sdk/openai-previous";
import * as ai from "ai";
import * as aiPrevious from "ai-previous";

import { configured, gateway, KEYS, simulator } from "./programs.mjs";

const majors = [
  { name: "ai", ...ai, ...provider },
  { name: "ai, previous major", ...aiPrevious, ...providerPrevious },
];
const UPSTREAMS = ["responses", "chat", "messages"];
const REASONING = { openai: { forceReasoning: true, reasoningEffort: "low", reasoningSummary: "auto" } };
const NOT_KEPT =
  "input[1]: item_reference is not supported because this service keeps no state between requests; send the full " +
  "item instead (clients: set store to false).";

let base;
before(async () => {
  base = await simulator();
});

/** A gateway without a configuration file, which keeps answers. */
const keeping = (protocol) => gateway("--upstream", base, "--protocol", protocol);

/** A gateway with a configuration file that does not set `keep`. */
const forgetting = (protocol) => {
  const upstream = ["[[upstreams]]", 'name = "theirs"', `protocol = "${protocol}"`, `base_url = "${base}"`];
  const model = ["[[models]]", 'id = "theirs"', 'family = "text"', 'protocols = ["responses"]'];
  return configured([...upstream, ...model, 'targets = [{ upstream = "theirs" }]']);
};

/** A model of the SDK at a gateway, and the kinds of the input items of each request. */
function asked({ createOpenAI }, url) {
  const inputs = [];
  const recorded = (to, init) => {
    const { input, store } = JSON.parse(init.body);
    assert.equal(store, undefined);
    inputs.push(input.map(({ type, role }) => type ?? role));
    return fetch(to, init);
  };
  const apiKey = KEYS.SLUICEGATE_TEXT_KEY;
  const model = createOpenAI({ baseURL: `${url}/v1`, apiKey, fetch: recorded })("theirs");
  return { model, inputs };
}

/** What a turn brings, from either function of the SDK. */
const forms = {
  generateText: async ({ generateText }, turn) => taken(await generateText(turn)),
  streamText: async ({ streamText }, turn) => {
    let failure;
    const stream = streamText({ ...turn, onError: ({ error }) => (failure = error) });
    let text = "";
    for await (const piece of stream.textStream) text += piece;
    if (failure) throw failure;
    const names = ["text", "finishReason", "usage", "toolCalls", "toolResults", "warnings", "reasoningText", "response"];
    const values = await Promise.all(names.map((name) => stream[name]));
    const result = taken(Object.fromEntries(names.map((name, i) => [name, values[i]])));
    assert.equal(text, result.text);
    return result;
  },
};

function taken({ text, finishReason, usage, toolCalls, toolResults, warnings, reasoningText, response }) {
  assert.deepEqual(warnings ?? [], []);
  return {
    text,
    finishReason,
    usage: [usage.inputTokens, usage.outputTokens, usage.totalTokens],
    calls: toolCalls.map(({ toolName, input }) => [toolName, input]),
    results: toolResults.map(({ output }) => output),
    reasoning: reasoningText,
    messages: response.messages,
  };
}

/** Compares a turn with the literal values of a few of its members. */
function assertTurn(turn, wanted) {
  assert.deepEqual(Object.fromEntries(Object.keys(wanted).map((name) => [name, turn[name]])), wanted);
}

/** The tool of the conversations, which the SDK calls itself. */
function tools({ tool, jsonSchema }) {
  const city = { type: "string", enum: ["Oslo"] };
  const schema = { type: "object", properties: { city }, required: ["city"], additionalProperties: false };
  const execute = ({ city }) => `17 degrees in ${city}`;
  return { get_weather: tool({ description: "The weather now.", inputSchema: jsonSchema(schema), execute }) };
}

const said = (content) => ({ role: "user", content });

async function conversation(sdk, form, url) {
  const { model, inputs } = asked(sdk, url);
  const turn = (messages) => forms[form](sdk, { model, messages, maxRetries: 0 });
  const first = await turn([said("Hello.")]);
  const second = await turn([said("Hello."), ...first.messages, said("Bye.")]);
  return { first, second, inputs };
}

async function conversationWithTools(sdk, form, url, providerOptions) {
  const { model, inputs } = asked(sdk, url);
  const turn = (messages) =>
    forms[form](sdk, { model, messages, tools: tools(sdk), maxRetries: 0, providerOptions });
  const messages = [said("Ask get_weather.")];
  const first = await turn(messages);
  messages.push(...first.messages);
  const second = await turn(messages);
  messages.push(...second.messages, said("Bye."));
  const third = await turn(messages);
  return { first, second, third, inputs };
}

for (const sdk of majors) {
  for (const protocol of UPSTREAMS) {
    describe(`${sdk.name}, upstream of ${protocol}`, () => {
      let kept;
      before(async () => {
        kept = await keeping(protocol);
      });

      for (const form of Object.keys(forms)) {
        test(`${form}: the second turn refers to the first`, async () => {
          const { first, second, inputs } = await conversation(sdk, form, kept);
          assertTurn(first, { text: "You said: Hello.", finishReason: "stop", usage: [3, 3, 6] });
          assertTurn(second, { text: "You said: Bye.", finishReason: "stop", usage: [8, 3, 11] });
          assert.deepEqual(inputs, [["user"], ["user", "item_reference", "user"]]);
        });

        test(`${form}: a tool is called, and its result is answered`, async () => {
          const { first, second, third, inputs } = await conversationWithTools(sdk, form, kept);
          const calls = [["get_weather", { city: "Oslo" }]];
          const results = ["17 degrees in Oslo"];
          assertTurn(first, { text: "", finishReason: "tool-calls", usage: [25, 3, 28], calls, results });
          const text = "The tool said: 17 degrees in Oslo";
          assertTurn(second, { text, finishReason: "stop", usage: [30, 7, 37], calls: [], results: [] });
          assertTurn(third, { text: "You said: Bye.", finishReason: "stop", usage: [39, 3, 42] });
          const called = ["user", "function_call", "function_call_output"];
          assert.deepEqual(inputs, [["user"], called, [...called, "item_reference", "user"]]);
        });

        test(`${form}: reasoning is referred to, too`, async () => {
          const { first, second, third, inputs } = await conversationWithTools(sdk, form, kept, REASONING);
          const reasoning = "The user said something. I answer it.";
          assertTurn(first, { reasoning, finishReason: "tool-calls", calls: [["get_weather", { city: "Oslo" }]] });
          assertTurn(second, { reasoning, finishReason: "stop", text: "The tool said: 17 degrees in Oslo" });
          assertTurn(third, { reasoning, finishReason: "stop", text: "You said: Bye." });
          const called = ["user", "item_reference", "function_call", "function_call_output"];
          assert.deepEqual(inputs, [["user"], called, [...called, "item_reference", "item_reference", "user"]]);
        });

        test(`${form}: a reference to an answer that was not kept is refused`, async () => {
          const refused = conversation(sdk, form, await forgetting(protocol));
          await assert.rejects(refused, (error) => {
            assert.ok(sdk.APICallError.isInstance(error), String(error));
            const { code, param } = error.data.error;
            assert.deepEqual([error.statusCode, error.isRetryable, error.message], [400, false, NOT_KEPT]);
            assert.deepEqual([code, param], ["unsupported_item_reference", "input[1]"]);
            return true;
          });
        });
      }
    });
  }
}
