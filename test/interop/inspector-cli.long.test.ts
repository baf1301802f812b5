// The command line of the MCP Inspector against our server over HTTP, one process for each request. It needs a newer
// Node than we support, so it is installed with the conformance suite. Where it cannot be installed, the tests are
// skipped with the reason in the title.

import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { installSuite } from "../conformance/install-suite.ts";
import { AUDIO, BLOB, BLOB_URI, INFO, NOTE, NOTE_TEXT, RESOURCES, TEMPLATE } from "./fixtures/server-data.ts";
import { FixtureServer, type Json } from "./test-client.ts";

const installed = await installSuite();
const launcher = typeof installed === "string" ? "" : scriptBeside(installed.script);

function scriptBeside(conformance: string): string {
  return join(dirname(dirname(dirname(conformance))), "inspector/clients/launcher/build/index.js");
}

/** How it can connect. Its "era" is our style. */
const CONNECTIONS = [
  { title: "sessions", transport: "http", era: "legacy", path: "/mcp" },
  { title: "stateless calls", transport: "http", era: "modern", path: "/mcp" },
  { title: "negotiation", transport: "http", era: "auto", path: "/mcp" },
  { title: "legacy HTTP+SSE", transport: "sse", era: "legacy", path: "/sse" },
] as const;

if (typeof installed === "string" || !existsSync(launcher)) {
  const reason = typeof installed === "string" ? installed : "it is not installed beside the conformance suite";
  const skipped = `the Inspector's command line with ${CONNECTIONS.map(({ title }) => title).join(", ")} was skipped: ${reason}`;
  console.warn(skipped);
  it.skipIf(process.env["CI"] !== "true")(skipped, () => expect.fail(skipped));
} else {
  const { node } = installed;

  describe("the Inspector's command line", () => {
    const home = mkdtempSync(join(tmpdir(), "catenary-inspector-"));
    const fixture = new FixtureServer("catenary");
    let url = "";

    beforeAll(async () => {
      url = await fixture.listen();
    });

    afterAll(async () => {
      await fixture.stop();
      expect(fixture.runningProcesses()).toEqual([]);
      fixture.remove();
      rmSync(home, { recursive: true, force: true });
    });

    /** Returns what it prints on stdout, or on stderr where it fails, and its exit code. */
    async function inspect(
      connection: (typeof CONNECTIONS)[number],
      method: string,
      ...more: readonly string[]
    ): Promise<Json> {
      const target = ["--server-url", new URL(connection.path, url).href, "--transport", connection.transport];
      const args = [
        "--cli",
        ...target,
        "--protocol-era",
        connection.era,
        "--format",
        "json",
        "-q",
        "--method",
        method,
        ...more,
      ];
      return new Promise((resolve) => {
        // With its own home folder, where it caches data about servers.
        execFile(node, [launcher, ...args], { env: { ...process.env, HOME: home } }, (error, out, err) => {
          const text = out.trim() === "" ? err : out;
          resolve({ ...(JSON.parse(text.trim() || "{}") as Json), exit: error?.code ?? 0 });
        });
      });
    }

    describe.each(CONNECTIONS)("with $title", (connection) => {
      it("the Inspector's command line lists tools, resources, templates and prompts", async () => {
        const [tools, resources, templates, prompts] = await Promise.all([
          inspect(connection, "tools/list"),
          inspect(connection, "resources/list"),
          inspect(connection, "resources/templates/list"),
          inspect(connection, "prompts/list"),
        ]);
        expect(tools["result"].tools.map(({ name }: Json) => name)).toEqual(expect.arrayContaining(["add", "pid"]));
        expect(resources["result"].resources.map(({ uri }: Json) => uri)).toEqual(RESOURCES);
        expect(templates["result"].resourceTemplates).toMatchObject([{ uriTemplate: TEMPLATE }]);
        expect(prompts["result"].prompts).toMatchObject([{ name: "greet" }, { name: "introduce" }]);
      });

      it("the Inspector's command line calls tools, reads resources and gets prompts", async () => {
        const [sum, gallery, text, bytes, prompt] = await Promise.all([
          inspect(connection, "tools/call", "--tool-name", "add", "--tool-args-json", '{"a":2,"b":3.5}'),
          inspect(connection, "tools/call", "--tool-name", "gallery"),
          inspect(connection, "resources/read", "--uri", NOTE),
          inspect(connection, "resources/read", "--uri", BLOB_URI),
          inspect(
            connection,
            "prompts/get",
            "--prompt-name",
            "greet",
            "--prompt-args",
            "author=Bronte",
            "style=warmly",
          ),
        ]);
        expect(sum).toMatchObject({ exit: 0, result: { structuredContent: { sum: 5.5 } } });
        expect(gallery["result"].content[2]).toMatchObject({ type: "audio", data: AUDIO });
        expect(text["result"].contents).toMatchObject([{ uri: NOTE, text: NOTE_TEXT }]);
        expect(bytes["result"].contents).toMatchObject([{ uri: BLOB_URI, blob: BLOB }]);
        expect(prompt["result"].messages).toMatchObject([{ content: { text: "Greet Bronte warmly." } }]);
      });

      it("the Inspector's command line exits with an error code on failure", async () => {
        const [failed, unknownTool, unknownResource] = await Promise.all([
          inspect(connection, "tools/call", "--tool-name", "fail"),
          inspect(connection, "tools/call", "--tool-name", "no-such-tool"),
          inspect(connection, "resources/read", "--uri", "nowhere://at-all"),
        ]);
        // Its exit code for a tool that failed or is unknown.
        expect(failed["exit"]).toBe(5);
        expect(JSON.stringify(failed)).toContain("it broke");
        expect(unknownTool["exit"]).toBe(5);
        expect(unknownResource["exit"]).not.toBe(0);
      });
    });

    it("the Inspector's command line initializes", async () => {
      const [session, stateless] = await Promise.all([
        inspect(CONNECTIONS[0], "initialize"),
        inspect(CONNECTIONS[1], "initialize"),
      ]);
      expect(JSON.stringify(session["result"])).toContain(INFO.version);
      expect(JSON.stringify(stateless["result"])).toContain(INFO.version);
    });
  });
}
