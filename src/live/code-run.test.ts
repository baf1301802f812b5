// Runs code that calls tools of an in-memory gateway, with the rules that hold for the calls.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, it } from "vitest";
import { connect } from "../client/connect.ts";
import type { Client } from "../client/client.ts";
import { onCancel } from "../core/cancel.ts";
import type { Context, Handler } from "../core/handler.ts";
import { hasTasks } from "../protocol/tasks.ts";
import { createServer } from "../server/server.ts";
import type { RunAnswer } from "../../test/support/live/code-run.ts";
import { eventually } from "../../test/support/waiting.ts";
import { createCodeRunner, type CodeRunner, type CodeRunnerOptions } from "./code-mode.ts";

import { jsLanguage } from "./js/index.ts";
import type { RunTools } from "./offered-tools.ts";
import { IS_LONG } from "../../test/support/thoroughness.ts";

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

/** All tools of a server, as `server.name`. */
async function toolsOf(gateway: Handler, context: Parameters<Handler>[1]): Promise<RunTools> {
  const { tools } = await gateway({ method: "tools/list", params: {} }, context);
  const entries = (tools as { name: string; annotations?: { destructiveHint?: boolean } }[]).map((tool) => ({
    path: `notes.${tool.name}`,
    name: tool.name,
    signature: `${tool.name}(...)`,
    summary: "",
    isDestructive: tool.annotations?.destructiveHint === true,
  }));
  return {
    entries,
    missing: new Map(),
    gateway,
    search: async (query, limit) => entries.filter(({ name }) => name.includes(query)).slice(0, limit),
  };
}

/** Tests with the usual options share a runner and its session, since a process takes long to start. */
let shared: CodeRunner | undefined;
let sharedGateway: Handler;
afterAll(() => shared?.close());

async function start(
  gateway: Handler,
  options?: Partial<CodeRunnerOptions>,
  clientOptions: Parameters<typeof connect>[1] = {},
): Promise<{ client: Client; run: (code: string, more?: object) => Promise<RunAnswer> }> {
  let runner: CodeRunner;
  if (options === undefined) {
    sharedGateway = gateway;
    runner = shared ??= createCodeRunner(jsLanguage({}), { tools: (context) => toolsOf(sharedGateway, context) });
  } else {
    runner = createCodeRunner(jsLanguage({}), { tools: (context) => toolsOf(gateway, context), ...options });
    open.push(runner);
  }
  const client = await connect(runner.handler, clientOptions);
  open.push(client);
  return {
    client,
    run: async (code, more = {}) => (await client.callTool("run-code", { code, ...more })) as unknown as RunAnswer,
  };
}

const notes = () =>
  createServer({ name: "notes", version: "1.0.0" })
    .tool("echo", { inputSchema: { type: "object" } }, (args) => String(args["text"]))
    .tool("add", { inputSchema: { type: "object" } }, (args) => ({ sum: Number(args["a"]) + Number(args["b"]) }))
    .tool("file", { inputSchema: { type: "object" } }, () => ({
      content: [{ type: "text", text: "x" }],
      structuredContent: { content: "own" },
    }))
    .tool("fail", { inputSchema: { type: "object" } }, () => ({
      content: [{ type: "text", text: "It is locked" }],
      isError: true,
    }))
    .tool("picture", { inputSchema: { type: "object" } }, () => ({
      content: [
        { type: "text", text: "A dot" },
        { type: "image", data: "AAAA", mimeType: "image/png" },
      ],
    }));

