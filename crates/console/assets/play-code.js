// Writes the present request as code: curl, Python and Node, with the key in the environment.

const KEY = "SLUICEGATE_API_KEY";

/**
 * @param {unknown} value @param {Style} style @param {string} indent @param {string} step
 * @param {string} [name] the key of the value
 * @returns {string}
 */
function literal(value, style, indent, step, name = "") {
  if (typeof value === "string") {
    const file = fileOf(value, style.files);
    if (file) return style.file(file, name === "data");
  }
  if (typeof value !== "object" || value === null) return style.plain(value);
  const isList = Array.isArray(value);
  const deeper = indent + step;
  const entries = isList
    ? value.map((entry) => literal(entry, style, deeper, step))
    : Object.entries(value).map(([key, entry]) =>
      `${style.key(key)}: ${literal(entry, style, deeper, step, key)}`);
  const [open, close] = isList ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) return open + close;
  const line = `${open}${entries.join(", ")}${close}`;
  const width = line.length + indent.length + name.length;
  if (width < 64 && !line.includes("\n")) return line;
  return `${open}\n${entries.map((entry) => deeper + entry).join(",\n")}\n${indent}${close}`;
}

/** @param {string} text @param {Attachment[]} files @returns {Attachment | undefined} */
function fileOf(text, files) {
  const match = /^attachment:(\d+)$/.exec(text);
  return match ? files[Number(match[1]) - 1] : undefined;
}

/** @param {string} text */
const shellQuote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
/** A file name that is safe in every language. @param {Attachment} file */
const fileName = (file) => file.name.replace(/[^\w.-]+/g, "_").replace(/^[-.]+/, "") || "file";

/** @param {Attachment[]} files @returns {Style} */
const jsonStyle = (files) => ({
  key: (name) => JSON.stringify(name),
  plain: (value) => JSON.stringify(value),
  file: (file, asBase64) => {
    const variable = `$file${files.indexOf(file) + 1}`;
    return asBase64 ? variable : `("data:${file.mime};base64," + ${variable})`;
  },
  files,
});

/** @param {Attachment[]} files @returns {Style} */
const nodeStyle = (files) => ({
  key: (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name)),
  plain: (value) => JSON.stringify(value),
  file: (file, asBase64) => {
    const base64 = `readFileSync(${JSON.stringify(fileName(file))}, "base64")`;
    return asBase64 ? base64 : `"data:${file.mime};base64," + ${base64}`;
  },
  files,
});

/** @param {Attachment[]} files @returns {Style} */
const pythonStyle = (files) => ({
  key: (name) => JSON.stringify(name),
  plain: (value) => {
    if (value === null) return "None";
    if (typeof value === "boolean") return value ? "True" : "False";
    return JSON.stringify(value);
  },
  file: (file, asBase64) => {
    const base64 = `base64_of(${JSON.stringify(fileName(file))})`;
    return asBase64 ? base64 : `"data:${file.mime};base64," + ${base64}`;
  },
  files,
});

/**
 * The request as code.
 * @param {Language} language @param {Protocol} protocol @param {Draft} draft
 * @param {string} address the public address, such as `http://127.0.0.1:8080`
 * @returns {string}
 */
export function asCode(language, protocol, draft, address) {
  const edits = draft.path.endsWith("/edits");
  if (language === "curl") return edits ? curlForm(draft, address) : curl(draft, address);
  if (language === "python") return python(protocol, draft, address, edits);
  return node(protocol, draft, address, edits);
}

/** @param {Draft} draft @param {string} address */
function curl(draft, address) {
  const { body, files, path } = draft;
  const json = literal(body, jsonStyle(files), "", "  ");
  const lines = [
    `curl ${body.stream ? "--no-buffer " : ""}${address}${path} \\`,
    `  --header "Authorization: Bearer $${KEY}" \\`,
    "  --header \"Content-Type: application/json\" \\",
  ];
  if (files.length === 0) return [...lines, `  --data ${shellQuote(json)}`].join("\n");
  // The content of a file is too long for a command line, so jq puts it into the body.
  const load = files.map((file, index) =>
    `  --rawfile file${index + 1} <(base64 < ${fileName(file)} | tr -d '\\n') \\`);
  return ["jq --null-input \\", ...load, `  ${shellQuote(json)} |`, ...lines, "  --data @-"]
    .join("\n");
}

