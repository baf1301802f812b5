// Only the console of the process can act for another: whatever a caller sends over HTTP or stdio, and whatever an
// authenticator says of it, handlers see neither `actsFor` nor `operatorCall`, and it gets its own live sessions.

import { expect, it } from "vitest";
import { connect, type Target } from "../../../src/client/connect.ts";
import { ownerOf } from "../../../src/core/caller-key.ts";
import type { Caller } from "../../../src/core/handler.ts";
import { javascript } from "../../../src/live/index.ts";
import { REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { serve } from "../../../src/serve.ts";
import { bearer } from "../../../src/server/index.ts";
import { createServer } from "../../../src/server/server.ts";
import { compiled } from "../../support/programs.ts";

const CLAIMS = { actsFor: "ada", operatorCall: "c1" };
const PROGRAM = compiled("caller-program.ts", import.meta.url);

/** Calls `who` with the claims wherever a client can put something. */
async function whoCalls(target: Target, revision: string): Promise<Caller> {
  const client = await connect(target, {
    revision,
    info: { name: "eve", version: "1", ...CLAIMS },
    capabilities: { experimental: CLAIMS, ...CLAIMS },
    ...(typeof target === "string" && { headers: { "acts-for": "ada", actsFor: "ada", operatorCall: "c1" } }),
  } as never);
  try {
    const { content } = await client.request("tools/call", {
      name: "who",
      arguments: {},
      ...CLAIMS,
      caller: CLAIMS,
      _meta: { ...CLAIMS, caller: CLAIMS },
    });
    return JSON.parse((content as unknown as readonly { readonly text: string }[])[0]?.text ?? "") as Caller;
  } finally {
    await client.close();
  }
}

it.each(REVISIONS.map(({ name }) => name))("no caller over HTTP acts for another, in %s", async (revision) => {
  const server = createServer({ name: "noting", version: "1" }).tool(
    "who",
    { description: "Says who calls" },
    (_, context) => JSON.stringify(context.caller),
  );
  const authenticate = async (): Promise<never> => ({ principal: "eve", ...CLAIMS, claims: CLAIMS }) as never;
  const serving = await serve(server, {
    http: { port: 0, auth: { authenticate, challenge: () => "Bearer" } as never },
  });
  const caller = await whoCalls(serving.url ?? "", revision);
  expect([caller.actsFor, caller.operatorCall, caller.principal]).toEqual([undefined, undefined, "eve"]);
  expect(ownerOf(caller)).toBe("eve");
  await serving.close();
});

it("no caller over stdio acts for another", async () => {
  const target = { command: process.execPath, args: [PROGRAM] };
  for (const { name } of [REVISIONS[0], REVISIONS.at(-1)].flatMap((revision) => revision ?? [])) {
    // One program after the other.
    const caller = await whoCalls(target, name);
    expect([caller.actsFor, caller.operatorCall]).toEqual([undefined, undefined]);
    expect(ownerOf(caller)).toBeUndefined();
  }
});

it("a caller over HTTP whose principal is that of the operator has its own live sessions", async () => {
  const live = javascript();
  const owners = new Map([
    ["t1", { principal: "ada" }],
    ["t2", { principal: "console", ...CLAIMS }],
  ]);
  const serving = await serve(live, { http: { port: 0, auth: bearer({ verify: (token) => owners.get(token) }) } });
  const as = (token: string): ReturnType<typeof connect> =>
    connect(serving.url ?? "", { headers: { authorization: `Bearer ${token}`, actsFor: "ada" } });
  const [ada, console] = [await as("t1"), await as("t2")];
  await ada.callTool("evaluate-js", { code: "const secret = 1" });
  const { content } = await console.callTool("evaluate-js", { code: "typeof secret", _meta: CLAIMS });
  expect(JSON.stringify(content)).not.toContain("number");
  expect(
    live
      .live()
      .get("")
      ?.sessions()
      .map(({ owner }) => owner),
  ).toEqual(["ada"]);
  const plain = await console.callTool("evaluate-js", { code: "typeof secret" });
  expect(plain.content).toMatchObject([{ text: "=> 'undefined'" }]);
  await ada.close();
  await console.close();
  await serving.close();
});
