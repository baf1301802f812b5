// Spans, recorded by the real OpenTelemetry SDK: names, attributes, parents, errors, and what goes to the upstream.

import * as api from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from "@opentelemetry/core";
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { fakeContext, textResult } from "../../../test/support/handlers/fake-client.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Handler, Request } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { chain } from "../chain.ts";
import { trace, type TraceOptions } from "./trace.ts";

const exporter = new InMemorySpanExporter();
beforeAll(() => {
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  api.propagation.setGlobalPropagator(
    new CompositePropagator({ propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()] }),
  );
  api.trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
});
beforeEach(() => exporter.reset());
afterAll(() => {
  api.trace.disable();
  api.propagation.disable();
  api.context.disable();
});

const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const PARENT = `00-${TRACE_ID}-b7ad6b7169203331-01`;
const call = (name: string, more: object = {}): Request => ({ method: "tools/call", params: { name, ...more } });

async function run(upstream: Handler, request: Request, options?: TraceOptions): Promise<ReadableSpan> {
  const gateway = chain(trace(options)).to(upstream);
  await gateway(request, fakeContext().context).catch(() => undefined);
  await gateway.close();
  const [span, ...more] = exporter.getFinishedSpans();
  expect(more).toEqual([]);
  return span as ReadableSpan;
}

it("makes a server span with the names of the conventions, and no content", async () => {
  const span = await run(async () => textResult("secret"), call("echo", { arguments: { text: "secret" } }));
  expect(span).toMatchObject({ name: "tools/call echo", kind: api.SpanKind.SERVER, status: { code: 0 } });
  expect(span.attributes).toEqual({
    "mcp.method.name": "tools/call",
    "mcp.protocol.version": NEWEST.name,
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "echo",
  });
  expect(span.parentSpanContext).toBeUndefined();
});

it("continues the trace of the caller, and the upstream continues this one", async () => {
  let seen: Request | undefined;
  let active: string | undefined;
  const _meta = { traceparent: PARENT, tracestate: "a=b", baggage: "user=ada", progressToken: 1 };
  const request = Object.freeze(call("echo", { _meta }));
  const span = await run(async (sent) => {
    seen = sent;
    active = api.trace.getActiveSpan()?.spanContext().spanId;
    return textResult("done");
  }, request);
  const { traceId, spanId } = span.spanContext();
  expect(traceId).toBe(TRACE_ID);
  expect(span.parentSpanContext?.spanId).toBe("b7ad6b7169203331");
  expect(seen?.params._meta).toEqual({ ..._meta, traceparent: `00-${TRACE_ID}-${spanId}-01` });
  expect(request.params._meta).toBe(_meta);
  expect(active).toBe(spanId);
});

it("makes a client span as a child of the server span, and names the upstream", async () => {
  const inner = chain(trace({ kind: "client" })).to(async () => textResult("done"));
  const gateway = chain(trace({ api })).to({ notes: inner }, { names: "always" });
  await gateway(call("notes_echo"), fakeContext().context);
  await gateway.close();
  const [client, server] = exporter.getFinishedSpans().filter(({ name }) => name.startsWith("tools/call"));
  expect(client).toMatchObject({ name: "tools/call echo", kind: api.SpanKind.CLIENT });
  expect(server).toMatchObject({ name: "tools/call notes_echo", attributes: { "catenary.upstream": "notes" } });
  expect(client?.parentSpanContext?.spanId).toBe(server?.spanContext().spanId);
});

it.each<[string, Handler, object]>([
  ["tool_error", async () => ({ ...textResult("secret"), isError: true }), {}],
  ["-32602", () => Promise.reject(McpError.of("invalid_params", "secret")), { "rpc.response.status_code": "-32602" }],
  ["timeout", () => Promise.reject(new ConnectionError("timeout", "secret")), {}],
  ["_other", () => Promise.reject(new Error("secret")), {}],
])("records the error %s, without its message", async (type, upstream, more) => {
  const span = await run(upstream, call("echo"));
  expect(span.status).toEqual({ code: api.SpanStatusCode.ERROR });
  expect(span.attributes).toMatchObject({ "error.type": type, ...more });
  expect(JSON.stringify([span.attributes, span.status, span.events])).not.toContain("secret");
});