/** @param {Draft} draft @param {string} address */
function curlForm({ body, files, path }, address) {
  const { images, mask, ...rest } = body;
  const part = (/** @type {string} */ name, /** @type {any} */ value) => {
    const file = fileOf(String(value?.image_url), files);
    return file ? [`  --form ${shellQuote(`${name}=@${fileName(file)};type=${file.mime}`)}`] : [];
  };
  const texts = Object.entries(rest).map(([name, value]) =>
    `  --form-string ${shellQuote(`${name}=${String(value)}`)}`);
  const sources = (Array.isArray(images) ? images : []).flatMap((image) => part("image[]", image));
  return [
    `curl ${body.stream ? "--no-buffer " : ""}${address}${path}`,
    `  --header "Authorization: Bearer $${KEY}"`,
    ...texts,
    ...sources,
    ...part("mask", mask),
  ].join(" \\\n");
}

/** @param {Protocol} protocol @param {boolean} edits */
function method(protocol, edits) {
  if (protocol === "images") return edits ? "images.edit" : "images.generate";
  return { responses: "responses", chat: "chat.completions", messages: "messages" }[protocol] +
    ".create";
}

/** The arguments that the Python packages know; they take others as `extra_body`. */
const KNOWN = {
  responses: "model input instructions max_output_tokens temperature top_p stream tools " +
    "tool_choice parallel_tool_calls reasoning text metadata store include truncation user " +
    "previous_response_id service_tier max_tool_calls top_logprobs stream_options background",
  chat: "model messages max_tokens max_completion_tokens temperature top_p n stop stream " +
    "stream_options tools tool_choice parallel_tool_calls response_format seed logprobs " +
    "frequency_penalty presence_penalty logit_bias top_logprobs metadata store user " +
    "reasoning_effort service_tier modalities",
  messages: "model max_tokens messages system temperature top_p top_k stop_sequences stream " +
    "tools tool_choice metadata thinking service_tier",
  images: "model prompt images mask n size quality background output_format output_compression " +
    "stream partial_images response_format moderation user input_fidelity",
};

/**
 * @param {Protocol} protocol @param {Draft} draft @param {string} address @param {boolean} edits
 */
function python(protocol, draft, address, edits) {
  const style = pythonStyle(draft.files);
  const known = KNOWN[protocol].split(" ");
  const entries = Object.entries(draft.body);
  const extra = entries.filter(([name]) => !known.includes(name));
  const lines = entries.filter(([name]) => known.includes(name)).map(([name, value]) =>
    edits && (name === "images" || name === "mask")
      ? pythonFile(name, value, draft.files)
      : `    ${name}=${literal(value, style, "    ", "    ", name)},`);
  if (extra.length > 0) {
    lines.push(`    extra_body=${literal(Object.fromEntries(extra), style, "    ", "    ")},`);
  }
  const isMessages = protocol === "messages";
  const [module, client] = isMessages ? ["anthropic", "Anthropic"] : ["openai", "OpenAI"];
  const base64 = draft.files.length > 0 && !edits ? BASE64_OF : "";
  const reads = base64 || protocol === "images" ? "import base64\n" : "";
  const url = JSON.stringify(isMessages ? address : `${address}/v1`);
  return `${reads}import os

from ${module} import ${client}
${base64}
client = ${client}(
    base_url=${url},
    api_key=os.environ["${KEY}"],
)
${draft.body.stream ? "events" : "answer"} = client.${method(protocol, edits)}(
${lines.join("\n")}
)
${PYTHON[protocol][draft.body.stream ? 0 : 1]}`;
}

const BASE64_OF = `

def base64_of(path):
    with open(path, "rb") as file:
        return base64.b64encode(file.read()).decode()

`;

/** @param {string} name @param {any} value @param {Attachment[]} files */
function pythonFile(name, value, files) {
  const open = (/** @type {any} */ image) => {
    const file = fileOf(String(image?.image_url), files);
    return file ? `open(${JSON.stringify(fileName(file))}, "rb")` : "None";
  };
  if (name === "mask") return `    mask=${open(value)},`;
  return `    image=[${(Array.isArray(value) ? value : []).map(open).join(", ")}],`;
}

