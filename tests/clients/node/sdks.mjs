// The SDKs, each with a client for every key of a gateway with its embedded engines.

import Anthropic from "@anthropic-ai/sdk";
import OpenAI, { APIError, toFile } from "openai";
import OpenAIPrevious, { APIError as APIErrorPrevious, toFile as toFilePrevious } from "openai-previous";

import { gateway, KEYS } from "./programs.mjs";

const { SLUICEGATE_TEXT_KEY, SLUICEGATE_MESSAGES_KEY, SLUICEGATE_IMAGE_KEY } = KEYS;
const url = await gateway();

// One try each, so that no failure is hidden.
const once = { maxRetries: 0, timeout: 120_000 };

function openai(name, Client, helpers) {
  const client = (apiKey) => new Client({ baseURL: `${url}/v1`, apiKey, ...once });
  return { name, Client, text: client(SLUICEGATE_TEXT_KEY), images: client(SLUICEGATE_IMAGE_KEY), ...helpers };
}

export const openais = [
  openai("openai", OpenAI, { toFile, APIError }),
  openai("openai, previous major", OpenAIPrevious, { toFile: toFilePrevious, APIError: APIErrorPrevious }),
];

export const anthropic = new Anthropic({ baseURL: url, apiKey: SLUICEGATE_MESSAGES_KEY, ...once });

/** Everything that a stream brings. */
export async function all(stream) {
  const events = [];
  for await (const event of await stream) events.push(event);
  return events;
}
