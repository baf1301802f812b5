// Headers of every request, and 401/403: passed to the authorizer, or reported with advice.

import { expect, onTestFinished, test, vi } from "vitest";
import type { Authorizer, Challenge } from "../../core/authentication.ts";
import { deferred } from "../../core/async.ts";
import { ConnectionError, type ConnectionErrorKind } from "../../core/errors.ts";
import { DEFAULT_LIMITS } from "../../jsonrpc/codec.ts";
import { answer, scriptedRequester, type Script } from "../../../test/support/http/scripted-requester.ts";
import { HttpConnection, quote } from "./http-connection.ts";

const url = new URL("http://server.example/mcp");
const call = {
  method: "POST",
  headers: { accept: "*/*" },
  body: "{}",
  signal: new AbortController().signal,
} as const;

function connectionWith(script: Script, auth?: Authorizer, headers?: Record<string, string>) {
  const requester = scriptedRequester(script);
  return { requester, connection: new HttpConnection({ url, requester, auth, headers, limits: DEFAULT_LIMITS }) };
}

function tokens(...names: string[]): Authorizer & { challenges: Challenge[] } {
  const challenges: Challenge[] = [];
  return {
    challenges,
    authorize: async () => ({ authorization: `Bearer ${names[0] ?? ""}` }),
    refused: async (challenge) => {
      challenges.push(challenge);
      names.shift();
      return names.length > 0;
    },
  };
}

test("given headers go with every request, and those of a request override them", async () => {
  const { connection, requester } = connectionWith(() => answer(200), undefined, {
    "X-Team": "a",
    Accept: "text/plain",
  });
  await connection.send(call);
  expect(requester.requests[0]?.headers).toEqual({ "user-agent": "catenary", "x-team": "a", accept: "*/*" });
});

test("a 401 goes to the authorizer with the sent credentials, and the request is repeated", async () => {
  const auth = tokens("old", "new");
  const { connection, requester } = connectionWith(
    ({ headers }) =>
      headers["authorization"] === "Bearer new" ? answer(200) : answer(401, "", { "www-authenticate": "Bearer" }),
    auth,
  );
  expect((await connection.send(call)).status).toBe(200);
  expect(requester.requests).toHaveLength(2);
  const [challenge] = auth.challenges;
  expect(challenge).toMatchObject({ status: 401, attempt: 1, sent: { authorization: "Bearer old" } });
  expect(challenge?.headers["www-authenticate"]).toBe("Bearer");
});

test("when the authorizer gives up, the error says so without showing the credentials", async () => {
  const { connection } = connectionWith(() => answer(403, "no"), tokens("secret"));
  const error = await connection.send(call).catch((failure: unknown) => failure as ConnectionError);
  expect(error).toMatchObject({ kind: "unauthorized", status: 403, mayHaveRun: false });
  expect((error as ConnectionError).message).toBe(
    "http://server.example refused access (403, no): the credentials were not accepted",
  );
});

test.each([401, 403])(
  "a %i whose body does not end is reported all the same, and the body is dropped",
  async (status) => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const discard = vi.fn<() => void>();
    const reading = deferred();
    const text = (): Promise<string> => {
      reading.resolve();
      return new Promise(() => undefined);
    };
    const { connection } = connectionWith(() => ({ ...answer(status), text, discard }));
    const sent = connection.send(call).catch((failure: unknown) => failure);
    await reading.promise;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await sent).toMatchObject({ kind: "unauthorized", status, mayHaveRun: false });
    expect(discard).toHaveBeenCalledOnce();
  },
);

const denial = (id: unknown): string =>
  JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32603, message: "It needs a scope", data: { n: 1 } } });

test("a 403 with a JSON-RPC error for the request is its answer", async () => {
  const { connection } = connectionWith(() => answer(403, denial(7)), tokens("secret"));
  const response = await connection.send({ ...call, id: 7 });
  expect([response.status, await response.text(1000)]).toEqual([403, denial(7)]);
});

test.each([
  ["for another id", denial(8), 403],
  ["for no id", denial(null), 403],
  ["with the status 401", denial(7), 401],
  ["that is not a JSON-RPC error", '{"id":7}', 403],
])("a refusal %s is an error of the connection", async (_which, body, status) => {
  const { connection } = connectionWith(() => answer(status, body));
  await expect(connection.send({ ...call, id: 7 })).rejects.toMatchObject({ kind: "unauthorized", status });
});