/** One grey dot. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";

it("a call from code gives structured content, text, or both text and content", async () => {
  const { run } = await start(notes());
  const { content, structuredContent } = await run(`
      const sum = await tools.notes.add({ a: 1, b: 2 });
      console.log(sum.sum, sum.content[0].type, Object.keys(sum));
      console.log(await tools.notes.echo({ text: "hi" }), await tools.notes.file());
      const { text, content } = await tools.call("picture");
      show(content[1]);
      [text, content.length, (await tools.search("ech"))[0].path, tools.catalogue.length]`);
  expect(content[0]?.text).toBe(
    "3 text [ 'sum' ]\nhi { content: 'own', text: 'x' }\n=> [ 'A dot', 2, 'notes.echo', 5 ]",
  );
  expect(content[1]).toEqual({ type: "image", data: "AAAA", mimeType: "image/png" });
  expect(content[2]?.text).toMatch(
    /^calls: notes\.add \d+ ms 0\.\d kB, notes\.echo .*, notes\.file .*, notes\.picture /,
  );
  expect(structuredContent.calls.map(({ tool }) => tool)).toEqual([
    "notes.add",
    "notes.echo",
    "notes.file",
    "notes.picture",
  ]);
});

it("a call from code shows an image that is returned or printed, and not its base64", async () => {
  const { run } = await start(
    createServer({ name: "notes", version: "1.0.0" }).tool("picture", { inputSchema: { type: "object" } }, () => ({
      content: [{ type: "image", data: PNG, mimeType: "image/png" }],
    })),
  );
  const shown = { type: "image", data: PNG, mimeType: "image/png" };
  const { content } = await run("const picture = await tools.notes.picture(); picture");
  expect(content[0]?.text).toContain("data: '[image/png, 0.1 kB; shown below]'");
  expect(content[1]).toEqual(shown);
  // In a later run too, and once if the code shows it itself.
  const later = await run("console.log(picture.content[0].data); show(picture); 1");
  expect(later.content).toEqual([{ type: "text", text: "[image/png, 0.1 kB; shown below]\n=> 1" }, shown]);
  const cut = await run("picture.content[0].data.slice(0, 90)");
  expect(cut.content).toEqual([{ type: "text", text: "=> '[image/png, 0.1 kB; not whole, so not shown]'" }]);
});

it.each([
  // What is kept of the output, and of a value, has 1,000,000 characters.
  ["process.stdout.write(png(999_996)); 1", "[image/png, 750.0 kB; shown below]\n=> 1"],
  ["process.stdout.write(png(1_000_000)); 1", "[image/png, 750.0 kB; shown below]\n=> 1"],
  [
    "process.stdout.write(png(1_000_004)); 1",
    "[image/png, 750.0 kB; not whole, so not shown]\n[4 of 50 characters left out here; the first 46 are",
  ],
  ["png(999_996)", "=> '[image/png, 750.0 kB; shown below]'"],
  ["png(1_000_000)", "=> '[image/png, 750.0 kB; shown below]'"],
  ["png(1_000_004)", "=> '[image/png, 750.0 kB; not whole, so not shown]'... 4 more characters"],
  ["({ data: png(1_000_000) })", "=> {\n  data: '[image/png, 750.0 kB; not whole, so not shown]... [cut at"],
  // Node cuts strings in what console.log prints at 10,000 characters.
  ["console.log([png(10_000)]); 1", "[\n  '[image/png, 7.5 kB; shown below]'\n]\n=> 1"],
  ["console.log([png(10_004)]); 1", "[\n  '[image/png, 7.5 kB; not whole, so not shown]'... 4 more characters\n]"],
])("a call from code shows %s only if it is whole", async (code, text) => {
  const { run } = await start(notes());
  await run("globalThis.png = (length) => 'iVBORw0KGgo'.padEnd(length, 'A'); 1");
  const { content } = await run(code);
  expect(content[0]?.text?.slice(0, text.length)).toBe(text);
  expect(content.length).toBe(text.includes("shown below") ? 2 : 1);
});

it("a call from code returns a text that was too long for the result, by its number", async () => {
  const { run } = await start(notes(), { limits: { valueChars: 1_000 } });
  const { content } = await run("'x'.repeat(3_000) + 'needle' + 'y'.repeat(3_000)");
  const [, call = ""] =
    /left out here; all are the string that (.*) returns in code\]/.exec(content[0]?.text ?? "") ?? [];
  expect(call).toMatch(/^await tools\.output\(\{ number: \d+ \}\)$/);
  expect((await run(`(${call}).indexOf("needle")`)).content[0]?.text).toBe("=> 3001");
  expect((await run("await tools.output({ number: 0 })")).content[0]?.text).toContain("There is no output 0 in this");
});

it("a call from code adds up the calls of each tool", async () => {
  const { run } = await start(notes());
  const { content, structuredContent } = await run(
    "for (let i = 0; i < 20; i += 1) await tools.notes.add({ a: i, b: 1 }); await tools.notes.fail().catch(() => 0)",
  );
  expect(content[1]?.text).toMatch(/^calls: notes\.add 20 times \d+ ms 1\.\d kB, notes\.fail \d+ ms 0\.\d kB failed$/);
  expect(structuredContent.calls.length).toBe(21);
});

it.each([
  [
    "tools.notes.ecoh({})",
    "There is no tool notes.ecoh; did you mean tools.notes.echo? If not, find it with tools.search",
  ],
  ["tools.note.echo({})", "There is no tool note.echo; did you mean tools.notes.echo?"],
  ["tools.ecoh()", "There is no tool ecoh; did you mean tools.notes.echo?"],
  ["tools.mail.echo()", "There is no tool mail.echo; did you mean tools.notes.echo?"],
  ["tools.nots()", "There is no tool nots; did you mean tools.notes?"],
  ["tools.call('notes.pictur')", "There is no tool notes.pictur; did you mean tools.notes.picture?"],
  ["tools.notes.frobnicate()", 'There is no tool notes.frobnicate; find it with tools.search("words")'],
  ["tools.notes.__proto__.echo()", "is not a function"],
])("a call from code says for %s what may be meant", async (code, message) => {
  const { run } = await start(notes());
  const { content, structuredContent } = await run(`await ${code}`);
  expect(content[0]?.text).toContain(message);
  expect(structuredContent.calls).toEqual([]);
});

it.each(["3", "null", "[1]", "() => 1", "{ toJSON() {} }", "{ toJSON: () => [1] }"])(
  "a call from code refuses the arguments %s",
  async (args) => {
    const { run } = await start(notes());
    const { content, structuredContent } = await run(`await tools.notes.echo(${args})`);
    expect(content[0]?.text).toContain("The arguments of notes.echo must be an object");
    expect(structuredContent.calls).toEqual([]);
  },
);

it.runIf(IS_LONG)(
  "a call from code shows as many blocks and bytes as a run may have, and says what is left out",
  async () => {
    const { run } = await start(notes(), { maxResultBytes: 10_000 });
    const block = (length: number): string => `{ type: "text", text: "x".repeat(${length}) }`;
    const large = await run(`show(${block(9_000)}); show([${block(2_000)}, ${block(3_000)}, ${block(1)}])`);
    expect(large.content.map(({ text }) => (text.length > 100 ? text.length : text))).toEqual([
      "=> undefined",
      9_000,
      "x",
      "[Notice] Blocks that are not shown: 2; a run can show 50 blocks and 10000 bytes",
    ]);
    const many = await run(`show(Array.from({ length: 60 }, () => (${block(1)})))`);
    expect(many.content).toHaveLength(52);
    expect(many.content.at(-1)?.text).toContain("Blocks that are not shown: 10;");
  },
);

it("a call from code can await, print and compare the tools, and sees those that do not exist as functions", async () => {
  const { run } = await start(notes());
  const { content } = await run(`
      [(await tools) === tools, (await tools.notes) === tools.notes, "ecoh" in tools.notes, Object.keys(tools.notes).length,
        JSON.stringify(tools), typeof tools.notes.ecoh, typeof tools.notes.constructor, tools.notes[Symbol.iterator],
        (await tools.search("ech")).map(Object.keys).join()]`);
  expect(content[0]?.text.replaceAll(/\s+/g, " ")).toBe(
    `=> [ true, true, false, 5, '{"notes":{}}', 'function', 'function', undefined, 'path,signature,summary' ]`,
  );
});

it("a call from code throws a ToolError with the text of the tool, whose stack shows the code", async () => {
  const { run } = await start(notes());
  const caught = await run(`
      try { await tools.notes.fail({}) } catch (error) { [error instanceof ToolError, error.name, error.message, error.tool] }`);
  expect(caught.content[0]?.text).toContain("[ true, 'ToolError', 'It is locked', 'notes.fail' ]");
  expect(caught.structuredContent.calls).toMatchObject([{ tool: "notes.fail", isError: true }]);
  const thrown = await run("const work = async () => { await tools.notes.fail() };\nawait work()");
  expect(thrown.isError).toBe(true);
  expect(thrown.content[0]?.text).toMatch(/\[ERROR\] ToolError\nIt is locked[^]*work.*<eval \d+>:1/);
});

/** A tool that ends when `release` is called, or when its call is cancelled. */
function slowNotes() {
  const state = { running: 0, most: 0, cancelled: 0, started: 0, contexts: [] as Context[] };
  const waiting: (() => void)[] = [];
  const gateway: Handler = async (request, context) => {
    if (request.method === "tools/list") return { tools: [{ name: "slow", inputSchema: { type: "object" } }] };
    state.contexts.push(context);
    state.started += 1;
    state.running += 1;
    state.most = Math.max(state.most, state.running);
    try {
      await new Promise<void>((resolve, reject) => {
        waiting.push(resolve);
        onCancel(context, () => {
          state.cancelled += 1;
          reject(new Error("cancelled"));
        });
      });
      return { content: [{ type: "text", text: "done" }] };
    } finally {
      state.running -= 1;
    }
  };
  const release = (): void => {
    for (const one of waiting.splice(0)) one();
  };
  return { gateway, state, release };
}

