// The headers of every request, and refusals of who we are: taken to the authorizer, or told with what to do.

import { expect, test } from "vitest";
import type { Authorizer, Challenge } from "../../core/authentication.ts";
import type { ConnectionError } from "../../core/errors.ts";
import { DEFAULT_LIMITS } from "../../jsonrpc/codec.ts";
import { answer, scripted, type Script } from "../../../test/support/scripted-requester.ts";
import { HttpConnection, quote } from "./http-connection.ts";

const url = new URL("http://end.example/mcp");
const asking = {
  method: "POST",
  headers: { accept: "*/*" },
  body: "{}",
  signal: new AbortController().signal,
} as const;

function linked(script: Script, auth?: Authorizer, headers?: Record<string, string>) {
  const requester = scripted(script);
  return { requester, link: new HttpConnection({ url, requester, auth, headers, limits: DEFAULT_LIMITS }) };
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

test("headers of the program go with every request, and ours count where both name one", async () => {
  const { link, requester } = linked(() => answer(200), undefined, { "X-Team": "a", Accept: "text/plain" });
  await link.ask(asking);
  expect(requester.requests[0]?.headers).toEqual({ "user-agent": "catenary", "x-team": "a", accept: "*/*" });
});

test("a refusal is taken to the authorizer, with what was sent, and the request is sent again", async () => {
  const auth = tokens("old", "new");
  const { link, requester } = linked(
    ({ headers }) =>
      headers["authorization"] === "Bearer new" ? answer(200) : answer(401, "", { "www-authenticate": "Bearer" }),
    auth,
  );
  expect((await link.ask(asking)).status).toBe(200);
  expect(requester.requests).toHaveLength(2);
  const [challenge] = auth.challenges;
  expect(challenge).toMatchObject({ status: 401, attempt: 1, sent: { authorization: "Bearer old" } });
  expect(challenge?.headers["www-authenticate"]).toBe("Bearer");
});

test("where the authorizer gives up, the error says that what we showed was not accepted, and not what it was", async () => {
  const { link } = linked(() => answer(403, "no"), tokens("secret"));
  const error = await link.ask(asking).catch((failure: unknown) => failure as ConnectionError);
  expect(error).toMatchObject({ kind: "unauthorized", status: 403, mayHaveRun: false });
  expect((error as ConnectionError).message).toBe(
    "http://end.example/mcp refused us (403, no): what we showed was not accepted",
  );
});

test("what an end says back of what we showed to it stands in no error", async () => {
  const auth: Authorizer = {
    authorize: async () => ({ authorization: "Bearer 0123456789" }),
    refused: async () => false,
  };
  const echo: Script = ({ headers }) =>
    answer(403, `you sent ${headers["authorization"] ?? ""} and ${headers["x-key"] ?? ""}`);
  const { link } = linked(echo, auth, { "X-Key": "abcdefghij" });
  const error = await link.ask(asking).catch((failure: unknown) => failure as ConnectionError);
  expect((error as ConnectionError).message).toContain("you sent ... and ...");
  const { link: other } = linked(() => answer(500, "Bearer 0123456789"), auth);
  expect(await (await other.ask(asking)).text(100)).toBe("...");
});

test("without an authorizer the error says what to bring", async () => {
  const { link } = linked(() => answer(401));
  await expect(link.ask(asking)).rejects.toThrow("bring a token or let a person sign in");
});

test("for what is said in parting, nobody is asked to sign in", async () => {
  const auth = tokens("old", "new");
  const { link, requester } = linked(() => answer(401), auth);
  await expect(link.ask({ ...asking, isParting: true })).rejects.toMatchObject({ kind: "unauthorized" });
  expect(requester.requests).toHaveLength(1);
  expect(auth.challenges).toEqual([]);
});

test("an authorizer that never gives up is given up on", async () => {
  const auth: Authorizer = { authorize: async () => ({}), refused: async () => true };
  const { link, requester } = linked(() => answer(401), auth);
  await expect(link.ask(asking)).rejects.toMatchObject({ kind: "unauthorized" });
  expect(requester.requests).toHaveLength(8);
});

test("what an end says is quoted on one line, without markup or escape sequences, and cut", () => {
  expect(quote("<html><style>p{}</style><h1>Not\n\u001b[31mfound</h1></html>")).toBe(", Not [31mfound");
  expect(quote("  ")).toBe("");
  expect(quote("x".repeat(500))).toBe(`, ${"x".repeat(200)}...`);
});
