// Where a sandbox cannot be had, the error says why and what to do. Also one session in a real sandbox; what tries to
// leave it is in test/contract/live/sandbox.long.test.ts.

import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { connect } from "../client/index.ts";
import { findProgram } from "../process/spawn-problem.ts";
import { javascript } from "./index.ts";
import { DEFAULT_LIMITS, type Runtime } from "./runtime.ts";
import type { SandboxOptions } from "./options.ts";
import { sandboxed, sandboxProblem } from "./sandbox.ts";

const isLinux = process.platform === "linux";
const problem = await sandboxProblem();

afterEach(() => {
  vi.unstubAllEnvs();
  // The next file of this worker must not get modules that remember a program of these tests.
  vi.resetModules();
});

describe.skipIf(!isLinux)("where bubblewrap does not work", () => {
  const folders: string[] = [];
  afterEach(async () => {
    await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true })));
  });

  /** The problem with programs of these names on the PATH, which print a text and fail. */
  async function problemWith(programs: Readonly<Record<string, string>>): Promise<string | undefined> {
    const folder = await mkdtemp(join(tmpdir(), "sandbox-programs-"));
    folders.push(folder);
    for (const [name, text] of Object.entries(programs))
      await writeFile(join(folder, name), `#!/bin/sh\necho '${text}' >&2\nexit 1\n`, { mode: 0o755 });
    vi.stubEnv("PATH", folder);
    vi.resetModules();
    const found = await (await import("./sandbox.ts")).sandboxProblem();
    return found && `${found.message}; ${found.hint}`;
  }

  it("a sandbox where bubblewrap does not work says how to install it", async () => {
    expect(await problemWith({ prlimit: "" })).toBe(
      'A sandbox needs bubblewrap, but bwrap is not on the PATH; install it (Debian and Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap), or run without a sandbox ("sandbox": false)',
    );
    expect(await problemWith({ bwrap: "" })).toContain("needs prlimit, which is not on the PATH");
  });

  it.each([
    [
      "bwrap: setting up uid map: Permission denied",
      "does not let bubblewrap create namespaces (bwrap: setting up uid",
    ],
    [
      "bwrap: Unknown option --disable-userns",
      "bubblewrap is too old (bwrap: Unknown option --disable-userns); install version 0.8 or later",
    ],
    ["bwrap: something else", "No sandbox can be had on this machine: bwrap: something else; or run without"],
  ])("a sandbox where bubblewrap does not work explains: %s", async (said, message) => {
    expect(await problemWith({ bwrap: said, prlimit: "" })).toContain(message);
  });
});

it.skipIf(problem !== undefined).each([
  [{ read: ["/no/such/folder"] }, 'The path /no/such/folder in "sandbox.read" does not exist'],
  [{ write: ["/"] }, 'The path / in "sandbox.write" cannot be shown in a sandbox; name folders in it'],
  [{ read: ["/proc/"] }, 'The path /proc in "sandbox.read" cannot be shown'],
])("a sandbox cannot be had with %j", async (options, message) => {
  const live = javascript({ sandbox: options });
  const client = await connect(live);
  const result = client.callTool("evaluate-js", { code: "1" });
  await expect(result.then(({ content }) => JSON.stringify(content))).resolves.toContain(
    JSON.stringify(message).slice(1, -1),
  );
  await client.close();
  await live.close();
});

describe.skipIf(problem !== undefined)("with a folder that its code may change", () => {
  let folder = "";
  beforeEach(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), "sandbox-grants-")));
    for (const name of ["w/sub/out", "private/out"]) await mkdir(join(folder, name), { recursive: true });
    await writeFile(join(folder, "private/out/key"), "a secret of the host");
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function evaluate(sandbox: SandboxOptions, code: string, create = javascript): Promise<string> {
    const live = create({ sandbox });
    const client = await connect(live);
    const { content } = await client.callTool("evaluate-js", { code });
    await client.close();
    await live.close();
    return JSON.stringify(content);
  }

  it("a sandbox: a sandbox with a folder that its code may change shows no other files to the next session by a link", async () => {
    const [outer, inner] = [join(folder, "w"), join(folder, "w/sub/out")];
    const plant = `const fs = require("fs"); fs.renameSync("${outer}/sub", "${outer}/old"); fs.symlinkSync("../private", "${outer}/sub"); "planted"`;
    expect(await evaluate({ write: [outer] }, plant)).toContain("planted");
    const steal = `require("fs").readFileSync("${inner}/key", "utf8")`;
    for (const options of [{ write: [outer], read: [inner] }, { write: [outer, inner] }, { read: [inner] }]) {
      const text = await evaluate(options, steal);
      expect(text).not.toContain("a secret of the host");
      expect(text).toContain(`lies in ${outer}, a folder of \\"sandbox.write\\"`);
    }
  });

  it("a sandbox: a sandbox with a folder that its code may change starts no session if a link is put in the place of a folder while bubblewrap starts", async () => {
    const programs = join(folder, "programs");
    await mkdir(programs);
    const shown = join(folder, "w/sub/out");
    const swap = `case "$*" in *${shown}*) mv ${folder}/w/sub ${folder}/w/old; ln -s ${folder}/private ${folder}/w/sub;; esac`;
    const bwrap = await findProgram({ command: "bwrap" });
    await writeFile(join(programs, "bwrap"), `#!/bin/sh\n${swap}\nexec ${bwrap} "$@"\n`, { mode: 0o755 });
    vi.stubEnv("PATH", `${programs}:${process.env["PATH"]}`);
    vi.resetModules();
    const { javascript: create } = await import("./index.ts");
    const text = await evaluate({ read: [shown] }, `require("fs").readFileSync("${shown}/key", "utf8")`, create);
    expect(text).not.toContain("a secret of the host");
    expect(text).toContain(`the path ${shown} of the sandbox was replaced while the session was started`);
  });
});

it.skipIf(problem !== undefined)("a sandbox is refused where it would not hold the code", async () => {
  const runtime = { noSandbox: "it runs elsewhere", start: () => Promise.reject(new Error("started")) };
  const start = sandboxed(runtime as unknown as Runtime, true).start(DEFAULT_LIMITS);
  await expect(start).rejects.toThrow("These sessions cannot run in a sandbox: it runs elsewhere");
});

it.skipIf(problem !== undefined)("a sandbox shows a session no files, variables or processes of the host", async () => {
  const live = javascript({ sandbox: true });
  const client = await connect(live);
  const folder = await mkdtemp("/tmp/catenary-host-");
  const code = `[require("fs").existsSync(${JSON.stringify(folder)}), process.cwd(), process.env.HOME, process.pid < 9]`;
  const { structuredContent, content } = await client.callTool("evaluate-js", { code });
  expect(structuredContent).toMatchObject({ status: "ok" });
  expect(JSON.stringify(content)).toContain("[ false, '/tmp/session', '/tmp/session', true ]");
  for (const missing of ['import "nofs"', 'require("nofs")']) {
    const refused = await client.callTool("evaluate-js", { code: missing });
    expect(refused.content).toMatchObject([
      { text: expect.stringContaining("Cannot find package 'nofs': packages cannot be installed in the sandbox;") },
    ]);
  }
  await client.close();
  await live.close();
  await rm(folder, { recursive: true });
});
