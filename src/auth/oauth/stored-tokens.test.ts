// What is stored and under which keys, and a store that fails or mixes up its keys.

import { expect, it } from "vitest";
import {
  isDue,
  isExpired,
  memoryTokens,
  readRegisteredClient,
  readTokens,
  StoredTokens,
  type Tokens,
  toTokens,
} from "./stored-tokens.ts";
import type { TokenStore } from "./types.ts";

const tokens: Tokens = {
  issuer: "https://as.example",
  resource: "https://a.example/mcp",
  client: "one",
  access: "access",
  scheme: "Bearer",
  asked: [],
};

const storedTokens = (store: TokenStore, owner = "someone", notices: string[] = []): StoredTokens =>
  new StoredTokens({
    store,
    mcpServer: new URL("https://a.example/mcp"),
    owner,
    onNotice: (text) => notices.push(text),
  });

it("stored tokens are found by the next run", async () => {
  const store = memoryTokens();
  await storedTokens(store).save(tokens);
  expect(await storedTokens(store).last()).toEqual(tokens);
  await storedTokens(store).delete(tokens);
  expect(await storedTokens(store).last()).toBeUndefined();
});

it("stored tokens are not found for another owner, issuer or resource", async () => {
  const store = memoryTokens();
  await storedTokens(store).save(tokens);
  expect(await storedTokens(store, "another").last()).toBeUndefined();
  expect(await storedTokens(store).get({ ...tokens, issuer: "https://evil.example" })).toBeUndefined();
  expect(await storedTokens(store).get({ ...tokens, resource: "https://a.example/other" })).toBeUndefined();
});

it("stored tokens are refused from a store that mixes up its keys", async () => {
  const store = { ...memoryTokens(), get: () => Promise.resolve(JSON.stringify(tokens)) };
  expect(await storedTokens(store).get({ ...tokens, issuer: "https://evil.example" })).toBeUndefined();
});

it("stored tokens cause an error if the store cannot be read, and a notice if it cannot be written", async () => {
  const broken = { ...memoryTokens(), get: () => Promise.reject(new Error("locked")) };
  await expect(storedTokens(broken).last()).rejects.toMatchObject({
    kind: "unauthorized",
    message: "The token store cannot be read: locked",
  });
  const notices: string[] = [];
  const full = { ...memoryTokens(), set: () => Promise.reject(new Error("full")) };
  await storedTokens(full, "someone", notices).saveClient(tokens, undefined);
  expect(notices).toEqual(["The token store could not save the tokens for https://a.example: full"]);
});

it("tokens that could not be stored are used until another process writes, or the store works again", async () => {
  const inner = memoryTokens();
  let isFull = false;
  const set: TokenStore["set"] = (key, value) => (isFull ? Promise.reject(new Error("full")) : inner.set(key, value));
  const mine = storedTokens({ ...inner, set });
  await mine.save(tokens);
  isFull = true;
  const newer = { ...tokens, access: "newer" };
  await mine.save(newer);
  expect(await mine.get(tokens)).toEqual(newer);
  expect(await storedTokens(inner).get(tokens)).toEqual(tokens);
  const theirs = { ...tokens, access: "theirs" };
  await storedTokens(inner).save(theirs);
  expect(await mine.get(tokens)).toEqual(theirs);
  isFull = false;
  await mine.save(newer);
  expect(await storedTokens(inner).get(tokens)).toEqual(newer);
});

it.each([
  undefined,
  "",
  "null",
  "[]",
  '"text"',
  JSON.stringify({ ...tokens, access: 1 }),
  JSON.stringify({ ...tokens, scheme: "Mac" }),
  JSON.stringify({ ...tokens, asked: "all" }),
  JSON.stringify({ ...tokens, asked: [1] }),
])("a stored entry counts as missing if it is %j", (text) => {
  expect(readTokens(text)).toBeUndefined();
  expect(readRegisteredClient(text)).toBeUndefined();
});

it("a stored entry counts as missing if its client is broken", () => {
  const client = { client_id: "c", token_endpoint_auth_method: "none", redirect_uris: [] };
  expect(readRegisteredClient(JSON.stringify(client))).toEqual(client);
  expect(readTokens(JSON.stringify({ ...tokens, registered: client }))).toEqual({ ...tokens, registered: client });
  for (const registered of [null, 1, {}, { ...client, client_id: 1 }]) {
    expect(readTokens(JSON.stringify({ ...tokens, registered }))).toBeUndefined();
    expect(readRegisteredClient(JSON.stringify(registered))).toBeUndefined();
  }
});

it("a stored entry is due a minute before it expires, or a tenth of its lifetime if that is shorter", () => {
  const answer = { access_token: "a", token_type: "bearer" } as const;
  const long = toTokens({ ...answer, expires_in: 3600 }, tokens, 0);
  expect([isDue(long, 3_539_999), isDue(long, 3_540_000)]).toEqual([false, true]);
  expect([isExpired(long, 3_599_999), isExpired(long, 3_600_000)]).toEqual([false, true]);
  const short = toTokens({ ...answer, expires_in: 10 }, tokens, 0);
  expect([isDue(short, 8_999), isDue(short, 9_000)]).toEqual([false, true]);
  const endless = toTokens(answer, tokens, 0);
  expect([isDue(endless, 1e15), isExpired(endless, 1e15)]).toEqual([false, false]);
});