it("the budget of calls refuses further ones, and the session keeps its state", async () => {
  const { run } = await start(notes(), { maxCalls: 3 });
  const over = await run(`
      const got = [];
      for (let i = 0; i < 5; i += 1) got.push(await tools.notes.echo({ text: String(i) }));`);
  expect(over.isError).toBe(true);
  expect(over.content[0]?.text).toContain("The run has made 3 calls, and the setting maxCalls allows no more");
  expect(over.structuredContent).toMatchObject({ status: "error", state: "kept" });
  expect(over.structuredContent.calls).toHaveLength(3);
  const next = await run("got.push(await tools.notes.echo({ text: 'next' })); got.join()");
  expect(next.content[0]?.text).toBe("=> '0,1,2,next'");
});

it.runIf(IS_LONG)("the budget of bytes refuses a result that is too long, but not a shorter one", async () => {
  const { run } = await start(notes(), { maxResultBytes: 5000 });
  const over = await run(`
      const caught = [];
      for (const length of [2000, 4000, 1000]) {
        try { caught.push((await tools.notes.echo({ text: "x".repeat(length) })).length) }
        catch (error) { caught.push(error.message) }
      }
      caught`);
  const text = over.content[0]?.text ?? "";
  expect(text).toContain("2000,");
  expect(text).toContain("have more than 5000 bytes, and the setting maxResultBytes allows no more");
  expect(text).toContain("  1000\n]");
  expect(over.structuredContent.calls.map(({ bytes }) => Math.round(bytes / 1000))).toEqual([2, 4, 1]);
});

