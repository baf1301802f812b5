// Runs of code against a real upstream over real transports: what a cancelled run leaves behind, budgets, and callers that
// must not reach each other.

import { afterEach, expect, it } from "vitest";
import { authorize, filter } from "../../../src/chain/middleware/index.ts";
import { eventually } from "../../support/waiting.ts";
import { CodeFixture, processesOf, runCode, withText } from "./code-fixture.ts";

const fixture = new CodeFixture();
afterEach(() => fixture.close());

const PARALLEL = 50;

it("a run that is cancelled in the middle of 50 calls leaves nothing running, and the next run works", async () => {
  const program = fixture.stdio({ maxParallel: PARALLEL });
  const client = await fixture.connectStdio(program);
  const names = Array.from({ length: PARALLEL }, (_, n) => `n${n}`);
  await runCode(client, `const names = ${JSON.stringify(names)}; let ended = 0`);
  const before = processesOf(program);
  const controller = new AbortController();
  const started = new Set<string>();
  const running = client.callTool(
    "run-code",
    { code: "await Promise.all(names.map((name) => tools.matrix.stay({ name }).finally(() => (ended += 1))))" },
    {
      signal: controller.signal,
      onProgress: () => {
        started.add(`${started.size}`);
        if (started.size === PARALLEL) controller.abort(new Error("enough"));
      },
    },
  );
  await expect(running).rejects.toMatchObject({ kind: "cancelled" });
  const cancelled = async (): Promise<string[]> =>
    (await runCode(client, "console.log(await tools.matrix.cancelled())")).text.split("\n")[0]?.split(" ") ?? [];
  await eventually(async () => expect((await cancelled()).toSorted()).toEqual(names.toSorted()));
  // The abandoned code does not go on, and the same process answers.
  const next = await runCode(client, "[names.length, ended, await tools.matrix.echo({ text: 'next' })]");
  expect(next.text).toBe(`=> [ ${PARALLEL}, 0, 'next' ]`);
  expect(next.calls.map(({ tool }) => tool)).toEqual(["matrix.echo"]);
  expect(new Set(processesOf(program))).toEqual(new Set(before));
  await client.close();
  await eventually(() => expect(processesOf(program)).toEqual([]));
});

it("a run that is cancelled in the middle of 50 calls is also stopped by its timeout, which says so", async () => {
  const client = await fixture.connectStdio(fixture.stdio({ maxParallel: PARALLEL }));
  await runCode(client, "let kept = 1");
  const code = "await Promise.all(Array.from({ length: 50 }, (_, n) => tools.matrix.stay({ name: `t${n}` })))";
  const late = await runCode(client, code, { timeout: 2 });
  expect(late.text).toContain("[TIMEOUT] Evaluation exceeded 2 seconds");
  expect(late.calls).toHaveLength(PARALLEL);
  expect(late.calls.every(({ isError }) => isError === true)).toBe(true);
  await eventually(async () => {
    const { text } = await runCode(client, "console.log(kept, (await tools.matrix.cancelled()).split(' ').length)");
    expect(text).toContain("1 50");
  });
});

it("refuses calls over the budget with one clear error, and keeps the state", async () => {
  const client = await fixture.connectStdio(fixture.stdio({ maxCalls: 5 }));
  const over = await runCode(
    client,
    "const got = []; for (let n = 0; n < 9; n += 1) got.push(await tools.matrix.echo({ text: `${n}` }))",
  );
  expect(over.isError).toBe(true);
  expect(over.text).toContain("The run has made 5 calls, and the setting maxCalls allows no more");
  expect((await runCode(client, "got.push(await tools.matrix.echo({ text: 'on' })); got.join()")).text).toBe(
    "=> '0,1,2,3,4,on'",
  );
});

it("two callers see and call only what each may", async () => {
  const rules = [
    { callers: ["ada"], tools: ["echo"] },
    { callers: ["bob"], tools: ["count", "elicit*"] },
  ];
  const url = await fixture.http([filter({ tools: { exclude: ["elicit"] } }), authorize({ rules })]);
  const [ada, bob] = [await fixture.connectHttp(url, "ada"), await fixture.connectHttp(url, "bob")];
  const paths = "tools.catalogue.map(({ path }) => path).join()";
  expect((await runCode(ada, paths)).text).toBe("=> 'matrix.echo'");
  expect((await runCode(bob, paths)).text).toBe("=> 'matrix.count,matrix.elicit_for'");
  const answer = await ada.callTool("search-tools", { query: "count characters" });
  expect(JSON.stringify(answer)).not.toContain("matrix.count");
  const other = "try { await tools.call('count', { text: 'x' }) } catch (error) { console.log(error.message) }";
  expect((await runCode(ada, other)).text).toContain("There is no tool count");
  // The host checks too, whatever the code sends.
  const forged = await runCode(
    ada,
    `for (let target = 1; target < 30; target += 1) {
         const text = JSON.stringify({ call: 1e6 + target, target, tool: "count", arguments: { text: "x" } });
         fs.writeSync(3, Buffer.byteLength(text) + "\\n" + text);
       }
       await tools.matrix.echo({ text: "mine" })`,
  );
  expect(forged.text).toBe("=> 'mine'");
  expect(forged.calls).toEqual([expect.objectContaining({ tool: "matrix.echo" })]);
  await expect(ada.callTool("count", { text: "x" })).rejects.toMatchObject({ kind: "tool_not_found" });
  expect((await runCode(bob, "(await tools.matrix.count({ text: 'four' })).count")).text).toBe("=> 4");
});

it("two callers have runs, sessions, logs and shown contents of their own", async () => {
  const url = await fixture.http();
  const logs: Record<string, unknown[]> = { ada: [], bob: [] };
  const clients = await Promise.all(
    ["ada", "bob"].map((who) =>
      fixture.connectHttp(url, who, { logLevel: "info", onLog: ({ data }) => logs[who]?.push(data) }),
    ),
  );
  const code = (who: string): string => `
      globalThis.mine = (globalThis.mine ?? []).concat("${who}");
      for (let n = 0; n < 10; n += 1) await Promise.all([tools.matrix.say({ name: "${who}" }), tools.matrix.steps({ name: "${who}" })]);
      show([{ type: "resource_link", uri: "test://${who}", name: "${who}" }]);
      mine.join()`;
  const progress: Record<string, string[]> = { ada: [], bob: [] };
  const answers = await Promise.all(
    ["ada", "bob"].map(async (who, at) => {
      const onProgress = ({ message = "" }): void => void progress[who]?.push(message);
      return withText((await clients[at]?.callTool("run-code", { code: code(who) }, { onProgress }))!);
    }),
  );
  for (const [at, who] of ["ada", "bob"].entries()) {
    const answer = answers[at];
    expect(answer?.text).toBe(`=> '${who}'`);
    expect(answer?.content[1]).toMatchObject({ type: "resource_link", uri: `test://${who}` });
    expect(answer?.calls).toHaveLength(20);
    await eventually(() => expect(logs[who]).toEqual(Array.from({ length: 10 }, () => `${who} shouts`)));
    const other = who === "ada" ? "bob" : "ada";
    expect(progress[who]?.some((message) => message.includes(who))).toBe(true);
    expect(progress[who]?.some((message) => message.includes(other))).toBe(false);
  }
});