test.each<[string, ConnectionErrorKind, number | undefined, string | undefined]>([
  ["adds why an authorizer could not get more rights", "unauthorized", undefined, "It needs a scope; sign in again"],
  ["does not repeat that a token was refused", "unauthorized", 403, "It needs a scope"],
  ["is not the answer of a request that was cancelled", "cancelled", undefined, undefined],
])("a 403 with a JSON-RPC error %s", async (_what, kind, status, message) => {
  const refusal = new ConnectionError(kind, "sign in again", { status });
  const auth: Authorizer = { authorize: async () => ({}), refused: () => Promise.reject(refusal) };
  const { connection } = connectionWith(() => answer(403, denial(7)), auth);
  const sent = connection.send({ ...call, id: 7 });
  if (message === undefined) return expect(sent).rejects.toBe(refusal);
  const { error } = JSON.parse(await (await sent).text(1000)) as { error: object };
  expect(error).toEqual({ code: -32603, message, data: { n: 1 } });
});

test.each([
  ["ours", '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Host \\"server.example\\" is not allowed."}}'],
  ["others", '{"jsonrpc":"2.0","error":{"code":-32000,"message":"Invalid Host: server.example"},"id":null}'],
])("a host that is not allowed is not taken for wrong credentials (%s)", async (_whose, body) => {
  const { connection } = connectionWith(() => answer(403, body), tokens("secret"));
  await expect(connection.send(call)).rejects.toMatchObject({
    kind: "http",
    status: 403,
    mayHaveRun: false,
    message:
      "http://server.example does not accept the host server.example (403): if it is a gateway, " +
      "allow it with --allow-host server.example, or in listen.allowedHosts of its config",
  });
});

test("credentials echoed by the server do not appear in errors", async () => {
  const auth: Authorizer = {
    authorize: async () => ({ authorization: "Bearer 0123456789" }),
    refused: async () => false,
  };
  const echo: Script = ({ headers }) =>
    answer(403, `you sent ${headers["authorization"] ?? ""} and ${headers["x-key"] ?? ""}`);
  const { connection } = connectionWith(echo, auth, { "X-Key": "abcdefghij" });
  const error = await connection.send(call).catch((failure: unknown) => failure as ConnectionError);
  expect((error as ConnectionError).message).toContain("you sent ... and ...");
  const { connection: other } = connectionWith(() => answer(500, "Bearer 0123456789"), auth);
  expect(await (await other.send(call)).text(100)).toBe("...");
});

test("an echoed query or key never appears in errors, and a plain path only if the target does not hide it", async () => {
  const echo: Script = (request) => answer(404, `nothing at ${request.url.pathname}${request.url.search}`);
  const said = async (path: string, hidesPath?: boolean): Promise<string> => {
    const url = new URL(`http://server.example${path}?key=opensesame`);
    const connection = new HttpConnection({ url, requester: scriptedRequester(echo), hidesPath });
    return (await connection.send(call)).text(100);
  };
  expect(await said("/servers/mail/mcp")).toBe("nothing at /servers/mail/mcp...");
  expect(await said("/s/a1b2c3/api/abcdefghijklmnop/v1")).toBe("nothing at /s/.../api/.../v1...");
  expect(await said("/servers/mail/mcp", true)).toBe("nothing at ...");
});

test("without an authorizer the error says what to set", async () => {
  const { connection } = connectionWith(() => answer(401));
  await expect(connection.send(call)).rejects.toThrow("set `auth` or an authorization header");
});

test("with skipSignIn the authorizer is not asked after a 401", async () => {
  const auth = tokens("old", "new");
  const { connection, requester } = connectionWith(() => answer(401), auth);
  await expect(connection.send({ ...call, skipSignIn: true })).rejects.toMatchObject({ kind: "unauthorized" });
  expect(requester.requests).toHaveLength(1);
  expect(auth.challenges).toEqual([]);
});

test("an authorizer that never gives up is limited to 8 attempts", async () => {
  const auth: Authorizer = { authorize: async () => ({}), refused: async () => true };
  const { connection, requester } = connectionWith(() => answer(401), auth);
  await expect(connection.send(call)).rejects.toMatchObject({ kind: "unauthorized" });
  expect(requester.requests).toHaveLength(8);
});

test("quotes are on one line, shortened, without markup or escape sequences", () => {
  expect(quote("<html><style>p{}</style><h1>Not\n\u001b[31mfound</h1></html>")).toBe(", Not [31mfound");
  expect(quote("  ")).toBe("");
  // In linear time: a server may send anything.
  expect(quote("<".repeat(500_000))).toBe(`, ${"<".repeat(200)}...`);
  expect(quote("<style".repeat(100_000))).toMatch(/^, <style/);
  expect(quote("x".repeat(500))).toBe(`, ${"x".repeat(200)}...`);
});