it("the budget of parallel calls lets others wait", async () => {
  const { gateway, state, release } = slowNotes();
  const { run } = await start(gateway);
  const running = run("(await Promise.all(Array.from({ length: 20 }, () => tools.notes.slow()))).length");
  for (const started of [8, 16, 20]) {
    await eventually(() => expect(state.started).toBe(started));
    release();
  }
  expect((await running).content[0]?.text).toBe("=> 20");
  expect(state.most).toBe(8);
});

it.each(["by its timeout", "by its caller", "by its own end", "by a reset"])(
  "a run that is stopped: %s cancels its calls",
  async (how) => {
    const { gateway, state, release } = slowNotes();
    const { client, run } = await start(gateway);
    const controller = new AbortController();
    await run("let kept = 7");
    const calls = "Array.from({ length: 50 }, () => tools.notes.slow())";
    const code = how === "by its own end" ? `${calls}; await tools.search("x"); 1` : `await Promise.all(${calls})`;
    const within = async (timeout: number): ReturnType<Client["callTool"]> => {
      const result = await client.callTool("run-code", { code, timeout }, { signal: controller.signal });
      // On a busy machine, not all calls may have begun so soon.
      if (how !== "by its timeout" || state.started === 8 || timeout > 60) return result;
      Object.assign(state, { cancelled: 0, started: 0 });
      return within(timeout * 6);
    };
    const running = within(how === "by its timeout" ? 0.5 : 100);
    if (how === "by its caller") {
      await eventually(() => expect(state.started).toBe(8));
      controller.abort(new Error("enough"));
      await expect(running).rejects.toThrow();
    } else if (how === "by a reset") {
      await eventually(() => expect(state.started).toBe(8));
      await client.callTool("reset-session");
      expect((await running).structuredContent).toMatchObject({ status: "lost" });
    } else {
      const status = how === "by its timeout" ? "timeout" : "ok";
      expect((await running).structuredContent).toMatchObject({ status, calls: { length: 8 } });
    }
    await eventually(() => expect(state).toMatchObject({ running: 0, cancelled: 8, started: 8 }));
    const next = run("[typeof kept, await tools.notes.slow()]");
    await eventually(() => expect(state.started).toBe(9));
    release();
    const kept = how === "by a reset" ? "undefined" : "number";
    expect((await next).content[0]?.text).toContain(`=> [ '${kept}', 'done' ]`);
  },
);

