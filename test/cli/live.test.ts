// Live sessions as the commands reach them: `up` and `serve` without a config, the token that HTTP asks for, and `eval`.
// What sessions do is told elsewhere; here it is who comes to them, and what is seen of it.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "catenary";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasSbcl } from "../support/setup/sbcl.ts";
import { catenary, CLI, marking, nobodyLeft, type Run, runner, type RunOptions } from "./stage.ts";

/** As if it evaluated something; it needs no process. */
const MARKED = `
const server = async ({ method }) => {
  if (method === "server/discover") return { capabilities: { tools: {} } };
  return { tools: [{ name: "evaluate", inputSchema: { type: "object" } }] };
};
server[Symbol.for("catenary.evaluatesCode")] = true;
export default server;`;

let folder = "";
let empty = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-live-"));
  empty = join(folder, "empty");
  mkdirSync(empty);
  writeFileSync(join(folder, "marked.mjs"), MARKED);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const run = runner();

/** The one line on stdout. */
async function ready(one: Run): Promise<{ url: string; token?: string }> {
  await Promise.race([once(one.process.stdout, "data"), one.exited]);
  return JSON.parse(one.out || one.err) as { url: string; token?: string };
}

async function status(url: string, token?: string): Promise<number> {
  const headers = token === undefined ? undefined : { authorization: `Bearer ${token}` };
  return (await fetch(url, { method: "POST", headers: { ...headers }, body: "" })).status;
}

/** It was let in, and said nothing that could be understood. */
const LET_IN = 415;

describe("without a config", () => {
  it("up is a JavaScript session, with an entry that works as it is pasted", async () => {
    const one = run(["up", "--http", ":0"], { cwd: empty });
    await one.says("The token is for this run");
    expect(one.err).toMatch(/^Serving a live JavaScript session at http:\S+\n {2}js +live sessions +/);
    const entry = /^A client's entry: (.*)$/m.exec(one.err)?.[1] ?? "";
    const { js } = (
      JSON.parse(entry) as { mcpServers: Record<string, { url: string; headers: Record<string, string> }> }
    ).mcpServers;
    if (js === undefined) throw new Error(entry);
    expect(await status(js.url)).toBe(401);
    expect(await status(js.url, "wrong")).toBe(401);
    const client = await connect(js.url, { headers: js.headers });
    const result = await client.callTool("evaluate-js", { code: "const x = 6; x * 7" });
    expect(result).toMatchObject({ content: [{ text: "=> 42" }], structuredContent: { values: ["42"], status: "ok" } });
    await client.close();
    const token = js.headers["Authorization"]?.replace("Bearer ", "") ?? "";
    expect(one.err.split(token)).toHaveLength(2);
    one.process.kill("SIGTERM");
    expect(await one.exited).toBe(0);
  });

  it("serve is one on stdio, and says so", async () => {
    const call = ["call", "evaluate-js", "code=[1, 2].map((n) => n + 1)", "--", process.execPath, CLI, "serve"];
    const said = await catenary(call, "", { cwd: empty });
    expect(said).toMatchObject({ code: 0, out: "=> [ 2, 3 ]\n" });
    const alone = await catenary(["serve"], "", { cwd: empty });
    expect(alone).toMatchObject({
      code: 0,
      out: "",
      err: "catenary: there is no catenary.json here, so a live JavaScript session is served on stdio\n",
    });
  });
});

describe("the token", () => {
  it("is made where a module's server evaluates code, and told to programs", async () => {
    const { url, token } = await ready(run(["serve", join(folder, "marked.mjs"), "--http", ":0", "--json"]));
    expect(await status(url)).toBe(401);
    expect(await status(url, token)).toBe(LET_IN);
  });

  it("is left out where a person wants it so, and that is warned of", async () => {
    const one = run(["up", "--http", ":0", "--json", "--no-token"], { cwd: empty });
    const { url, token } = await ready(one);
    expect(token).toBeUndefined();
    expect(await status(url)).toBe(LET_IN);
    await one.says("Warning: code is evaluated here, and nobody is asked for a token: every program\non this machine");
  });

  it("is that of the config, which is told to nobody and cannot be left out", async () => {
    const file = join(folder, "closed.json");
    const listen = { token: "${MY_TOKEN}", port: 0 };
    writeFileSync(file, JSON.stringify({ mcpServers: { mine: { module: "./marked.mjs" } }, listen }));
    const env = { MY_TOKEN: "correct-horse" };
    const one = run(["up", file, "--json"], { env });
    const { url, token } = await ready(one);
    expect(token).toBeUndefined();
    expect(await status(url)).toBe(401);
    expect(await status(url, "correct-horse")).toBe(LET_IN);
    expect(one.out + one.err).not.toContain("correct-horse");
    const refused = await catenary(["up", file, "--no-token"], "", { env });
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toContain("--no-token: ");
    const stdio = await catenary(["serve", file, "--no-token"], "", { env });
    expect(stdio).toMatchObject({ code: 1, err: "catenary: --no-token goes with --http HOST:PORT\n" });
  });
});

