// Inputs: which are asked for, of whom, and what happens where nobody answers.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Config } from "./config.ts";
import { inputVariable, type AskInput, type Input } from "./inputs.ts";
import { checkConfig, loadConfig } from "./load.ts";

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

const argsOf = (config: Config): unknown => config.ends.get("a")?.about["args"];

describe("inputs", () => {
  it("are asked for once, one after the other, if they are used", async () => {
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

  it("are not asked for where something is wrong, nor by a check", async () => {
    const inputs = vi.fn(async () => "x");
    await expect(load('"${input:my-key}", "${NONE}"', { inputs })).rejects.toThrow("The variable NONE is not set");
    const text = `{"inputs": ${INPUTS}, "mcpServers": {"a": {"url": "\${input:my-key}", "timeout": "\${input:usual}"}}}`;
    expect(await checkConfig(text, "/x/catenary.json", { inputs })).toEqual([]);
    expect(inputs).not.toHaveBeenCalled();
  });

  it("are answered by the environment where nobody else does", async () => {
    const env = { CATENARY_INPUT_MY_KEY: "k", CATENARY_INPUT_OTHER: "" };
    expect(argsOf(await load('"${input:my-key}${input:other}"', { env }))).toEqual(["k"]);
    expect(inputVariable("my-key.2")).toBe("CATENARY_INPUT_MY_KEY_2");
  });

  it("that nobody answers are an error that says how, at the place where they are used", async () => {
    await expect(load('"x",\n "${input:my-key}"', {})).rejects.toMatchObject({
      problems: [
        {
          line: 8,
          column: 3,
          message: 'The input "my-key" was not given',
          hint: "set CATENARY_INPUT_MY_KEY in the environment",
        },
      ],
    });
  });

  it("that offer a choice take no other", async () => {
    await expect(load('"${input:where}"', { env: { CATENARY_INPUT_WHERE: "s3cret" } })).rejects.toMatchObject({
      problems: [{ message: 'The input "where" is none of its options', hint: "there are eu, us" }],
    });
  });

  it("are held against what must stand there once they are known", async () => {
    const more = ', "b": {"url": "${input:my-key}"}';
    const error: unknown = await load('""', { inputs: async () => "s3cret" }, more).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      message: expect.stringContaining(
        "mcpServers.b.url is no address over HTTP, once its variables are put in",
      ) as string,
    });
    expect(String(error)).not.toContain("s3cret");
  });

  it("may be refused by whoever is asked", async () => {
    const refusal = new Error("nobody is there");
    const inputs = (): Promise<string> => Promise.reject(refusal);
    await expect(load('"${input:my-key}"', { inputs })).rejects.toBe(refusal);
  });
});
