// Responses over WebSocket with the OpenAI SDK: turns with a tool, which send only the new items.
//
// The upstream is the simulator, which counts the tokens of all turns that it gets.

import assert from "node:assert/strict";
import { before, describe, test } from "node:test";

import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";

import { gateway, KEYS, simulator } from "./programs.mjs";

const UPSTREAMS = ["responses", "chat", "messages"];
const QUESTION = { role: "user", content: "What is the weather in Oslo right now? Ask get_weather." };
const GET_WEATHER = {
  type: "function",
  name: "get_weather",
  parameters: { type: "object", properties: {}, required: [], additionalProperties: false },
  strict: true,
};
const ASK = { model: "theirs", store: false, tools: [GET_WEATHER] };

let base;
before(async () => {
  base = await simulator();
});

/** A connection, and a function that sends a request and returns the last event of its response. */
function connect(client) {
  const connection = new ResponsesWS(client);
  const received = connection.stream();
  const turn = async (request) => {
    connection.send({ type: "response.create", ...request });
    for (;;) {
      const { value } = await received.next();
      assert.notEqual(value.type, "error", value.error?.message);
      if (value.message?.type === "response.completed") return value.message.response;
    }
  };
  return { connection, turn };
}

for (const protocol of UPSTREAMS) {
  describe(`before an upstream of ${protocol}`, () => {
    test("ten turns are as over HTTP", async () => {
      const url = await gateway("--upstream", base, "--protocol", protocol);
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: KEYS.SLUICEGATE_TEXT_KEY, maxRetries: 0 });
      const { connection, turn } = connect(client);
      const asked = [];
      let answer;
      let next = QUESTION;
      for (let number = 0; number < 10; number += 1) {
        asked.push(...(answer?.output ?? []), next);
        answer = await turn({ ...ASK, input: [next], previous_response_id: answer?.id });
        const call = answer.output.find(({ type }) => type === "function_call");
        assert.equal(call?.name, number % 2 === 0 ? "get_weather" : undefined);
        next = call ? { type: "function_call_output", call_id: call.call_id, output: "Sunny." } : QUESTION;
      }
      connection.close();
      const overHttp = await client.responses.create({ ...ASK, input: asked });
      assert.deepEqual([answer.output[0].content, answer.usage], [overHttp.output[0].content, overHttp.usage]);
    });
  });
}

test("a refusal is an error of the SDK, and the connection goes on", async () => {
  const url = await gateway("--upstream", base, "--protocol", "responses");
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: KEYS.SLUICEGATE_TEXT_KEY, maxRetries: 0 });
  const { connection, turn } = connect(client);
  const unknown = { ...ASK, input: "Hello.", previous_response_id: "resp_unknown" };
  await assert.rejects(turn(unknown), /Previous response with id 'resp_unknown' not found/);
  assert.equal((await turn({ ...ASK, input: "Hello." })).status, "completed");
  connection.close();
});