it("has arguments, results and messages with the option", async () => {
  const span = await run(async () => textResult("out"), call("echo", { arguments: { text: "in" } }), { content: true });
  expect(span.attributes).toMatchObject({
    "gen_ai.tool.call.arguments": '{"text":"in"}',
    "gen_ai.tool.call.result": '[{"type":"text","text":"out"}]',
  });
  exporter.reset();
  const failed = await run(() => Promise.reject(McpError.of("internal_error", "why")), call("echo"), { content: true });
  expect(failed.status.message).toBe("why");
});

it("names resources only in an attribute, without a query", async () => {
  const uri = "https://user:pass@example.com/a?token=1";
  const span = await run(async () => ({ contents: [] }), { method: "resources/read", params: { uri } });
  expect(span.name).toBe("resources/read");
  expect(span.attributes["mcp.resource.uri"]).toBe("https://example.com/a");
});

it("makes no span for a subscription", async () => {
  const gateway = chain(trace()).to(async () => ({ resultType: "complete" }));
  await gateway({ method: "subscriptions/listen", params: { notifications: {} } }, fakeContext().context);
  expect(exporter.getFinishedSpans()).toEqual([]);
  await gateway.close();
});

it("fails with one clear error if the package is missing", async () => {
  vi.doMock("@opentelemetry/api", () => {
    throw new Error("Cannot find package");
  });
  const cwd = vi.spyOn(process, "cwd").mockReturnValue("/");
  onTestFinished(() => {
    vi.doUnmock("@opentelemetry/api");
    cwd.mockRestore();
  });
  const gateway = chain(trace()).to(async () => textResult("done"));
  for (let count = 0; count < 2; count += 1) {
    await expect(gateway(call("echo"), fakeContext().context)).rejects.toThrow(
      "The middleware trace needs the package @opentelemetry/api: npm install @opentelemetry/api",
    );
  }
  await gateway.close();
});

it("leaves out what looks like a secret, also with content", async () => {
  const token = `ghp_${"a1".repeat(18)}`;
  const request = call("echo", { arguments: { password: "hunter2", text: token, max_tokens: 5 } });
  const span = await run(async () => textResult(`key ${token}`), request, { content: true });
  expect(span.attributes).toMatchObject({
    "gen_ai.tool.call.arguments": '{"password":"[redacted]","text":"[redacted]","max_tokens":5}',
    "gen_ai.tool.call.result": '[{"type":"text","text":"key [redacted]"}]',
  });
});

it("sends the spans that the SDK still holds when the gateway is closed", async () => {
  const held = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(held)] });
  const proxy = new api.ProxyTracerProvider();
  proxy.setDelegate(provider);
  for (const own of [provider, proxy]) {
    held.reset();
    const gateway = chain(trace({ api: { ...api, trace: fakeTraces(own) } })).to(async () => textResult("x"));
    await gateway(call("echo"), fakeContext().context);
    expect(held.getFinishedSpans()).toEqual([]);
    await gateway.close();
    expect(held.getFinishedSpans()).toMatchObject([{ name: "tools/call echo" }]);
  }
  const failing: api.TracerProvider & { forceFlush(): Promise<void> } = {
    getTracer: (name) => provider.getTracer(name),
    forceFlush: async () => Promise.reject(new Error("no collector")),
  };
  const gateway = chain(trace({ api: { ...api, trace: fakeTraces(failing) } })).to(async () => textResult("x"));
  await gateway(call("echo"), fakeContext().context);
  await gateway.close();
  await provider.shutdown();
});

/** The API of a program that has set up another provider. */
function fakeTraces(
  provider: api.TracerProvider,
): Pick<typeof api.trace, "getTracerProvider" | "getTracer" | "setSpan"> {
  return {
    getTracerProvider: () => provider,
    getTracer: (name) => provider.getTracer(name),
    setSpan: (context, span) => api.trace.setSpan(context, span),
  };
}
