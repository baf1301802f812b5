// Inputs: which are asked for, who answers, and what happens without an answer.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { inputVariable, type AskInput, type Input } from "./variables.ts";
import { checkConfig, loadConfig, type Config } from "./load.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-inputs-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const INPUTS = `[
  {"id": "my-key", "type": "promptString", "description": "Key", "password": true},
  {"id": "where", "type": "pickString", "options": ["eu", {"label": "America", "value": "us"}]},
  {"id": "usual", "type": "promptString", "default": "so"},
  {"id": "other", "type": "command", "command": "x"}
]`;

function load(args: string, options: { env?: Record<string, string>; inputs?: AskInput }, more = ""): Promise<Config> {
  const file = join(folder, "catenary.json");
  writeFileSync(file, `{"inputs": ${INPUTS}, "mcpServers": {\n"a": {"command": "x", "args": [${args}]}${more}}}`);
  return loadConfig(file, { env: {}, ...options });
}

const argsOf = (config: Config): unknown => config.upstreams.get("a")?.settings["args"];

it("inputs are asked for once, in order, if they are used", async () => {
  const asked: Input[] = [];
  const inputs = vi.fn(async (input: Input) => {
    asked.push(input);
    return input.id === "usual" ? undefined : "us";
  });
  const unused = ', "b": {"command": "x", "disabled": true, "args": ["${input:other}"]}';
  const args = '"${input:where}", "${input:my-key}!", "${input:my-key}", "${input:usual}"';
  expect(argsOf(await load(args, { inputs }, unused))).toEqual(["us", "us!", "us", "so"]);
  expect(asked).toEqual([
    { id: "where", type: "pickString", options: ["eu", "us"] },
    { id: "my-key", type: "promptString", description: "Key", password: true },
    { id: "usual", type: "promptString", default: "so" },
  ]);
});

it("inputs are not asked for if there is an error, or by a check", async () => {
  const inputs = vi.fn(async () => "x");
  await expect(load('"${input:my-key}", 1', { inputs })).rejects.toThrow("mcpServers.a.args[1]");
  const text = `{"inputs": ${INPUTS}, "mcpServers": {"a": {"url": "\${input:my-key}", "timeoutMs": "\${input:usual}"}}}`;
  expect(await checkConfig(text, "/x/catenary.json", { inputs })).toEqual([]);
  expect(inputs).not.toHaveBeenCalled();
});

it("inputs are answered by the environment by default", async () => {
  const env = { CATENARY_INPUT_MY_KEY: "k", CATENARY_INPUT_OTHER: "" };
  expect(argsOf(await load('"${input:my-key}${input:other}"', { env }))).toEqual(["k"]);
  expect(inputVariable("my-key.2")).toBe("CATENARY_INPUT_MY_KEY_2");
});

it("inputs without an answer are the failure of the server that uses them", async () => {
  const { upstreams, warnings } = await load('"x",\n "${input:my-key}"', {});
  expect(warnings).toEqual([
    {
      line: 8,
      column: 3,
      severity: "warning",
      message: 'No value for the input "my-key", so the server a does not run',
      hint: "set CATENARY_INPUT_MY_KEY in the environment",
    },
  ]);
  await expect(upstreams.get("a")?.resolve()).rejects.toThrow('No value for the input "my-key"');
});

it("inputs with options accept no other value", async () => {
  const { upstreams } = await load('"${input:where}"', { env: { CATENARY_INPUT_WHERE: "s3cret" } });
  const reason = 'The value of the input "where" is not an option: the options are eu, us';
  expect(upstreams.get("a")?.missing).toBe(reason);
});

it("inputs are validated where they are used", async () => {
  const more = ', "b": {"url": "${input:my-key}"}';
  const error: unknown = await load('""', { inputs: async () => "s3cret" }, more).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({
    message: expect.stringContaining(
      "mcpServers.b.url: not a valid HTTP URL, after its variables are expanded",
    ) as string,
  });
  expect(String(error)).not.toContain("s3cret");
});

it("inputs pass on the error of the callback", async () => {
  const refusal = new Error("not available");
  const inputs = (): Promise<string> => Promise.reject(refusal);
  await expect(load('"${input:my-key}"', { inputs })).rejects.toBe(refusal);
});
