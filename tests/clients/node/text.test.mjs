// A short round through the endpoints of text: whole, streamed, refused.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { all, anthropic, openais } from "./sdks.mjs";

const messages = [{ role: "user", content: "What is 2 plus 2?" }];

for (const { name, text: client, APIError } of openais) {
  describe(name, () => {
    test("models are listed", async () => {
      const ids = (await all(client.models.list())).map(({ id }) => id);
      assert.ok(ids.includes("alt-flash"));
      assert.equal((await client.models.retrieve("alt-flash")).id, "alt-flash");
    });

    test("a response is made and streamed", async () => {
      const ask = { model: "alt-flash", input: messages, temperature: 0, max_output_tokens: 32 };
      const whole = await client.responses.create({ ...ask, reasoning: { effort: "none" } });
      assert.ok(whole.output_text);
      const stream = client.responses.stream({ ...ask, reasoning: { effort: "none" } });
      const deltas = (await all(stream)).filter(({ type }) => type === "response.output_text.delta");
      assert.equal(deltas.map(({ delta }) => delta).join(""), whole.output_text);
      assert.deepEqual((await stream.finalResponse()).usage, whole.usage);
    });

    test("a completion is made and streamed", async () => {
      const ask = { model: "alt-flash", messages, temperature: 0, max_tokens: 32, reasoning_effort: "none" };
      const [choice] = (await client.chat.completions.create(ask)).choices;
      assert.ok(choice.message.content);
      const chunks = await all(client.chat.completions.create({ ...ask, stream: true }));
      const pieces = chunks.flatMap((chunk) => chunk.choices.map(({ delta }) => delta.content ?? ""));
      assert.equal(pieces.join(""), choice.message.content);
      assert.equal(chunks.at(-1).choices[0].finish_reason, choice.finish_reason);
    });

    test("a refusal is raised", async () => {
      const refused = client.responses.create({ model: "model-5.5", input: "Say hello.", stream: true });
      await assert.rejects(refused, (error) => {
        assert.ok(error instanceof APIError);
        assert.deepEqual([error.status, error.code, error.param], [400, "invalid_type", "input"]);
        return true;
      });
    });
  });
}

describe("anthropic", () => {
  const ask = { model: "msg-sonnet-5", messages, max_tokens: 32, temperature: 0 };

  test("a message is made and streamed", async () => {
    const whole = await anthropic.messages.create(ask);
    assert.equal(whole.content[0].type, "text");
    const stream = anthropic.messages.stream(ask);
    const final = await stream.finalMessage();
    assert.deepEqual([final.content, final.stop_reason], [whole.content, whole.stop_reason]);
    assert.deepEqual(final.usage.output_tokens, whole.usage.output_tokens);
  });

  test("models are listed and tokens counted", async () => {
    const ids = (await all(anthropic.models.list())).map(({ id }) => id);
    assert.ok(ids.includes("msg-sonnet-5"));
    assert.ok((await anthropic.messages.countTokens({ model: "msg-sonnet-5", messages })).input_tokens > 0);
  });

  test("a refusal is raised", async () => {
    const refused = anthropic.messages.create({ ...ask, model: "nope" });
    await assert.rejects(refused, { status: 404, type: "not_found_error" });
  });
});
