// A Chat server whose answers the tests direct.

import { once } from "node:events";
import { createServer } from "node:http";

const chunk = (delta, finish = null) =>
  `data: ${JSON.stringify({
    id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "up",
    choices: [{ index: 0, delta, finish_reason: finish }],
  })}\n\n`;

/**
 * Starts the server. `play` writes the answer to each request; `closed` resolves to the time at which the
 * connection of the answer is closed.
 */
export async function upstream(play) {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    response.writeHead(200, { "content-type": "text/event-stream" });
    await play({
      body: JSON.parse(body),
      text: (content) => response.write(chunk({ content })),
      call: (name, args) => {
        const call = { index: 0, id: "call_1", type: "function", function: { name, arguments: args } };
        response.write(chunk({ tool_calls: [call] }));
        response.end(`${chunk({}, "tool_calls")}data: [DONE]\n\n`);
      },
      end: () => response.end(`${chunk({}, "stop")}data: [DONE]\n\n`),
      closed: once(response, "close").then(() => performance.timeOrigin + performance.now()),
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${server.address().port}/v1`, close: () => server.close() };
}