it("names the calls that the code did not await", async () => {
  const { run } = await start(slowNotes().gateway);
  const { content, isError } = await run("tools.notes.slow(); console.log(tools.nowhere()); tools.search('x')");
  expect(content[0]?.text).toBe("Promise { <pending> }\n=> Promise { <pending> }");
  const notice =
    '[Notice] The code ended while calls were still running, so they were cancelled: notes.slow, nowhere, tools.search("words"). Use await for each call';
  expect(content[1]?.text).toContain(notice);
  expect([isError, content[2]?.text]).toEqual([
    false,
    expect.stringMatching(/^calls: notes\.slow \d+ ms 0\.0 kB failed$/),
  ]);
  expect((await run("1")).content).toEqual([{ type: "text", text: "=> 1" }]);
});

it("an inner call has the caller of the run, its revision, and the id of the run, and is never a task", async () => {
  const { gateway, state, release } = slowNotes();
  const { client, run } = await start(gateway, undefined, { info: { name: "tester", version: "1" } });
  const running = run("await Promise.all([tools.notes.slow(), tools.notes.slow()])");
  await eventually(() => expect(state.started).toBe(2));
  release();
  await running;
  const [first, second] = state.contexts;
  expect(first).toMatchObject({
    revision: client.revision,
    headersChecked: true,
    caller: { info: { name: "tester" } },
  });
  expect(first?.run).toMatch(/^[0-9a-f]{8}$/);
  expect(second?.run).toBe(first?.run);
  expect(hasTasks(first?.caller.capabilities)).toBe(false);
  const next = run("await tools.notes.slow()");
  await eventually(() => expect(state.started).toBe(3));
  release();
  await next;
  expect(state.contexts[2]?.run).not.toBe(first?.run);
});

it("an inner call passes progress and logs on to the caller of the run", async () => {
  const chatty = createServer({ name: "notes", version: "1.0.0", logging: true }).tool(
    "steps",
    {},
    (_args, context) => {
      context.progress(1, 2, "half");
      context.log("info", "a line");
      context.progress(2, 2);
      return "done";
    },
  );
  const logs: unknown[] = [];
  const progress: { progress: number; message?: string | undefined }[] = [];
  const { client } = await start(chatty, undefined, { logLevel: "info", onLog: ({ data }) => logs.push(data) });
  const code = "console.log('printed'); await Promise.all([tools.notes.steps(), tools.notes.steps()])";
  await client.callTool("run-code", { code }, { onProgress: (one) => progress.push(one) });
  expect(logs).toEqual(["a line", "a line"]);
  const messages = progress.map(({ message }) => message);
  expect(messages.filter((one) => one === "notes.steps: half")).toHaveLength(2);
  expect(messages.filter((one) => one === "notes.steps: 2/2")).toHaveLength(2);
  const numbers = progress.map((one) => one.progress);
  expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b));
});

