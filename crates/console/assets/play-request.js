// Turns the form and the conversation into the request body of each protocol.
//
// A body holds `attachment:1` in place of a file's content, so that it can be read and edited.
// `fill` puts the content in its place just before the request is sent.

/** A mistake in the form, with the field that has it. */
export class FormMistake extends Error {
  /** @param {string} field @param {string} message */
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

export const EXAMPLE_TOOLS = JSON.stringify(
  [
    {
      name: "get_weather",
      description: "The present weather of a city.",
      parameters: {
        type: "object",
        properties: { city: { type: "string" } },
        required: ["city"],
      },
    },
  ],
  null,
  2,
);

export const EXAMPLE_RESULT = '{"sky": "light rain", "temperature_celsius": 14}';

/**
 * @param {string} field @param {string} label @param {string} text
 * @returns {number | undefined}
 */
function number(field, label, text) {
  if (text.trim() === "") return undefined;
  const value = Number(text);
  if (!Number.isFinite(value)) throw new FormMistake(field, `${label} must be a number.`);
  return value;
}

/** @param {Form} form @returns {Json[]} */
function readTools(form) {
  if (form.tools.trim() === "") return [];
  try {
    const tools = JSON.parse(form.tools);
    if (Array.isArray(tools)) return tools;
  } catch (error) {
    throw new FormMistake("tools", `The tools are not JSON: ${String(error)}`);
  }
  throw new FormMistake("tools", "The tools must be a JSON array.");
}

/**
 * A tool in the shape of the protocol. A tool that has a shape already is sent as it is.
 * @param {Json} tool @param {Protocol} protocol @returns {Json}
 */
function shapeTool(tool, protocol) {
  if (tool.type || tool.input_schema) return tool;
  const { name, description, parameters } = tool;
  if (protocol === "responses") return { type: "function", name, description, parameters };
  if (protocol === "messages") return { name, description, input_schema: parameters };
  return { type: "function", function: { name, description, parameters } };
}

/** @param {Form} form @returns {Json} the fields that the text protocols share */
function common(form) {
  const tools = readTools(form).map((tool) => shapeTool(tool, form.protocol));
  return {
    temperature: number("temperature", "Temperature", form.temperature),
    tools: tools.length > 0 ? tools : undefined,
    stream: form.stream || undefined,
  };
}

/** Numbers the files of a request in the order of the turns. */
class Files {
  constructor() {
    /** @type {Attachment[]} */
    this.all = [];
  }

