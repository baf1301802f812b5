// `catenary run` in front of a server changes nothing: the same script of messages, played to the server and through
// `catenary run`, gets the same messages back. Short runs play to a server without a library and to one of our own, long
// runs also to the published servers.

import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import type { ErrorBody } from "../../src/jsonrpc/message.ts";
import type { Revision } from "../../src/protocol/revision.ts";
import { knownRevision, REVISIONS } from "../../src/protocol/revisions/index.ts";
import { Workspace, type ServerCommand } from "./real-server-steps.ts";
import { ScriptPlayer, type Loose, type Played, type ScriptStep } from "./script-player.ts";

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const CLI = path("../../dist/cli/main.js");
const SESSIONS = REVISIONS.filter(({ style }) => style === "session").map(({ name }) => name);
const [FIRST = "", ...LATER] = SESSIONS;
const [, THIRD = ""] = LATER;

/** Sets of capabilities that a client of a revision can declare. */
const CAPABILITIES: Readonly<Record<string, (revision: string) => Loose>> = {
  none: () => ({}),
  all: (revision) => ({
    roots: { listChanged: true },
    sampling: {},
    ...(revision >= THIRD && { elicitation: {} }),
    experimental: { "acme/tick": { every: 1 } },
    extensions: { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html"] } },
  }),
};

const call = (name: string, args: Loose = {}): ScriptStep => ({
  method: "tools/call",
  params: { name, arguments: args },
});

/** Steps for any server: what it lists, what it does not know, and what is a vendor's. */
const COMMON: readonly ScriptStep[] = [
  { method: "ping" },
  { method: "tools/list" },
  { method: "resources/list" },
  { method: "resources/templates/list" },
  { method: "prompts/list", params: { _meta: { "acme/trace": 1 } } },
  call("no such tool"),
  { method: "resources/read", params: { uri: "nothing://at/all" } },
  { method: "prompts/get", params: { name: "no such prompt" } },
  {
    method: "completion/complete",
    params: { ref: { type: "ref/prompt", name: "no such prompt" }, argument: { name: "a", value: "b" } },
  },
  { method: "nothing/known" },
  { method: "acme/echo", params: { a: [1, { b: null }], ttlMs: 3, _meta: { "acme/trace": "x" } } },
  { method: "notifications/acme/opened", params: { file: "a" }, notify: true },
  { method: "acme/closed", params: { file: "a" }, notify: true },
];

const VENDOR: readonly ScriptStep[] = [
  call("a"),
  { method: "acme/client" },
  { method: "acme/echo" },
  { method: "acme/typed" },
  ...[-32050, -32002, -32601, -32602, -32603, -1, 5].map((code) => ({ method: "acme/fail", params: { code } })),
  { method: "acme/tick", params: { count: 1 } },
  { method: "acme/ask", params: { of: [1, 2] } },
];

const OURS: readonly ScriptStep[] = [
  call("echo", { text: "ä 漢 🙂" }),
  call("echo"),
  call("structured"),
  call("both"),
  call("fail"),
  call("refuse"),
  call("picture"),
  { ...call("count", { to: 2, ms: 1 }), params: { ...call("count", { to: 2 }).params, _meta: { progressToken: "p" } } },
  { method: "logging/setLevel", params: { level: "debug" } },
  call("logs"),
  call("roots"),
  call("agree"),
  { method: "resources/read", params: { uri: "demo://note" } },
  { method: "resources/read", params: { uri: "demo://day/one" } },
  { method: "resources/subscribe", params: { uri: "demo://note" } },
  { method: "resources/unsubscribe", params: { uri: "demo://note" } },
  { method: "prompts/get", params: { name: "greet", arguments: { name: "Ada" } } },
  { method: "prompts/get", params: { name: "greet" } },
];

const EVERYTHING: readonly ScriptStep[] = [
  { method: "logging/setLevel", params: { level: "debug" } },
  call("echo", { message: "hi" }),
  call("get-sum", { a: 2, b: 3 }),
  call("get-sum", { a: "two" }),
  call("get-structured-content", { location: "Chicago" }),
  call("get-tiny-image"),
  call("get-resource-links", { count: 3 }),
  call("get-resource-reference", { resourceType: "Text", resourceId: 1 }),
  { method: "prompts/get", params: { name: "simple-prompt" } },
  { method: "prompts/get", params: { name: "args-prompt", arguments: { city: "Oslo" } } },
  { method: "resources/read", params: { uri: "demo://resource/dynamic/text/7" } },
  { method: "resources/subscribe", params: { uri: "demo://resource/dynamic/text/7" } },
  { method: "resources/unsubscribe", params: { uri: "demo://resource/dynamic/text/7" } },
  {
    method: "completion/complete",
    params: { ref: { type: "ref/prompt", name: "completable-prompt" }, argument: { name: "department", value: "S" } },
  },
];

interface Case {
  readonly server: ServerCommand;
  readonly steps: readonly ScriptStep[];
  /** Whether the server asks for the roots on its own, some time after the handshake. */
  readonly asksForRoots?: boolean;
  /** Leaves out what may differ. */
  readonly normalize: (played: Played, revision: string) => Played;
}

const node = (...args: string[]): ServerCommand => ({ command: process.execPath, args });
const vendor = (...args: string[]): ServerCommand =>
  node("--import", "tsx", path("fixtures/vendor-program.ts"), ...args);

function handshake(protocolVersion: string, capabilities: Loose): readonly ScriptStep[] {
  const clientInfo = { name: "script", version: "1.0.0" };
  return [
    { method: "initialize", params: { protocolVersion, capabilities, clientInfo } },
    { method: "notifications/initialized", notify: true },
  ];
}

/** Plays the steps to the server itself and through `catenary run`, and expects the same messages. */
async function expectSame(one: Case, revision: string, capabilities: Loose): Promise<void> {
  const { server, steps, normalize } = one;
  const { command, args, ...env } = server;
  const direct = new ScriptPlayer(server);
  const through = new ScriptPlayer({ ...node(CLI, "run", "--", command, ...args), ...env });
  try {
    for (const player of [direct, through]) {
      await player.play(handshake(revision, capabilities));
      // If it came during a call, the gateway would have to guess whether it belongs to the call.
      if (one.asksForRoots === true && "roots" in capabilities) await player.received("roots/list");
      await player.play(steps);
    }
    const expected = (): Played => normalize(direct.played, revision);
    // Messages that belong to no request may come after the last response.
    const isSame = (): boolean => isDeepStrictEqual(normalize(through.played, revision), expected());
    await expect
      .poll(isSame)
      .toBe(true)
      .catch(() => undefined);
    expect(normalize(through.played, revision)).toEqual(expected());
  } finally {
    await Promise.all([direct.close(), through.close()]);
  }
}

/** Replaces the fields of a result or error that the revision lacks. The published servers send them in any revision. */
function inRevision({ method, params = {} }: ScriptStep, { result, error }: Loose, { lift, lower }: Revision): Loose {
  const request = { method, params };
  if (error !== undefined) return { error: lower.error(lift.error(error as ErrorBody, request), request) };
  if (method !== "initialize") return { result: lower.result(method, lift.result(method, result as Loose)) };
  const { capabilities, serverInfo, ...rest } = result as Record<string, Loose>;
  return {
    result: {
      ...rest,
      capabilities: lower.serverCapabilities(lift.serverCapabilities(capabilities ?? {})),
      serverInfo: lower.implementation(lift.implementation(serverInfo ?? {})),
    },
  };
}

const workspace = new Workspace();
afterAll(() => workspace.remove());

function normalizePublished({ responses, others }: Played, name: string): Played {
  const revision = knownRevision(name);
  // What has changed before the client has asked for it is not reported.
  const reported = others.filter(({ method }) => !String(method).endsWith("/list_changed"));
  const inOne = responses.map(([step, response]) => [step, inRevision(step, response, revision)] as const);
  return workspace.normalize({ responses: inOne, others: reported }) as Played;
}

const unchanged = (played: Played): Played => played;

const CASES: Readonly<Record<string, Case>> = {
  "a server without a library": { server: vendor(), steps: [...COMMON, ...VENDOR], normalize: unchanged },
  "a server of ours": {
    server: node(CLI, "serve", path("../contract/cli/test-server.js")),
    steps: [...COMMON, ...OURS],
    normalize: unchanged,
  },
  ...Object.fromEntries(
    Object.entries(workspace.servers).map(([name, server]): [string, Case] => [
      name,
      name === "everything"
        ? { server, steps: [...COMMON, ...EVERYTHING], asksForRoots: true, normalize: normalizePublished }
        : { server, steps: COMMON, normalize: normalizePublished },
    ]),
  ),
};

describe.each(Object.entries(CASES))("%s", (_name, one) => {
  it.each(
    SESSIONS.flatMap((revision) => Object.keys(CAPABILITIES).map((capabilities) => [revision, capabilities] as const)),
  )("catenary run says the same in %s to a client with capabilities: %s", async (revision, capabilities) => {
    await expectSame(one, revision, CAPABILITIES[capabilities]?.(revision) ?? {});
  });
});

it("a server of the first revision only declares the same to a client of a later one", async () => {
  // The client gets the revision that it asked for.
  const normalize = ({ responses, others }: Played): Played => ({
    responses: responses.map(([step, { result, error }]) => {
      const { protocolVersion: _revision, ...rest } = (result ?? {}) as Loose;
      return [step, { rest, error }];
    }),
    others,
  });
  for (const revision of LATER) {
    await expectSame({ server: vendor(FIRST), steps: COMMON, normalize }, revision, {});
  }
});