const destroying = (done: string[]) =>
  createServer({ name: "notes", version: "1.0.0" }).tool(
    "delete",
    { annotations: { destructiveHint: true } },
    (args) => void done.push(String(args["id"])),
  );

it("consent is one question for calls of the same moment, without secrets", async () => {
  const done: string[] = [];
  const asked: string[] = [];
  const { run } = await start(
    destroying(done),
    { confirm: "destructive" },
    {
      elicit: ({ message }) => {
        asked.push(message);
        return { action: "accept", content: { allow: !message.includes("keep") } };
      },
    },
  );
  await run("await Promise.all([1, 2].map((id) => tools.notes.delete({ id, apiKey: 'hush' })))");
  expect(asked).toEqual([
    'The code wants to call tools that may destroy something:\n- notes.delete {"id":1,"apiKey":"[redacted]"}\n' +
      '- notes.delete {"id":2,"apiKey":"[redacted]"}',
  ]);
  expect(done).toEqual(["1", "2"]);
  const refused = await run("await tools.notes.delete({ id: 'keep' })");
  expect(refused.content[0]?.text).toContain("notes.delete did not run: the user did not agree");
  expect(done).toEqual(["1", "2"]);
});

// Without /proc, only all questions together are limited.
it.runIf(process.platform === "linux")(
  "consent holds the deadline of a run, unless its code computes meanwhile",
  async () => {
    let isAsked = false;
    const { run } = await start(
      destroying([]),
      { confirm: "destructive" },
      {
        elicit: async () => {
          isAsked = true;
          return new Promise(() => undefined);
        },
      },
    );
    const { content } = await run(
      "void tools.notes.delete({ id: 1 }); await new Promise((go) => setTimeout(go, 50)); for (;;);",
      {
        timeout: 1,
      },
    );
    expect(content[0]?.text).toContain("[TIMEOUT]");
    expect(isAsked).toBe(true);
  },
);

it.runIf(IS_LONG)("consent is a refusal if the caller cannot be asked", async () => {
  const done: string[] = [];
  const { run } = await start(destroying(done), { confirm: "destructive" });
  const refused = await run("await tools.notes.delete({ id: 1 })");
  expect(refused.content[0]?.text).toContain("the client cannot ask (it has not declared elicitation)");
  expect(done).toEqual([]);
});

// The id of the evaluation is in the frames between the threads only, so all that it can be are tried.
const forge = (...messages: string[]): string => `
    const send = (text) => fs.writeSync(3, Buffer.byteLength(text) + "\\n" + text);
    for (let target = 1; target < 10; target += 1) for (const text of [${messages.join(", ")}]) send(text);
    await tools.notes.echo({ text: "still here" })`;

it("messages that code forges reach no other tool, and do no harm", async () => {
  const { gateway, called } = recording();
  const { run } = await start(gateway, {});
  await run("1");
  const answer = await run(
    forge(
      '`{"call":900,"target":${target},"tool":"hidden","arguments":{}}`',
      '`{"call":901,"target":99999,"tool":"echo","arguments":{}}`',
      '`{"call":903,"target":${target},"tool":["echo"],"arguments":{}}`',
      '`{"call":904,"target":${target},"tool":"echo","arguments":[1]}`',
      '`{"call":"905","target":${target},"tool":"echo","arguments":{}}`',
      '`{"call":906,"target":${target},"search":7}`',
      '`{"show":{"type":"evil"},"target":${target}}`',
      '`{"show":[7,null,{"type":"image"}],"target":${target}}`',
      '`{"target":null}`',
    ),
  );
  expect(answer.content[0]?.text).toBe("=> 'still here'");
  expect(answer.content.map(({ type }) => type)).toEqual(["text", "text"]);
  expect(called).toEqual(["still here"]);
});

