// The connections of node:http requests: reuse, idle time, and requests that meet a closing connection.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { afterEach, expect, it, vi } from "vitest";
import { compiledImport } from "../../../test/support/programs.ts";
import {
  closeAll,
  untilClosed,
  failure,
  get,
  manualServer,
  closeLater,
  listen,
  OK,
  post,
} from "../../../test/support/http/local-servers.ts";
import type { ReceivedRequest } from "../../../test/support/http/local-servers.ts";
import { IS_LONG } from "../../../test/support/thoroughness.ts";
import { nodeRequester } from "./node-requester.ts";
import type { Requester } from "./requester.ts";

afterEach(closeAll);

function requesterFor(): Requester {
  const requester = nodeRequester();
  closeLater(() => requester.close());
  return requester;
}

function openFilesLimit(): number {
  const report: unknown = process.report?.getReport();
  const { userLimits } = report as { userLimits?: { open_files?: { soft: number | "unlimited" } } };
  const soft = userLimits?.open_files?.soft ?? 0;
  return soft === "unlimited" ? Infinity : soft;
}

it("a connection is reused for the next request", async () => {
  const { url, requests } = await manualServer(({ socket }) => socket.write(OK));
  const requester = requesterFor();
  for (let count = 0; count < 3; count += 1) await (await requester(post(url))).text(10);
  expect(requests.map(({ connection, index }) => [connection, index])).toEqual([
    [1, 1],
    [1, 2],
    [1, 3],
  ]);
});

// Both ends of each connection are in this process, so it needs twice as many file descriptors.
it.skipIf(!IS_LONG || openFilesLimit() < 4_096)(
  "a connection is one of at most 1,024 to a host; further requests wait for one",
  async () => {
    let isAnswering = false;
    const { url, requests } = await manualServer(({ socket }) => {
      if (isAnswering) socket.write(OK);
      else if (requests.length === 1_024) {
        isAnswering = true;
        for (const request of requests) request.socket.write(OK);
      }
    });
    const requester = requesterFor();
    const all = Array.from({ length: 1_100 }, async () => (await requester(post(url))).text(10));
    expect(await Promise.all(all)).toHaveLength(1_100);
    expect(requests).toHaveLength(1_100);
    expect(new Set(requests.map(({ connection }) => connection)).size).toBe(1_024);
  },
);

it("a connection is not kept if the server announces less than a second", async () => {
  const { url, requests } = await manualServer(({ socket }) =>
    socket.write("HTTP/1.1 200 OK\r\nkeep-alive: timeout=1\r\ncontent-length: 0\r\n\r\n"),
  );
  const requester = requesterFor();
  for (let count = 0; count < 2; count += 1) await (await requester(post(url))).text(10);
  expect(requests.map(({ connection }) => connection)).toEqual([1, 2]);
});

it.each([
  ["nothing", "", 3_999, 4_000],
  ["ten seconds", "keep-alive: timeout=10, max=100\r\n", 8_999, 9_000],
  ["an hour", "keep-alive: timeout=3600\r\n", 29_999, 30_000],
])("a connection is reused for a while if the server announces %s", async (_what, header, good, bad) => {
  const answer = `HTTP/1.1 200 OK\r\n${header}content-length: 0\r\n\r\n`;
  const { url, requests } = await manualServer(({ socket }) => socket.write(answer));
  const requester = requesterFor();
  const clock = vi.spyOn(performance, "now").mockReturnValue(1_000);
  closeLater(() => clock.mockRestore());
  await (await requester(post(url))).text(10);
  clock.mockReturnValue(1_000 + good);
  await (await requester(post(url))).text(10);
  clock.mockReturnValue(1_000 + good + bad);
  await (await requester(post(url))).text(10);
  expect(requests.map(({ connection }) => connection)).toEqual([1, 1, 2]);
});

it("a connection is closed with its requester, and not kept after that", async () => {
  const { url, requests } = await manualServer(({ socket }) => socket.write(OK));
  const requester = requesterFor();
  await (await requester(get(url))).text(10);
  const over = untilClosed(requests[0]?.socket);
  requester.close();
  await over;
  await (await requester(get(url))).text(10);
  await untilClosed(requests[1]?.socket);
  expect(requests.map(({ connection }) => connection)).toEqual([1, 2]);
});

it.each([
  ["that is idle", `await (await ask({ method: "GET", url, headers: {} })).text(10);`],
  [
    "whose response is discarded",
    `(await ask({ method: "GET", url: new URL("/endless", url), headers: {} })).discard();`,
  ],
])("a connection: %s does not keep the process alive", async (_what, script) => {
  const url = await listen(
    createHttpServer((request, response) => {
      response.writeHead(200, { "keep-alive": "timeout=600" });
      if (request.url === "/endless") response.write("a");
      else response.end("ok");
    }),
  );
  const module = compiledImport("node-requester.ts", import.meta.url);
  const child = spawn(
    process.execPath,
    [
      ...["--input-type=module", "-e"],
      `const { nodeRequester } = await import(${module});
           const ask = nodeRequester(), url = new URL("${url.href}");
           ${script}
           console.log("asked");
           // Fires only if something else keeps the process alive. An idle connection is kept for 30 s.
           setTimeout(() => console.log("held"), 10_000).unref();`,
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  closeLater(() => child.kill("SIGKILL"));
  const output: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
  const [code] = await once(child, "close");
  expect([code, Buffer.concat(output).toString()]).toEqual([0, "asked\n"]);
});

/** Answers the first request of a connection, and closes it at the second. */
const fickle = ({ socket, index }: ReceivedRequest): void => {
  if (index === 1) socket.write(OK);
  else socket.destroy();
};

it("a connection that the server has closed is replaced by another for a GET, once", async () => {
  const { url, requests } = await manualServer(fickle);
  const requester = requesterFor();
  await (await requester(get(url))).text(10);
  const answer = await requester(get(url));
  expect(await answer.text(10)).toBe("ok");
  expect(requests.map(({ connection, index }) => [connection, index])).toEqual([
    [1, 1],
    [1, 2],
    [2, 1],
  ]);
});

it("a connection that the server has closed is not replaced for a POST, which may have run", async () => {
  const { url, requests } = await manualServer(fickle);
  const requester = requesterFor();
  await (await requester(post(url))).text(10);
  expect(await failure(requester(post(url)))).toMatchObject({ kind: "closed", mayHaveRun: true });
  expect(requests).toHaveLength(2);
});

it("a connection that the server has closed is not replaced for a GET with a DPoP proof, which is valid only once", async () => {
  const { url, requests } = await manualServer(fickle);
  const requester = requesterFor();
  await (await requester(get(url))).text(10);
  const withProof = { ...get(url), headers: { dpop: "proof" } };
  expect(await failure(requester(withProof))).toMatchObject({ kind: "closed" });
  expect(requests).toHaveLength(2);
});

it("a connection that the server has closed is not replaced if it was new", async () => {
  const { url, requests } = await manualServer(({ socket }) => socket.destroy());
  expect(await failure(requesterFor()(get(url)))).toMatchObject({ kind: "closed", mayHaveRun: true });
  expect(requests).toHaveLength(1);
});
