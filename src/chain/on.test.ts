// on(): each function gets the messages of its methods, in both directions and both styles, and no others.

import { expect, expectTypeOf, it, vi } from "vitest";
import { callRequest, fakeContext, textResult } from "../../test/support/handlers/fake-client.ts";
import type { Context, Handler, Middleware, Result } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import type {
  CallToolResult,
  CreateTaskResult,
  ElicitParams,
  ElicitResult,
  InputRequiredResult,
  ListToolsResult,
  LogMessageParams,
} from "../protocol/model/index.ts";
import { inputRequired } from "../server/index.ts";
import { createServer } from "../server/server.ts";
import { connectInMemory, REVISION_NAMES } from "../testing.ts";
import { chain } from "./chain.ts";
import { on } from "./on.ts";

const echo: Handler = async (request) => textResult(String(request.params["name"]));

it("narrows the types by the method", () => {
  const chained: Middleware = on("tools/call", async (request, context, next) => {
    expectTypeOf(request.method).toEqualTypeOf<"tools/call">();
    expectTypeOf(request.params.name).toEqualTypeOf<string>();
    expectTypeOf(context).toEqualTypeOf<Context>();
    const result = await next({ ...request, params: { ...request.params, arguments: { a: 1 } } }, context);
    expectTypeOf(result).toExtend<CallToolResult | InputRequiredResult | CreateTaskResult>();
    if ("content" in result) expectTypeOf(result).toEqualTypeOf<CallToolResult>();
    if (result.resultType === "input_required" || result.resultType === "task") return result;
    expectTypeOf(result).toEqualTypeOf<CallToolResult>();
    return { ...result, content: [...result.content, { type: "text", text: "more" }] };
  });
  expectTypeOf(chained).toEqualTypeOf<Middleware>();
  on("tools/list", async (request, context, next) => {
    expectTypeOf(request.params.cursor).toEqualTypeOf<string | undefined>();
    const result = await next(request, context);
    expectTypeOf(result).toEqualTypeOf<ListToolsResult>();
    return { ...result, tools: result.tools.filter(({ name }) => name !== "hidden") };
  });
  on(["tools/call", "prompts/get"], (request, context, next) => {
    expectTypeOf(request.method).toEqualTypeOf<"tools/call" | "prompts/get">();
    if (request.method === "tools/call") expectTypeOf(request.params.name).toEqualTypeOf<string>();
    return next(request, context);
  });
  on("elicitation/create", async (question, context, next) => {
    expectTypeOf(question.params).toEqualTypeOf<ElicitParams>();
    const answer = await next(question, context);
    expectTypeOf(answer).toEqualTypeOf<ElicitResult>();
    return { action: "decline" };
  });
  on("notifications/message", (notification, context, next) => {
    expectTypeOf(notification.params).toEqualTypeOf<LogMessageParams>();
    next(notification, context);
  });
  on("notifications/tools/list_changed", (notification, context, next) => {
    expectTypeOf(notification.params?._meta).toEqualTypeOf<{ readonly [key: string]: unknown } | undefined>();
    next(notification, context);
  });
  // @ts-expect-error unknown method
  expect(() => on("tools/cal", () => textResult(""))).toThrow(
    '"tools/cal" is not a method; did you mean "tools/call"?',
  );
  // @ts-expect-error result of another method
  on("tools/list", async () => ({ resultType: "complete", contents: [] }));
});

it("refuses wrong methods and functions", () => {
  const put =
    (method: unknown, run: unknown = () => undefined) =>
    () =>
      on(method as never, run as never);
  expect(put("tools/call", "log")).toThrow("on() takes a function");
  expect(put([])).toThrow("at least one method");
  expect(put(undefined)).toThrow("must be the name of a method");
  expect(put("notifications/cancelled")).toThrow("`context.signal`");
  expect(put(["tools/call", "roots/list"])).toThrow("each need a function of their own");
  expect(put(["tools/call", "tools/lists"])).toThrow('did you mean "tools/list"?');
});

it("gets requests of its methods only, and is named after them", async () => {
  const { context } = fakeContext();
  const seen: string[] = [];
  const noting = on(["tools/call", "prompts/get"], (request, own, next) => {
    seen.push(request.method);
    return next(request, own);
  });
  const gateway = chain(noting).to(echo);
  expect(gateway.middleware[0]?.name).toBe("on tools/call prompts/get");
  for (const method of ["tools/call", "tools/list", "prompts/get"]) {
    await gateway({ method, params: { name: "x" } }, context);
  }
  expect(seen).toEqual(["tools/call", "prompts/get"]);
});