describe("eval", () => {
  const evaluate = (args: readonly string[], input = "", options: RunOptions = {}): ReturnType<typeof catenary> =>
    catenary(["eval", ...args], input, options);

  it("prints what the code prints, each on its stream, and then its value", async () => {
    const code = 'console.log("out"); console.error("err"); process.stdout.write("half"); ({ a: [1, "b"] })';
    expect(await evaluate(["js", code])).toMatchObject({
      code: 0,
      out: "out\nhalf\n{ a: [ 1, 'b' ] }\n",
      err: "err\n",
    });
  });

  it("reads stdin and files, and takes types and promises", async () => {
    const code = "const n: number = await Promise.resolve(5); n + 1";
    expect(await evaluate(["js", "-"], code)).toMatchObject({ code: 0, out: "6\n", err: "" });
    const file = join(folder, "code.ts");
    writeFileSync(file, code);
    expect(await evaluate(["TS", "--file", file])).toMatchObject({ code: 0, out: "6\n", err: "" });
  });

  it("ends with 5 where the code fails, and says where", async () => {
    const said = await evaluate(["js", 'console.log("before");\nfunction f() { null.x }\nf()']);
    expect(said).toMatchObject({ code: 5, out: "before\n" });
    expect(said.err).toMatch(/^TypeError: Cannot read properties of null.*\n {2}\d: .*f/);
  });

  it("names the file in which the code stands", async () => {
    const file = join(folder, "wrong.ts");
    writeFileSync(file, "let a = 1;\nnull.x");
    const said = await evaluate(["js", "--file", file]);
    expect(said).toMatchObject({ code: 5, out: "" });
    expect(said.err).toContain(`\n  0: ${file}:2:6\n`);
  });

  it("says that the code ended its process", async () => {
    const err = "catenary: The code ended its process (exit code 3)\n";
    expect(await evaluate(["js", "process.exit(3)"])).toMatchObject({ code: 5, out: "", err });
  });

  it("gives programs all of it in one document", async () => {
    const said = await evaluate(["js", 'console.log("out"); throw new RangeError("no")', "--json"]);
    expect(said).toMatchObject({ code: 5, err: "" });
    expect(JSON.parse(said.out)).toMatchObject({
      status: "error",
      stdout: "out\n",
      values: [],
      condition: { type: "RangeError", message: "no" },
    });
  });

  it("ends what takes too long", async () => {
    const said = await evaluate(["js", "for (;;);", "--timeout", "0.3"]);
    expect(said).toMatchObject({ code: 5, out: "" });
    expect(said.err).toMatch(/^catenary: It took longer than 0\.3 s and was interrupted; --timeout gives it longer\n/);
  });

  it("is interrupted by Ctrl-C, and shows what was printed until then", async () => {
    const one = run(["eval", "js", 'console.log("begun"); for (;;);']);
    await once(one.process.stdout, "data");
    one.process.kill("SIGINT");
    expect(await one.exited).toBe(130);
    expect(one.out).toBe("begun\n");
    expect(one.err).toMatch(/^catenary: Cancelling.*\ncatenary: Interrupted after [\d.]+ s\n/);
  });

  it("ends where nobody reads on", async () => {
    const { mark, env } = marking();
    const code = 'for (;;) console.log("y".repeat(1000));';
    const shell = spawn("sh", ["-c", '"$0" "$1" eval js "$2" | head -c 10', process.execPath, CLI, code], {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let out = "";
    shell.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
    await once(shell, "close");
    expect(out).toBe("yyyyyyyyyy");
    await nobodyLeft(mark);
  });

  it.runIf(hasSbcl())("knows Common Lisp, with several values, warnings and conditions", async () => {
    expect(await evaluate(["lisp", '(format t "hi") (floor 17 5)'])).toMatchObject({
      code: 0,
      out: "hi\n3\n2\n",
      err: expect.stringMatching(/^(?:catenary: Common Lisp is being prepared.*\n)?$/) as string,
    });
    const failed = await evaluate(["lisp", '(warn "careful") (/ 1 0)']);
    expect(failed).toMatchObject({ code: 5, out: "" });
    expect(failed.err).toMatch(
      /^(?:catenary: Common Lisp is being .*\n)?Warning: SIMPLE-WARNING: careful\nDIVISION-BY-ZERO: arithmetic error/,
    );
    const file = join(folder, "code.lisp");
    writeFileSync(file, "\ufeff#!/usr/bin/sbcl --script\n(+ 2 4)");
    expect(await evaluate(["lisp", "--file", file])).toMatchObject({ code: 0, out: "6\n" });
  });

  it.runIf(hasSbcl())("says why nothing comes where Common Lisp is prepared for the first time", async () => {
    const one = run(["eval", "lisp", "1"], { env: { CATENARY_CACHE: join(folder, "cache") } });
    await one.says("catenary: Common Lisp is being prepared; the first time on a machine it takes some seconds\n");
    expect(one.out).toBe("");
  });

  it("says what to install where there is no SBCL", async () => {
    const said = await evaluate(["lisp", "(+ 1 2)"], "", { env: { PATH: empty } });
    expect(said).toMatchObject({ code: 4, out: "" });
    expect(said.err).toMatch(/^catenary: .*sbcl.*apt-get install sbcl/i);
  });
});
