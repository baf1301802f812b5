// The command line of the MCP Inspector against our server over HTTP, as a person would use it: one process for
// each question. It needs a newer Node than we promise to run on, so it comes with the conformance suite, in the
// suite's own folder; where it cannot be had, what was left out is named.

import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { installedSuite } from "../conformance/install.ts";
import { AUDIO, BLOB, BLOB_URI, INFO, NOTE, NOTE_TEXT, RESOURCES, TEMPLATE } from "./fixtures/stage.ts";
import { Fixture, type Json } from "./peer.ts";

const installed = await installedSuite();
const launcher = typeof installed === "string" ? "" : scriptBeside(installed.script);

function scriptBeside(conformance: string): string {
  return join(dirname(dirname(dirname(conformance))), "inspector/clients/launcher/build/index.js");
}

/** The ways to reach us that it has: what it calls an era is our style. */
const WAYS = [
  { way: "sessions", transport: "http", era: "legacy", path: "/mcp" },
  { way: "exchanges", transport: "http", era: "modern", path: "/mcp" },
  { way: "whichever it finds", transport: "http", era: "auto", path: "/mcp" },
  { way: "the old HTTP+SSE", transport: "sse", era: "legacy", path: "/sse" },
] as const;

if (typeof installed === "string" || !existsSync(launcher)) {
  const why = typeof installed === "string" ? installed : "it does not stand beside the conformance suite";
  const left = `the Inspector's command line by ${WAYS.map(({ way }) => way).join(", ")} is left out: ${why}`;
  console.warn(left);
  it.skipIf(process.env["CI"] !== "true")(left, () => expect.fail(left));
} else {
  const { node } = installed;

  describe("the Inspector's command line", { timeout: 60_000 }, () => {
    const home = mkdtempSync(join(tmpdir(), "catenary-inspector-"));
    const fixture = new Fixture("catenary");
    let url = "";

    beforeAll(async () => {
      url = await fixture.listen();
    }, 20_000);

    afterAll(async () => {
      await fixture.end();
      expect(fixture.survivors()).toEqual([]);
      fixture.remove();
      rmSync(home, { recursive: true, force: true });
    });

    /** What it prints on stdout or, where it fails, on stderr; and its exit code. */
    async function inspect(at: (typeof WAYS)[number], method: string, ...more: readonly string[]): Promise<Json> {
      const target = ["--server-url", new URL(at.path, url).href, "--transport", at.transport];
      const args = [
        "--cli",
        ...target,
        "--protocol-era",
        at.era,
        "--format",
        "json",
        "-q",
        "--method",
        method,
        ...more,
      ];
      return new Promise((resolve) => {
        // A home of its own: it keeps what it learns of servers there.
        execFile(node, [launcher, ...args], { env: { ...process.env, HOME: home } }, (error, out, err) => {
          const text = out.trim() === "" ? err : out;
          resolve({ ...(JSON.parse(text.trim() || "{}") as Json), exit: error?.code ?? 0 });
        });
      });
    }

    describe.each(WAYS)("by $way", (at) => {
      it("lists what there is", async () => {
        const [tools, resources, templates, prompts] = await Promise.all([
          inspect(at, "tools/list"),
          inspect(at, "resources/list"),
          inspect(at, "resources/templates/list"),
          inspect(at, "prompts/list"),
        ]);
        expect(tools["result"].tools.map(({ name }: Json) => name)).toEqual(expect.arrayContaining(["add", "pid"]));
        expect(resources["result"].resources.map(({ uri }: Json) => uri)).toEqual(RESOURCES);
        expect(templates["result"].resourceTemplates).toMatchObject([{ uriTemplate: TEMPLATE }]);
        expect(prompts["result"].prompts).toMatchObject([{ name: "greet" }, { name: "introduce" }]);
      });

      it("calls, reads and gets", async () => {
        const [sum, gallery, text, bytes, prompt] = await Promise.all([
          inspect(at, "tools/call", "--tool-name", "add", "--tool-args-json", '{"a":2,"b":3.5}'),
          inspect(at, "tools/call", "--tool-name", "gallery"),
          inspect(at, "resources/read", "--uri", NOTE),
          inspect(at, "resources/read", "--uri", BLOB_URI),
          inspect(at, "prompts/get", "--prompt-name", "greet", "--prompt-args", "author=Bronte", "style=warmly"),
        ]);
        expect(sum).toMatchObject({ exit: 0, result: { structuredContent: { sum: 5.5 } } });
        expect(gallery["result"].content[2]).toMatchObject({ type: "audio", data: AUDIO });
        expect(text["result"].contents).toMatchObject([{ uri: NOTE, text: NOTE_TEXT }]);
        expect(bytes["result"].contents).toMatchObject([{ uri: BLOB_URI, blob: BLOB }]);
        expect(prompt["result"].messages).toMatchObject([{ content: { text: "Greet Bronte warmly." } }]);
      });

      it("fails as it should", async () => {
        const [failed, nobody, nowhere] = await Promise.all([
          inspect(at, "tools/call", "--tool-name", "fail"),
          inspect(at, "tools/call", "--tool-name", "nobody"),
          inspect(at, "resources/read", "--uri", "nowhere://at-all"),
        ]);
        // 5 is its code for a tool that failed or is not there.
        expect(failed["exit"]).toBe(5);
        expect(JSON.stringify(failed)).toContain("it broke");
        expect(nobody["exit"]).toBe(5);
        expect(nowhere["exit"]).not.toBe(0);
      });
    });

    it("shakes hands", async () => {
      const [session, exchange] = await Promise.all([inspect(WAYS[0], "initialize"), inspect(WAYS[1], "initialize")]);
      expect(JSON.stringify(session["result"])).toContain(INFO.version);
      expect(JSON.stringify(exchange["result"])).toContain(INFO.version);
    });
  });
}
