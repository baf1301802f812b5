// A launcher leaves descriptors of a folder open, and no process that we start can use them.

import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compiledImport } from "../../test/support/programs.ts";
import { sandboxProblem } from "../live/sandbox.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Becomes its arguments, with a folder at two descriptors: far from the others, and one just above another gap. */
const LAUNCHER = `
import os, sys
for number in (40, 200):
    os.dup2(os.open(sys.argv[1], os.O_RDONLY), number, inheritable=True)
os.execvp(sys.argv[2], sys.argv[2:])
`;

const source = (path: string): string => compiledImport(`../${path}`, import.meta.url);

/** What `code` prints, as JSON, in a process that was started with the descriptors. */
async function launched(folder: string, code: string): Promise<unknown> {
  const args = ["-c", LAUNCHER, folder, process.execPath, "--input-type=module", "-e", code];
  // The folder of the package, whose name the code imports.
  const { stdout } = await run("python3", args, { timeout: 60_000, cwd: ROOT });
  return JSON.parse(stdout);
}

/** Expressions of JavaScript: the targets of the descriptors in a process. */
const TARGETS = `[40, 200].map((one) => { try { return require("fs").readlinkSync("/proc/self/fd/" + one) } catch { return "closed" } })`;
const SHOWS = "readlink /proc/$$/fd/40 /proc/$$/fd/200";

describe.runIf(process.platform === "linux")("descriptors that a launcher left open", async () => {
  const isSandboxed = (await sandboxProblem()) === undefined;
  let folder = "";
  beforeAll(async () => (folder = await mkdtemp(join(tmpdir(), "left-open-"))));
  afterAll(() => rm(folder, { recursive: true }));

  it("descriptors that a launcher left open are open in this process, and in none that it starts", async () => {
    const browser = join(folder, "browser");
    await writeFile(browser, `#!/bin/sh\n${SHOWS} > "$0.out"; mv "$0.out" "$0.done"\n`, { mode: 0o755 });
    const report = await launched(
      folder,
      `import { createRequire } from "node:module";
      import { existsSync, readFileSync, readlinkSync } from "node:fs";
      import { outputOf, startChild } from ${source("process/child.ts")};
      import { guardianPid } from ${source("process/guardian.ts")};
      import { openBrowser } from ${source("auth/oauth/browser.ts")};
      const require = createRequire("/");
      const command = { command: "sh", args: ["-c", ${JSON.stringify(SHOWS)}] };
      const ours = ${TARGETS};
      const child = (await outputOf(command, 10000)).stdout;
      const kept = await startChild({ command: "cat" });
      const guardian = [40, 200].map((one) => readlinkSync("/proc/" + guardianPid() + "/fd/" + one));
      await kept.close();
      const channel = await startChild({ ...command, channel: true });
      let text = "";
      for await (const chunk of channel.stdout) text += chunk;
      const browser = ${JSON.stringify(browser)};
      await openBrowser("http://127.0.0.1/", { platform: "linux", env: { BROWSER: browser, PATH: process.env.PATH } });
      for (let i = 0; i < 1000 && !existsSync(browser + ".done"); i += 1) await new Promise((done) => setTimeout(done, 10));
      console.log(JSON.stringify({ ours, child, guardian, channel: text, browser: readFileSync(browser + ".done", "utf8") }));`,
    );
    const none = "/dev/null\n/dev/null\n";
    expect(report).toEqual({
      ours: [folder, folder],
      child: none,
      guardian: ["/dev/null", "/dev/null"],
      channel: none,
      browser: none,
    });
  });

  it("descriptors that a launcher left open are closed in sessions, in servers and in programs", async () => {
    const server = `import { createRequire } from "node:module"; const require = createRequire("/");
      import { createServer, serve } from "catenary";
      await serve(createServer({ name: "a", version: "1" }).tool("show", {}, () => ${TARGETS}.join()));`;
    const program = join(folder, "show");
    await writeFile(program, `#!/bin/sh\n${SHOWS}\n`, { mode: 0o755 });
    const report = await launched(
      folder,
      `import { connect } from "catenary";
      import { javascript } from "catenary/live";
      import { programs } from "catenary/programs";
      const call = async (target, tool, args) => {
        const client = await connect(target);
        const { content } = await client.callTool(tool, args);
        await client.close();
        await target.close?.();
        return content[0].text;
      };
      const code = { code: ${JSON.stringify(`${TARGETS}.join()`)} };
      const args = ["--input-type=module", "-e", ${JSON.stringify(server)}];
      const calls = {
        session: call(javascript({}), "evaluate-js", code),
        ${isSandboxed ? 'sandbox: call(javascript({ sandbox: true }), "evaluate-js", code),' : ""}
        server: call({ command: process.execPath, args, cwd: process.cwd() }, "show", {}),
        program: call(programs({ programs: [${JSON.stringify(program)}] }), "show", {}),
      };
      console.log(JSON.stringify(await Promise.all(Object.values(calls))));`,
    );
    const texts = report as readonly string[];
    expect(texts).toHaveLength(isSandboxed ? 4 : 3);
    for (const text of texts) {
      expect(text).toContain("/dev/null");
      expect(text).not.toContain(folder);
    }
  });
});