const PYTHON_IMAGE = `    with open(NAME, "wb") as file:
        file.write(base64.b64decode(ITEM.b64_json))`;
/** The lines of the program that read the answer: of a stream, and without one. */
const PYTHON = {
  responses: [`for event in events:
    if event.type == "response.output_text.delta":
        print(event.delta, end="", flush=True)`, "print(answer.output_text)"],
  chat: [`for chunk in events:
    if chunk.choices and chunk.choices[0].delta.content:
        print(chunk.choices[0].delta.content, end="", flush=True)`,
  "print(answer.choices[0].message.content)"],
  messages: [`for event in events:
    if event.type == "content_block_delta" and event.delta.type == "text_delta":
        print(event.delta.text, end="", flush=True)`,
  `for block in answer.content:
    if block.type == "text":
        print(block.text)`],
  images: [`for number, event in enumerate(events):
    print(event.type)
${PYTHON_IMAGE.replace("NAME", 'f"image-{number}.png"').replace("ITEM", "event")}`,
  `for number, image in enumerate(answer.data):
${PYTHON_IMAGE.replace("NAME", 'f"image-{number}.png"').replace("ITEM", "image")}`],
};

/**
 * @param {Protocol} protocol @param {Draft} draft @param {string} address @param {boolean} edits
 */
function node(protocol, draft, address, edits) {
  const { images, mask, ...rest } = draft.body;
  const isMessages = protocol === "messages";
  const [module, client] = isMessages ? ["@anthropic-ai/sdk", "Anthropic"] : ["openai", "OpenAI"];
  const body = edits ? rest : draft.body;
  const style = nodeStyle(draft.files);
  const entries = Object.entries(body).map(([name, value]) =>
    `  ${style.key(name)}: ${literal(value, style, "  ", "  ", name)},`);
  if (edits) {
    const sources = Array.isArray(images) ? images : [];
    entries.push(`  image: [${sources.map((it) => nodeFile(it, draft.files)).join(", ")}],`);
    if (mask) entries.push(`  mask: ${nodeFile(mask, draft.files)},`);
  }
  const parts = [
    edits ? "createReadStream" : draft.files.length > 0 ? "readFileSync" : "",
    protocol === "images" ? "writeFileSync" : "",
  ].filter(Boolean).join(", ");
  const imports = parts ? `import { ${parts} } from "node:fs";\n` : "";
  const url = JSON.stringify(isMessages ? address : `${address}/v1`);
  return `${imports}import ${edits ? "OpenAI, { toFile }" : client} from "${module}";

const client = new ${client}({
  baseURL: ${url},
  apiKey: process.env.${KEY},
});
const ${draft.body.stream ? "events" : "answer"} = await client.${method(protocol, edits)}({
${entries.join("\n")}
});
${NODE[protocol][draft.body.stream ? 0 : 1]}`;
}

/** @param {any} image @param {Attachment[]} files */
function nodeFile(image, files) {
  const file = fileOf(String(image?.image_url), files);
  if (!file) return "undefined";
  const name = JSON.stringify(fileName(file));
  return `await toFile(createReadStream(${name}), ${name}, { type: "${file.mime}" })`;
}

const NODE = {
  responses: [`for await (const event of events) {
  if (event.type === "response.output_text.delta") process.stdout.write(event.delta);
}`, "console.log(answer.output_text);"],
  chat: [`for await (const chunk of events) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? "");
}`, "console.log(answer.choices[0].message.content);"],
  messages: [`for await (const event of events) {
  if (event.type === "content_block_delta" && event.delta.type === "text_delta") {
    process.stdout.write(event.delta.text);
  }
}`, `for (const block of answer.content) {
  if (block.type === "text") console.log(block.text);
}`],
  images: [`let number = 0;
for await (const event of events) {
  console.log(event.type);
  writeFileSync(\`image-\${number++}.png\`, event.b64_json, "base64");
}`, `answer.data.forEach((image, number) => {
  writeFileSync(\`image-\${number}.png\`, image.b64_json, "base64");
});`],
};
