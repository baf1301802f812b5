// Who is asked about which tools, what the question shows, and what happens after each answer, in both styles.

import { expect, it } from "vitest";
import { RawPeer, statelessMeta } from "../../../test/support/dialogue/raw-peer.ts";
import { callRequest, fakeClient, fakeContext, textResult } from "../../../test/support/handlers/fake-client.ts";
import type { Context, Request, Result } from "../../core/handler.ts";
import { serveTransport } from "../../dialogue/connection.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { inputRequired } from "../../server/index.ts";
import { createServer } from "../../server/server.ts";
import { connectInMemory, REVISION_NAMES } from "../../testing.ts";
import { memoryPair } from "../../transport/memory.ts";
import { chain } from "../chain.ts";
import { confirm, type ConfirmOptions } from "./confirm.ts";

const form = { message: "Who?", requestedSchema: { type: "object" as const, properties: {} } };

const server = () =>
  createServer({ name: "notes", version: "1" })
    .tool("delete", { annotations: { destructiveHint: true } }, () => "deleted")
    .tool("add", { annotations: { destructiveHint: false } }, () => "added")
    .tool("read", { annotations: { readOnlyHint: true } }, () => "read")
    .tool("silent", {}, () => "silent")
    .tool("asks", {}, (_args, { answers }) =>
      answers["who"] === undefined
        ? inputRequired({ who: { method: "elicitation/create", params: { ...form, mode: "form" } } }, "state")
        : JSON.stringify(answers["who"]),
    );

it.each(REVISION_NAMES.slice(-3))(
  "asks once before a tool that may destroy something, callers of %s",
  async (revision) => {
    const asked: string[] = [];
    let action: "accept" | "decline" | "cancel" = "accept";
    const { client, close } = await connectInMemory(chain(confirm()).to(server()), {
      revision,
      elicit: ({ message }) => {
        asked.push(message);
        return action === "accept" ? { action, content: {} } : { action };
      },
    });
    expect(await client.callTool("delete", { id: 1 })).toMatchObject({ content: [{ text: "deleted" }] });
    expect(await client.callTool("silent")).toMatchObject({ content: [{ text: "silent" }] });
    expect(await client.callTool("asks")).toMatchObject({ content: [{ text: expect.stringContaining("accept") }] });
    expect(asked.splice(0)).toEqual([
      'May the tool delete run with the arguments {"id":1}?',
      "May the tool silent run?",
      "May the tool asks run?",
      "Who?",
    ]);
    for (const name of ["add", "read"]) expect((await client.callTool(name)).isError).not.toBe(true);
    expect(asked).toEqual([]);
    action = "decline";
    expect(await client.callTool("delete")).toMatchObject({
      isError: true,
      content: [{ text: "The user declined the call of delete" }],
    });
    action = "cancel";
    expect(await client.callTool("delete")).toMatchObject({
      isError: true,
      content: [{ text: "The user did not allow delete to run" }],
    });
    await close();
  },
);

/** Sends a call, and returns the question and the result or error. `ran`: whether the tool ran. */
async function send(options: ConfirmOptions, request: Request, answer: () => Result = () => ({ action: "accept" })) {
  let ran = false;
  const gateway = chain(confirm(options)).to(async ({ method }) => {
    if (method === "tools/list") return { tools: [{ name: "add", annotations: { destructiveHint: false } }] };
    ran = true;
    return textResult("done");
  });
  const { context, clientRequests } = fakeContext({ answer });
  const outcome = await gateway(request, context).catch((error: unknown) => error);
  return { question: clientRequests[0]?.params["message"], outcome, ran: () => ran };
}

it("asks about the given tools, whatever they declare if wanted", async () => {
  expect((await send({ include: ["a*"] }, callRequest("add"))).question).toBeUndefined();
  expect((await send({ include: ["a*"], only: "all" }, callRequest("add"))).question).toBe("May the tool add run?");
  expect((await send({ include: ["b*"], only: "all" }, callRequest("add"))).question).toBeUndefined();
  expect((await send({}, callRequest("unlisted"))).question).toBe("May the tool unlisted run?");
});

it("asks about the given tools also when they get the prefix of their server", async () => {
  const asked: string[] = [];
  const gateway = chain(confirm({ include: ["add"], only: "all" })).to({ notes: server(), mail: server() });
  const { client, close } = await connectInMemory(gateway, {
    elicit: ({ message }) => {
      asked.push(message);
      return { action: "decline" };
    },
  });
  for (const { name } of (await client.listTools()).tools) if (/read|add/.test(name)) await client.callTool(name);
  expect(asked).toEqual(["May the tool notes_add run?", "May the tool mail_add run?"]);
  await close();
});