it.runIf(IS_LONG)("messages that code forges with arguments of any size end at most the session", async () => {
  const { gateway, called } = recording();
  const { run } = await start(gateway);
  const big = await run("await tools.notes.echo({ text: 'x'.repeat(9e6) })");
  expect(big.content[0]?.text).toContain("The arguments of notes.echo have more than 5000000 characters");
  const forged = await run("fs.writeSync(3, '20000000\\n{\"call\":1,'); await new Promise(() => undefined)");
  expect(forged.structuredContent.status).toBe("lost");
  expect((await run("await tools.notes.echo({ text: 'next' })")).content[0]?.text).toContain("'next'");
  expect(called).toEqual(["next"]);
});

it("messages that code forges work again in the next run after code has given the name `tools` another value", async () => {
  const { gateway, called } = recording();
  const { run } = await start(gateway);
  for (const code of ["tools = 3", "const tools = 4", "function tools() {}", "delete globalThis.tools"]) {
    await run(code);
    expect((await run("await tools.notes.echo({ text: 'next' })")).content[0]?.text).toBe("=> 'next'");
  }
  expect(called).toEqual(["next", "next", "next", "next"]);
});

it("messages that code forges after the end of a run are answered with an error", async () => {
  const { gateway, called } = recording();
  const { run } = await start(gateway);
  const folder = mkdtempSync(join(tmpdir(), "catenary-late-"));
  open.push({ close: () => rmSync(folder, { recursive: true }) });
  const call = "late = tools.notes.echo({ text: 'late' }).catch((error) => error.message)";
  const file = join(folder, "called");
  // The code itself is over when this file appears, which another run could not find out.
  await run(`let late; setTimeout(() => { ${call}; fs.writeFileSync(${JSON.stringify(file)}, "") }, 20); 1`);
  await eventually(() => expect(existsSync(file)).toBe(true));
  expect((await run("await late")).content[0]?.text).toContain(
    "Tools can be called only while the code of a run is running",
  );
  expect(called).toEqual([]);
});

it("names no tools that a caller of code mode does not have", async () => {
  const { run } = await start(recording().gateway, { limits: { outputChars: 100 } });
  const texts = [
    await run("for (;;);", { timeout: 0.1 }),
    await run("console.log('x'.repeat(1000))"),
    await run("({ a: new Map([[1, { b: 2 }]]) })"),
  ].map(({ content }) => String(content[0]?.text));
  expect(texts[0]).toContain("pass a longer `timeout`, or raise the setting timeoutMs.");
  expect(texts[1]).toContain("characters left out here; all are the string that await tools.output(");
  expect(texts[2]).toContain("=> {");
  expect(texts.join()).not.toMatch(/configure-limits|inspect|handle/);
});

it("names no tools that a caller of code mode does not have if a run is refused or loses its process", async () => {
  const { run } = await start(recording().gateway, { maxSessions: 1, limits: { memoryMb: 200 } });
  const textOf = async (...args: Parameters<typeof run>): Promise<string> =>
    String((await run(...args)).content[0]?.text);
  await run("1");
  expect(await textOf("1", { session: "other" })).toBe(
    "The limit of 1 running sessions is reached; use one of yours: main",
  );
  expect(await textOf("process.stderr.write('heap out of memory', () => process.exit(134)); await null")).toContain(
    "its process ran out of memory (limit 200 MB; the setting memoryMb raises it)",
  );
});

/** A gateway that records the texts of its calls. It has one more tool than it lists. */
function recording(): { gateway: Handler; called: unknown[] } {
  const called: unknown[] = [];
  const gateway: Handler = async ({ method, params }) => {
    if (method === "tools/list") return { tools: [{ name: "echo", inputSchema: { type: "object" } }] };
    const { text } = params["arguments"] as { text?: unknown };
    called.push(text ?? params["name"]);
    return { content: [{ type: "text", text: String(text) }] };
  };
  return { gateway, called };
}
