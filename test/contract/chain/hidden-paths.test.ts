// Many hosted servers have a key in the path of their URL. Whatever such a server answers, no error and no status shows
// the key, nor the query: not to callers of a gateway, and not to the program that connects.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { oauth } from "../../../src/auth/oauth/index.ts";
import { chain, connect, upstream } from "../../../src/index.ts";
import { createGateway, loadConfig } from "../../../src/config/index.ts";
import type { Handler } from "../../../src/core/handler.ts";
import { fakeClient } from "../../support/handlers/fake-client.ts";

const SECRET = /s3cr3t/;
const PATH = "/api/s/s3cr3t-key/mcp?token=s3cr3t";

type Answer = (request: IncomingMessage, response: ServerResponse) => void;
const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (request, response) =>
    void response.writeHead(code, headers).end(`Cannot ${request.method} ${request.url}`);

const ANSWERS: readonly (readonly [string, Answer])[] = [
  ["401", status(401)],
  ["401 with metadata elsewhere", status(401, { "www-authenticate": 'Bearer resource_metadata="/x"' })],
  ["403", status(403)],
  ["404", status(404)],
  ["500", status(500)],
  ["a redirect", status(302, { location: "/other/s3cr3t" })],
  ["a redirect to another host", status(307, { location: "http://other.invalid/s3cr3t" })],
  ["a web page", (_request, response) => void response.writeHead(200, { "content-type": "text/html" }).end("<p>Hi")],
  ["an invalid body", (_, response) => void response.writeHead(200, { "content-type": "application/json" }).end("{")],
  ["nothing", (request) => void request.socket.destroy()],
];

let server: Server;
let answer: Answer = status(500);
let origin = "";
let folder = "";

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "catenary-hidden-"));
  vi.stubEnv("XDG_STATE_HOME", folder);
  server = createServer((request, response) => answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

/** Everything that the failure says, with its causes. */
async function failure(work: Promise<unknown>): Promise<string> {
  const shown: string[] = [];
  let error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeDefined();
  for (; error instanceof Error; error = error.cause) shown.push(error.message, JSON.stringify(error));
  return shown.join("\n");
}

const call = (handler: Handler): Promise<unknown> => fakeClient(handler).call("tools/call", { name: "any" });

describe.each(ANSWERS)("a server that answers with %s", (_name, given) => {
  it("a server that fails is named by its host alone", async () => {
    answer = given;
    const url = `${origin}${PATH}`;
    const plain = chain().to(url);
    const named = chain().to({ board: upstream(url), other: upstream(url, { auth: oauth() }) });
    expect(await failure(call(plain))).not.toMatch(SECRET);
    expect(await failure(call(named))).not.toMatch(SECRET);
    expect(await failure(connect(url))).not.toMatch(SECRET);
    expect(await failure(connect(url, { auth: oauth() }))).not.toMatch(SECRET);
    for (const gateway of [plain, named]) {
      expect(JSON.stringify(gateway.status())).toContain(origin);
      expect(JSON.stringify(gateway.status())).not.toMatch(SECRET);
      await gateway.close();
    }
  });

  it("a server that fails is named by its host alone if the path comes from a variable", async () => {
    answer = given;
    const path = join(folder, "catenary.json");
    writeFileSync(path, JSON.stringify({ mcpServers: { board: { url: `${origin}/\${KEY}/mcp` } } }));
    const shown: string[] = [];
    const gateway = await createGateway(await loadConfig(path, { env: { KEY: "odd s3cr3t|x^y" } }), {
      onState: (_upstream, state) => shown.push(JSON.stringify(state)),
      onStderr: (_upstream, text) => shown.push(text),
    });
    shown.push(await failure(call(gateway)), JSON.stringify(gateway.status()));
    await gateway.close();
    expect(shown.join("\n")).not.toMatch(SECRET);
  });
});

it("a server that cannot be reached is named by its host alone", async () => {
  const url = `http://127.0.0.1:1${PATH}`;
  expect(await failure(connect(url))).not.toMatch(SECRET);
  const gateway = chain().to(url);
  expect(await failure(call(gateway))).toContain("http://127.0.0.1:1");
  expect(await failure(call(gateway))).not.toMatch(SECRET);
  await gateway.close();
});
