// The authorizer of a server in a config: loads nothing while the server asks for nothing, and tells callers without a
// user what to do. Whole sign-ins are in test/contract/cli/gateway-sign-in.test.ts.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Challenge } from "../core/authentication.ts";
import { createAuthorizer, signInNeeded } from "./sign-in.ts";

const url = new URL("http://127.0.0.1:1/secret-path/mcp");
const request = { method: "POST", url, signal: new AbortController().signal };
const challenge: Challenge = { ...request, status: 401, headers: {}, sent: {}, attempt: 1 };
let folder = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "catenary-config-sign-in-"));
  vi.stubEnv("XDG_STATE_HOME", folder);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

it("an authorizer changes no request until the server asks", async () => {
  const auth = await createAuthorizer({ url, settings: {} }, { onNotice: () => undefined });
  expect(await auth.authorize(request)).toEqual({});
  auth.answered?.(request, {});
});

it("an authorizer does not fail because of a token file that cannot be used, until the server asks", async () => {
  await writeFile(join(folder, "catenary"), "not a folder");
  const auth = await createAuthorizer({ url, settings: {} }, { onNotice: () => undefined });
  expect(await auth.authorize(request)).toEqual({});
  await expect(auth.refused(challenge)).rejects.toThrow("The token store cannot be read");
});

it("an authorizer asks `signIn` for a way to the user", async () => {
  const signIn = vi.fn();
  const target = { name: "board", url, settings: { callbackPort: 4_000 } };
  await createAuthorizer(target, { signIn, onNotice: () => undefined });
  expect(signIn).toHaveBeenCalledExactlyOnceWith(target);
});

it.each([
  ["board", "`catenary login board` where"],
  ["my board", '`catenary login "my board"` where'],
  [undefined, "`catenary login` with its URL where"],
])("the error for callers of %s names the command, and the host alone", (name, command) => {
  const { message } = signInNeeded({ ...(name !== undefined && { name }), url, settings: {} });
  expect(message).toContain(`127.0.0.1:1 asks for a sign-in or a token; run ${command} the gateway runs`);
  expect(message).not.toContain("secret");
});
