// What is kept in a token store, under which keys, and what is made of a store that fails or lies.

import { describe, expect, it } from "vitest";
import { memoryTokens } from "./memory-tokens.ts";
import { isDue, isExpired, readRegistered, readTokens, type Tokens, tokensOf } from "./records.ts";
import type { TokenStore } from "./token-store.ts";
import { Vault } from "./vault.ts";

const tokens: Tokens = {
  issuer: "https://as.example",
  resource: "https://a.example/mcp",
  client: "one",
  access: "access",
  scheme: "Bearer",
  asked: [],
};

const vault = (store: TokenStore, who = "someone", notices: string[] = []): Vault =>
  new Vault({ store, end: new URL("https://a.example/mcp"), who, onNotice: (text) => notices.push(text) });

describe("what is kept for an end", () => {
  it("is found again by the next run", async () => {
    const store = memoryTokens();
    await vault(store).keep(tokens);
    expect(await vault(store).last()).toEqual(tokens);
    await vault(store).drop(tokens);
    expect(await vault(store).last()).toBeUndefined();
  });

  it("is found by nobody else, for no other issuer and no other end", async () => {
    const store = memoryTokens();
    await vault(store).keep(tokens);
    expect(await vault(store, "another").last()).toBeUndefined();
    expect(await vault(store).tokens({ ...tokens, issuer: "https://evil.example" })).toBeUndefined();
    expect(await vault(store).tokens({ ...tokens, resource: "https://a.example/other" })).toBeUndefined();
  });

  it("is not taken from a store that mixes up its keys", async () => {
    const store = { ...memoryTokens(), get: () => Promise.resolve(JSON.stringify(tokens)) };
    expect(await vault(store).tokens({ ...tokens, issuer: "https://evil.example" })).toBeUndefined();
  });

  it("is an error to read where the store fails, and a notice to write", async () => {
    const broken = { ...memoryTokens(), get: () => Promise.reject(new Error("locked")) };
    await expect(vault(broken).last()).rejects.toMatchObject({
      kind: "unauthorized",
      message: "The token store cannot be read: locked",
    });
    const notices: string[] = [];
    const full = { ...memoryTokens(), set: () => Promise.reject(new Error("full")) };
    await vault(full, "someone", notices).keepRegistered(tokens, undefined);
    expect(notices).toEqual(["The token store cannot keep what https://a.example needs: full"]);
  });
});

describe("what the store does not take", () => {
  it("counts for as long as nobody else writes there, and until the store takes it", async () => {
    const kept = memoryTokens();
    let isFull = false;
    const set: TokenStore["set"] = (key, value) => (isFull ? Promise.reject(new Error("full")) : kept.set(key, value));
    const mine = vault({ ...kept, set });
    await mine.keep(tokens);
    isFull = true;
    const newer = { ...tokens, access: "newer" };
    await mine.keep(newer);
    expect(await mine.tokens(tokens)).toEqual(newer);
    expect(await vault(kept).tokens(tokens)).toEqual(tokens);
    const theirs = { ...tokens, access: "theirs" };
    await vault(kept).keep(theirs);
    expect(await mine.tokens(tokens)).toEqual(theirs);
    isFull = false;
    await mine.keep(newer);
    expect(await vault(kept).tokens(tokens)).toEqual(newer);
  });
});

describe("a record", () => {
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
  ])("counts as none where it is %j", (text) => {
    expect(readTokens(text)).toBeUndefined();
    expect(readRegistered(text)).toBeUndefined();
  });

  it("of a client counts as none where the one before it is broken", () => {
    const client = { client_id: "c", token_endpoint_auth_method: "none", redirect_uris: [] };
    expect(readRegistered(JSON.stringify({ ...client, before: client }))).toEqual({ ...client, before: client });
    for (const before of [null, 1, {}, { ...client, client_id: 1 }]) {
      expect(readRegistered(JSON.stringify({ ...client, before }))).toBeUndefined();
    }
  });

  it("is due a minute before it expires, and a short-lived one a tenth of its life before", () => {
    const answer = { access_token: "a", token_type: "bearer" } as const;
    const long = tokensOf({ ...answer, expires_in: 3600 }, tokens, 0);
    expect([isDue(long, 3_539_999), isDue(long, 3_540_000)]).toEqual([false, true]);
    expect([isExpired(long, 3_599_999), isExpired(long, 3_600_000)]).toEqual([false, true]);
    const short = tokensOf({ ...answer, expires_in: 10 }, tokens, 0);
    expect([isDue(short, 8_999), isDue(short, 9_000)]).toEqual([false, true]);
    const endless = tokensOf(answer, tokens, 0);
    expect([isDue(endless, 1e15), isExpired(endless, 1e15)]).toEqual([false, false]);
  });
});
