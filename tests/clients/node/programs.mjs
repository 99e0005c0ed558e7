// The gateway and the simulator as child processes, which end with the tests of a file.

import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";

const { SLUICEGATE_BIN, SLUICEGATE_SIMULATOR_BIN } = process.env;

/** The keys of every gateway, by the variables that name them. */
export const KEYS = {
  SLUICEGATE_TEXT_KEY: "sg_test_text_key_000000000000000000",
  SLUICEGATE_MESSAGES_KEY: "sg_test_messages_key_000000000000000",
  SLUICEGATE_IMAGE_KEY: "sg_test_images_key_00000000000000000",
};

const children = [];
const folders = [];
after(async () => {
  for (const child of children) child.kill();
  for (const folder of folders) await rm(folder, { recursive: true });
});

/** Starts the simulator, and returns its base URL. */
export const simulator = () =>
  running(SLUICEGATE_SIMULATOR_BIN, ["--listen", "127.0.0.1:0"], "sluicegate-simulator listens on ");

/** Starts a gateway with these options, and returns its address. */
export const gateway = (...options) => {
  const args = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", ...options];
  return running(SLUICEGATE_BIN, args, "sluicegate listens on ");
};

/** Starts a gateway with a configuration file of these lines. */
export async function configured(lines) {
  const folder = await mkdtemp(join(tmpdir(), "sluicegate-"));
  folders.push(folder);
  const config = join(folder, "sluicegate.toml");
  await writeFile(config, lines.join("\n"));
  return gateway("--config", config);
}

/** Starts a program, and returns the address that it prints. */
async function running(program, args, greeting) {
  const child = spawn(program, args, { env: { ...process.env, ...KEYS }, stdio: ["ignore", "pipe", "ignore"] });
  children.push(child);
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith(greeting)) return line.slice(greeting.length).trim();
  }
  throw new Error(`${program} did not start`);
}
