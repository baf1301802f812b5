// Functions of a client that throw or reject: listeners end neither the call nor the process, and a handler of a server's
// request fails its call. The client's `onError` gets every error, in every revision, in memory, over HTTP and through a
// gateway.

import { afterAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { chain, connect, createServer, serve, upstream, type Client, type ConnectOptions } from "../../../src/index.ts";
import { connectInMemory, REVISION_NAMES } from "../../../src/testing.ts";
import { eventually } from "../../support/waiting.ts";

const NEWEST = REVISION_NAMES.at(-1) ?? "";
const form = {
  message: "Who?",
  requestedSchema: { type: "object", properties: { name: { type: "string" } } },
} as const;

/** What the tool `ask` got in place of an answer. */
const got: unknown[] = [];
const server = createServer({ name: "notes", version: "1.0.0", onError: () => undefined })
  .tool("steps", {}, async (_args, context) => {
    context.progress(1, 2);
    context.log("info", "half");
    return "done";
  })
  .tool("ask", { input: z.object({ kind: z.enum(["elicit", "sample", "roots"]) }) }, async ({ kind }, { ask }) => {
    const question = { messages: [], maxTokens: 1 };
    const answer = kind === "elicit" ? ask.elicit(form) : kind === "sample" ? ask.sample(question) : ask.roots();
    got.push(await answer.catch((error: unknown) => error));
    await answer;
    return "went on";
  })
  .resource("note://one", { name: "one" }, () => "text");
const front = await serve(server, { http: { port: 0 } });
const gateway = chain().to(upstream(front.url));
const both = chain().to({ notes: upstream(front.url), other: createServer({ name: "other", version: "1.0.0" }) });
afterAll(async () => {
  await gateway.close();
  await both.close();
  await front.close();
});

/** Each way to reach the server. */
const WAYS: Readonly<Record<string, (options: ConnectOptions) => Promise<Client>>> = {
  "in this process": (options) => connect(server, options),
  ...Object.fromEntries(
    [...REVISION_NAMES].map((revision) => [
      `in memory, ${revision}`,
      async (options: ConnectOptions) => (await connectInMemory(server, { ...options, revision })).client,
    ]),
  ),
  "HTTP, in a session": (options) => connect(front.url, { ...options, revision: "2025-11-25" }),
  "HTTP, stateless": (options) => connect(front.url, options),
  "a gateway": (options) => connect(gateway, options),
  "a gateway with two upstreams": (options) => connect(both, options),
  "a session with a gateway": async (options) =>
    (await connectInMemory(gateway, { ...options, revision: "2025-11-25" })).client,
};

describe.each(Object.entries(WAYS))("%s", (way, open) => {
  it("listeners that throw or reject end nothing, and are reported", async () => {
    const onError = vi.fn();
    const client = await open({
      onError,
      onNotification: vi.fn().mockRejectedValue(new Error("rejected")),
      onLog: () => {
        throw new Error("thrown");
      },
      onProgress: () => {
        throw new Error("thrown");
      },
    });
    const result = await client.callTool("steps", {}, { logLevel: "debug" });
    expect(result.content).toMatchObject([{ text: "done" }]);
    await eventually(() => {
      expect(onError).toHaveBeenCalledWith(new Error("thrown"), "onProgress");
      expect(onError).toHaveBeenCalledWith(new Error("rejected"), "onNotification");
    });
    await client.close();
  });

  // Older revisions have no elicitation.
  const kinds = /2024-11-05|2025-03-26/.test(way)
    ? (["sample", "roots"] as const)
    : (["elicit", "sample", "roots"] as const);
  it.each(kinds)("a failing handler of %s fails the call, and is reported", async (kind) => {
    const onError = vi.fn();
    const fail = (): never => {
      throw new Error("boom");
    };
    const client = await open({ onError, elicit: fail, sample: fail, roots: fail });
    got.length = 0;
    const outcome = client.callTool("ask", { kind });
    await expect(outcome).rejects.toMatchObject({ code: -32_603, message: expect.stringContaining("boom") as string });
    expect(onError.mock.calls).toEqual([[new Error("boom"), kind]]);
    // A stateless server can be given an answer for elicitation only.
    if (kind === "elicit") await eventually(() => expect(got).toHaveLength(1));
    await client.close();
  });
});

it("a listener of changes that throws gets the next change too", async () => {
  const onError = vi.fn();
  const client = await connect(server, { onError });
  let count = 0;
  const subscription = await client.listen({ resourceSubscriptions: ["note://one"] }, () => {
    count += 1;
    throw new Error("thrown");
  });
  server.resourceUpdated("note://one");
  server.resourceUpdated("note://one");
  await eventually(() => expect(count).toBe(2));
  expect(onError.mock.calls).toEqual([
    [new Error("thrown"), "listen"],
    [new Error("thrown"), "listen"],
  ]);
  await subscription.close();
  await client.close();
});

it("without onError, and if onError fails too, one line for each error goes to stderr", async () => {
  const print = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const onProgress = (): never => {
    throw new Error("thrown");
  };
  const onError = (): never => {
    throw new Error("also thrown");
  };
  for (const options of [{ onProgress }, { onProgress, onError }]) {
    const client = await connect(server, options);
    await client.callTool("steps");
    await client.close();
  }
  expect(print.mock.calls.flat()).toEqual([
    "catenary: onProgress failed: thrown",
    "catenary: onProgress failed: thrown",
    "catenary: onError failed: also thrown",
  ]);
  print.mockRestore();
});

it("an answer that does not fit the form is a failure of the handler", async () => {
  const onError = vi.fn();
  const { client, close } = await connectInMemory(server, {
    revision: NEWEST,
    onError,
    elicit: () => ({ action: "accept", content: { name: 1 } }),
  });
  await expect(client.callTool("ask", { kind: "elicit" })).rejects.toThrow("`name` must be of type string");
  expect(onError).toHaveBeenCalledTimes(1);
  await close();
});