it("notifications are passed on, changed or dropped", async () => {
  const caller = fakeContext();
  const gateway = chain(
    on("notifications/progress", (notification, context, next) => {
      const { progress } = notification.params;
      if (progress < 3) next({ ...notification, params: { ...notification.params, progress: progress * 10 } }, context);
    }),
  ).to(async (_request, context) => {
    for (const progress of [1, 2, 3]) {
      context.notify({ method: "notifications/progress", params: { progressToken: "t", progress } });
    }
    context.notify({ method: "notifications/message", params: { level: "info", data: "x" } });
    return textResult("done");
  });
  await gateway(callRequest("a"), caller.context);
  expect(caller.notifications.map(({ params }) => params?.["progress"])).toEqual([10, 20, undefined]);
});

it("notifications may be handled by an async function, whose rejection fails the request", async () => {
  const caller = fakeContext();
  const gateway = chain(
    on("notifications/message", async () => {
      await Promise.resolve();
      throw new Error("broken");
    }),
  ).to((_request, context) => {
    context.notify({ method: "notifications/message", params: { level: "info", data: "x" } });
    return new Promise(() => undefined);
  });
  await expect(gateway(callRequest("a"), caller.context)).rejects.toThrow(
    "The middleware on notifications/message failed at notifications/message: broken",
  );
});

const form = { message: "Who?", requestedSchema: { type: "object" as const, properties: {} } };
const accept = (content: Record<string, string>): Result => ({ action: "accept", content });

/** Asks during a call, and by an `input_required` result. */
const asking = createServer({ name: "asking", version: "1" })
  .tool("ask", { description: "Asks during the call" }, async (_args, context) => {
    const answer = await context.ask.elicit({ ...form, mode: "form" });
    return JSON.stringify(answer);
  })
  .tool("result", { description: "Asks by its result" }, (_args, context) => {
    const answer = context.answers["who"];
    const question = { method: "elicitation/create" as const, params: { ...form, mode: "form" as const } };
    const other = { method: "roots/list" as const };
    return answer === undefined
      ? inputRequired({ who: question, where: other }, "state")
      : JSON.stringify([answer, context.answers["where"]]);
  });

it.each(REVISION_NAMES.slice(-3))(
  "requests to the client are seen in both forms, by callers of %s",
  async (revision) => {
    const seen: string[] = [];
    const gateway = chain(
      on("elicitation/create", async (question, context, next) => {
        seen.push(question.params.message);
        const answer = await next({ ...question, params: { ...question.params, message: "Who are you?" } }, context);
        return { ...answer, content: { ...answer.content, seen: "yes" } };
      }),
    ).to(asking);
    const asked: string[] = [];
    const { client, close } = await connectInMemory(gateway, {
      revision,
      elicit: ({ message }) => {
        asked.push(message);
        return { action: "accept", content: { name: "ada" } };
      },
      roots: [{ uri: "file:///home" }],
    });
    for (const tool of ["ask", "result"]) {
      const { content } = await client.callTool(tool);
      expect(JSON.stringify(content)).toContain(String.raw`\"name\":\"ada\",\"seen\":\"yes\"`);
    }
    expect(seen).toEqual(["Who?", "Who?"]);
    expect(asked).toEqual(["Who are you?", "Who are you?"]);
    await close();
  },
);

it("requests to the client may be answered without the caller", async () => {
  const caller = fakeContext();
  const gateway = chain(on("elicitation/create", () => ({ action: "accept", content: { name: "the middleware" } }))).to(
    asking,
  );
  const result = await gateway(callRequest("ask"), caller.context);
  expect(result["content"]).toMatchObject([{ text: expect.stringContaining("the middleware") as string }]);
  expect(caller.clientRequests).toEqual([]);
});

it("requests to the client of other methods pass, also in an input_required result", async () => {
  const caller = fakeContext({ answer: () => accept({ name: "ada" }) });
  const run = vi.fn();
  const gateway = chain(on("sampling/createMessage", run)).to(asking);
  expect(await gateway(callRequest("result"), caller.context)).toMatchObject({ resultType: "input_required" });
  await gateway(callRequest("ask"), caller.context);
  expect(run).not.toHaveBeenCalled();
  expect(caller.clientRequests.map(({ method }) => method)).toEqual(["elicitation/create"]);
});

it("requests to the client fail the call if the function throws", async () => {
  const failing = chain(
    on("elicitation/create", () => {
      throw new Error("broken");
    }),
  ).to(asking);
  for (const tool of ["ask", "result"]) {
    const caller = fakeContext({ answer: () => ({ roots: [] }) });
    await expect(failing(callRequest(tool), caller.context)).rejects.toMatchObject({
      message: "The middleware on elicitation/create failed: broken",
    });
  }
});

it("requests to the client may be refused with an McpError, and pass on the errors of the caller", async () => {
  const refusing = chain(
    on("elicitation/create", () => {
      throw McpError.of("user_rejected", "Not now");
    }),
  ).to(asking);
  await expect(refusing(callRequest("ask"), fakeContext().context)).rejects.toMatchObject({ kind: "user_rejected" });
  const passing = chain(on("elicitation/create", (question, context, next) => next(question, context))).to(asking);
  const result = await passing(callRequest("ask"), fakeContext().context);
  expect(result).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining("The client has no answer") as string }],
  });
});