  /** @param {Attachment} file @returns {string} */
  add(file) {
    this.all.push(file);
    return `attachment:${this.all.length}`;
  }
}

/** @param {Turn} turn @param {Files} files @returns {Json[]} */
function responsesItems(turn, files) {
  if (turn.role === "tools") {
    return turn.results.map(({ id, output }) =>
      ({ type: "function_call_output", call_id: id, output }));
  }
  if (turn.role === "assistant") {
    const calls = turn.calls.map((call) =>
      ({ type: "function_call", call_id: call.id, name: call.name, arguments: call.arguments }));
    return [...(turn.text ? [{ role: "assistant", content: turn.text }] : []), ...calls];
  }
  if (turn.files.length === 0) return [{ role: "user", content: turn.text }];
  const images = turn.files.map((file) => ({ type: "input_image", image_url: files.add(file) }));
  const text = turn.text ? [{ type: "input_text", text: turn.text }] : [];
  return [{ role: "user", content: [...images, ...text] }];
}

/** @param {Turn} turn @param {Files} files @returns {Json[]} */
function chatMessages(turn, files) {
  if (turn.role === "tools") {
    return turn.results.map(({ id, output }) =>
      ({ role: "tool", tool_call_id: id, content: output }));
  }
  if (turn.role === "assistant") {
    const calls = turn.calls.map((call) => ({
      id: call.id,
      type: "function",
      function: { name: call.name, arguments: call.arguments },
    }));
    const content = turn.text || (calls.length > 0 ? null : "");
    return [{ role: "assistant", content, tool_calls: calls.length > 0 ? calls : undefined }];
  }
  if (turn.files.length === 0) return [{ role: "user", content: turn.text }];
  const images = turn.files.map((file) =>
    ({ type: "image_url", image_url: { url: files.add(file) } }));
  const text = turn.text ? [{ type: "text", text: turn.text }] : [];
  return [{ role: "user", content: [...images, ...text] }];
}

/** @param {Turn} turn @param {Files} files @returns {Json[]} */
function messagesMessages(turn, files) {
  if (turn.role === "tools") {
    const content = turn.results.map(({ id, output }) =>
      ({ type: "tool_result", tool_use_id: id, content: output }));
    return [{ role: "user", content }];
  }
  const text = turn.text ? [{ type: "text", text: turn.text }] : [];
  if (turn.role === "assistant") {
    const calls = turn.calls.map((call) =>
      ({ type: "tool_use", id: call.id, name: call.name, input: parseObject(call.arguments) }));
    const content = [...turn.native, ...text, ...calls];
    // A message without content is refused, so a turn that gave nothing is left out.
    return content.length > 0 ? [{ role: "assistant", content }] : [];
  }
  if (turn.files.length === 0) return [{ role: "user", content: turn.text }];
  const images = turn.files.map((file) => ({
    type: "image",
    source: { type: "base64", media_type: file.mime, data: files.add(file) },
  }));
  return [{ role: "user", content: [...images, ...text] }];
}

/** @param {string} text @returns {Json} */
function parseObject(text) {
  try {
    const value = JSON.parse(text || "{}");
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // The model wrote no JSON; the next request should still be possible.
  }
  return {};
}

/** @param {Form} form @param {string} prompt @param {Files} files @param {Attachment[]} sources */
function imagesBody(form, prompt, files, sources) {
  const previews = number("previews", "Previews", form.previews);
  return {
    model: form.model || undefined,
    prompt,
    images: form.edits ? sources.map((file) => ({ image_url: files.add(file) })) : undefined,
    n: number("n", "Number of images", form.n),
    size: form.size || undefined,
    quality: form.quality || undefined,
    output_format: form.format || undefined,
    seed: number("seed", "Seed", form.seed),
    stream: form.stream || undefined,
    partial_images: form.stream ? previews : undefined,
  };
}

/**
 * The request for the next answer of a text model.
 * @param {Form} form @param {Turn[]} turns @returns {Draft}
 */
export function textDraft(form, turns) {
  const files = new Files();
  const limit = number("maxTokens", "Maximum tokens", form.maxTokens);
  const model = form.model;
  const instructions = form.instructions || undefined;
  const effort = form.effort || undefined;
  /** @type {Json} */
  let body;
  if (form.protocol === "responses") {
    const input = turns.flatMap((turn) => responsesItems(turn, files));
    const reasoning = effort && { effort };
    body = { model, instructions, input, max_output_tokens: limit, reasoning, ...common(form) };
  } else if (form.protocol === "messages") {
    const messages = turns.flatMap((turn) => messagesMessages(turn, files));
    // The protocol requires a limit.
    const max_tokens = limit ?? 1024;
    const output_config = effort && { effort };
    const rest = { output_config, ...common(form) };
    body = { model, max_tokens, system: instructions, messages, ...rest };
  } else {
    const system = instructions ? [{ role: "system", content: instructions }] : [];
    const messages = [...system, ...turns.flatMap((turn) => chatMessages(turn, files))];
    const options = form.stream ? { include_usage: true } : undefined;
    const rest = { max_completion_tokens: limit, reasoning_effort: effort, ...common(form) };
    body = { model, messages, ...rest, stream_options: options };
  }
  return { path: pathOf(form.protocol, false), body: compact(body), files: files.all };
}

/**
 * The request for images.
 * @param {Form} form @param {string} prompt @param {Attachment[]} sources
 * @param {Attachment | null} mask
 * @returns {Draft}
 */
export function imagesDraft(form, prompt, sources, mask) {
  const files = new Files();
  /** @type {Json} */
  const body = imagesBody(form, prompt, files, sources);
  if (form.edits && mask) body.mask = { image_url: files.add(mask) };
  return { path: pathOf("images", form.edits), body: compact(body), files: files.all };
}

/** @param {Protocol} protocol @param {boolean} edits */
export function pathOf(protocol, edits) {
  if (protocol === "images") return edits ? "/v1/images/edits" : "/v1/images/generations";
  return protocol === "chat" ? "/v1/chat/completions" : `/v1/${protocol}`;
}

/** Removes undefined members, which the code view would show. @param {Json} body @returns {Json} */
function compact(body) {
  return JSON.parse(JSON.stringify(body));
}

/**
 * The body with the content of its files. The Messages API wants base64, the others a data URL.
 * @param {unknown} value @param {Attachment[]} files @param {string} [key] @returns {any}
 */
export function fill(value, files, key = "") {
  if (typeof value === "string") {
    const match = /^attachment:(\d+)$/.exec(value);
    const file = match ? files[Number(match[1]) - 1] : undefined;
    if (!file) return value;
    return key === "data" ? file.url.slice(file.url.indexOf(",") + 1) : file.url;
  }
  if (Array.isArray(value)) return value.map((entry) => fill(entry, files));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, entry]) =>
    [name, fill(entry, files, name)]));
}