it("shows arguments cut and escaped, without secrets, or not at all", async () => {
  const args = { path: "a\u202eb\n", apiKey: "sk-1", deep: [{ password: "p", user: "ada" }] };
  expect((await send({}, callRequest("x", args))).question).toBe(
    String.raw`May the tool x run with the arguments {"path":"a\u{202e}b\n","apiKey":"[redacted]","deep":[{"password":"[redacted]","user":"ada"}]}?`,
  );
  expect((await send({ arguments: 9 }, callRequest("x", args))).question).toBe(
    'May the tool x run with the arguments {"path":"…?',
  );
  expect((await send({ arguments: false }, callRequest("x\u001b[2J", args))).question).toBe(
    String.raw`May the tool x\u{1b}[2J run?`,
  );
});

it("does not run the tool if the client fails to ask", async () => {
  const { outcome, ran } = await send({}, callRequest("delete"), () => {
    throw new Error("No window");
  });
  expect(outcome).toMatchObject({
    isError: true,
    content: [{ text: "delete did not run: the client could not ask the user for consent: No window" }],
  });
  expect(ran()).toBe(false);
});

it("refuses a caller that cannot be asked, or lets it pass", async () => {
  const cannot = [{}, { elicitation: { url: {} } }, { sampling: {} }];
  for (const capabilities of cannot) {
    const options = { caller: { capabilities } };
    const { callError } = fakeClient(
      chain(confirm({ only: "all" })).to(async () => textResult("ran")),
      options,
    );
    expect(await callError("tools/call", { name: "delete" })).toMatchObject({
      kind: "missing_capability",
      message:
        "The middleware confirm refused tools/call: the tool delete needs the consent of the user, " +
        "but the client cannot ask the user (it has not declared elicitation); use a client that can",
      data: { middlewareName: "confirm", toolName: "delete", requiredCapabilities: { elicitation: {} } },
    });
    const { call, clientRequests } = fakeClient(
      chain(confirm({ only: "all", unasked: "allow" })).to(async () => textResult("ran")),
      options,
    );
    expect(await call("tools/call", { name: "delete" })).toEqual(textResult("ran"));
    expect(clientRequests).toEqual([]);
  }
});

it("judges a tool by the list of the caller", async () => {
  const gateway = chain(confirm()).to(async ({ method }, { caller }: Context) =>
    method === "tools/list"
      ? { tools: [{ name: "move", annotations: { destructiveHint: caller.principal !== "ada" } }] }
      : textResult("moved"),
  );
  const [ada, bea] = ["ada", "bea"].map((principal) =>
    fakeContext({ principal, answer: () => ({ action: "accept" }) }),
  );
  for (const { context } of [ada!, bea!])
    expect(await gateway(callRequest("move"), context)).toEqual(textResult("moved"));
  expect([ada!.clientRequests.length, bea!.clientRequests.length]).toEqual([0, 1]);
});

it("asks, even if the call already comes with an answer", async () => {
  const [ours, theirs] = memoryPair();
  const served = await serveTransport(chain(confirm()).to(server()), ours);
  const peer = await new RawPeer(theirs).start();
  const accept = { action: "accept", content: {} };
  let id = 0;
  const call = async (params: Record<string, unknown>): Promise<Result> => {
    id += 1;
    const _meta = statelessMeta(NEWEST.name, { elicitation: {} });
    const answer = await peer.request({
      id,
      method: "tools/call",
      params: { name: "delete", arguments: {}, ...params, _meta },
    });
    return answer["result"] as Result;
  };
  for (const key of ["1", "confirm", "__proto__"]) {
    expect(await call({ inputResponses: { [key]: accept } })).toMatchObject({ resultType: "input_required" });
  }
  // Nor does the answer to one question count for the next call.
  const asked = await call({});
  const [key = ""] = Object.keys(asked["inputRequests"] as object);
  const answered = { inputResponses: { [key]: accept, "2": accept }, requestState: asked["requestState"] };
  expect(await call(answered)).toMatchObject({ content: [{ text: "deleted" }] });
  expect(await call({ inputResponses: { [key]: accept } })).toMatchObject({ resultType: "input_required" });
  await served.close();
});
