// `client.images` of the OpenAI SDK: generate and edit, whole and streamed.

import assert from "node:assert/strict";
import { createReadStream } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { BLUE, MASK, RED, SIZE, seen } from "./pictures.mjs";
import { all, openais } from "./sdks.mjs";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const ask = { model: "model-image-2.5-flare", prompt: "A red circle above a blue sea.", quality: "low", seed: 7 };

let folder;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluicegate-"));
  await Promise.all([writeFile(join(folder, "red.png"), RED), writeFile(join(folder, "mask.png"), MASK)]);
});
after(() => rm(folder, { recursive: true }));

/** The pictures of a whole reply, checked with all that it tells. */
function pictures(reply, n = 1) {
  assert.equal(reply.data.length, n);
  assert.ok(Number.isInteger(reply.created));
  addUp(reply.usage);
  for (const { b64_json, generation_id } of reply.data) {
    const { encoding, size = reply.size } = seen(b64_json);
    assert.deepEqual([encoding, size], [reply.output_format, reply.size]);
    assert.match(generation_id, UUID);
  }
  return reply.data.map(({ b64_json }) => b64_json);
}

/** The final events of a stream, checked with its previews. */
function finals(events, kind, n = 1) {
  const types = new Set(events.map(({ type }) => type));
  assert.ok(types.isSubsetOf(new Set([`${kind}.partial_image`, `${kind}.completed`])), [...types].join());
  for (const { b64_json, output_format } of events) assert.equal(seen(b64_json).encoding, output_format);
  const ends = events.filter(({ type }) => type === `${kind}.completed`);
  for (const { usage, generation_id } of ends) {
    addUp(usage);
    assert.match(generation_id, UUID);
  }
  assert.equal(ends.length, n);
  assert.equal(events.at(-1), ends.at(-1));
  return ends.map(({ b64_json }) => b64_json);
}

function addUp(usage) {
  assert.equal(usage.total_tokens, usage.input_tokens + usage.output_tokens);
}

for (const { name, images: client, text, toFile, APIError } of openais) {
  const refusal = (status, code, param) => (error) => {
    assert.ok(error instanceof APIError);
    assert.deepEqual([error.status, error.code, error.param], [status, code, param]);
    assert.ok(error.requestID.startsWith("req_"));
    return true;
  };
  const file = (bytes, name = "a.png") => toFile(bytes, name, { type: "image/png" });
  const edit = async (change) => client.images.edit({ ...ask, size: "auto", image: await file(RED), ...change });

  describe(name, () => {
    test("a picture is made", async () => {
      const reply = await client.images.generate({ ...ask, size: "1024x1024" });
      pictures(reply);
      assert.deepEqual(
        [reply.size, reply.quality, reply.background, reply.output_format],
        ["1024x1024", "low", "opaque", "png"],
      );
      assert.ok(reply._request_id.startsWith("req_"));
    });

    test("the size is 1254x1254 when omitted", async () => {
      const reply = await client.images.generate(ask);
      pictures(reply);
      assert.equal(reply.size, "1254x1254");
    });

    for (const output_format of ["png", "jpeg", "webp"]) {
      test(`two pictures come back in ${output_format}`, async () => {
        const reply = await client.images.generate({ ...ask, size: "1024x1024", output_format, n: 2 });
        pictures(reply, 2);
        assert.equal(reply.output_format, output_format);
      });
    }

    test("pictures are streamed after their previews", async () => {
      const change = { ...ask, size: "1024x1024", n: 2 };
      const events = await all(client.images.generate({ ...change, stream: true, partial_images: 2 }));
      assert.deepEqual(finals(events, "image_generation", 2), pictures(await client.images.generate(change), 2));
      const previews = events.filter(({ type }) => type === "image_generation.partial_image");
      assert.deepEqual(previews.map((preview) => preview.partial_image_index), [0, 1, 0, 1]);
    });

    test("a reference comes as bytes, as a file and in a list", async () => {
      const forms = [
        await toFile(RED),
        await toFile(RED, "a.png"),
        await file(RED, 'é"b;.png'),
        new File([RED], "a.png", { type: "image/png" }),
        createReadStream(join(folder, "red.png")),
        [await file(RED)],
      ];
      const [expected] = pictures(await edit());
      for (const image of forms) assert.deepEqual(pictures(await edit({ image })), [expected]);
      assert.equal(seen(expected).size, SIZE);
    });

    test("two references and a mask are edited", async () => {
      const image = [await file(RED, "red.png"), await file(BLUE, "blue.png")];
      const [free] = pictures(await edit({ image }));
      const [masked] = pictures(await edit({ image, mask: await file(MASK) }));
      const [fromFile] = pictures(await edit({ image, mask: createReadStream(join(folder, "mask.png")) }));
      assert.notEqual(masked, free);
      assert.equal(fromFile, masked);
    });

    test("an edit is streamed after its previews", async () => {
      const mask = await file(MASK);
      const events = await all(edit({ mask, stream: true, partial_images: 1 }));
      assert.deepEqual(finals(events, "image_edit"), pictures(await edit({ mask })));
    });

    test("both forms of edits give one picture", async () => {
      const images = [{ image_url: `data:image/png;base64,${RED.toString("base64")}` }];
      const reply = await client.post("/images/edits", { body: { ...ask, size: "auto", images } });
      assert.deepEqual(pictures(reply), pictures(await edit()));
    });

    test("what is wrong is told", async () => {
      const { images } = client;
      const above = refusal(400, "integer_above_max_value", "partial_images");
      await assert.rejects(images.generate({ ...ask, partial_images: 4 }), above);
      await assert.rejects(edit({ partial_images: 4, stream: true }), above);
      const missing = refusal(400, "missing_required_parameter", "prompt");
      await assert.rejects(images.generate({ ...ask, prompt: undefined }), missing);
      await assert.rejects(edit({ prompt: undefined }), missing);
      await assert.rejects(edit({ image: undefined }), refusal(400, "missing_required_parameter", "image"));
      await assert.rejects(images.generate({ ...ask, model: "nope" }), refusal(404, "model_not_found", "model"));
      await assert.rejects(text.images.generate(ask), refusal(403, "insufficient_permissions", null));
    });
  });
}
