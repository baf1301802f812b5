// What code mode saves with real servers: the tokens of their definitions, and the bytes of three tasks that would have
// passed through a model. `node --import tsx test/interop/code-mode-report.ts` prints the part of
// docs/how-to/code-mode.md that has these figures, and `--write` puts it there; code-mode.long.test.ts compares them.

import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { chain, connect, upstream, type Client, type Middleware } from "catenary";
import { codeMode } from "catenary/live";
import { reportCodeTools } from "../../src/cli/show/code-cost.ts";
import { sandboxProblem } from "../../src/live/sandbox.ts";
import { UNAVAILABLE, UPSTREAM } from "../../src/protocol/lists.ts";
import type { Tool } from "../../src/protocol/model/index.ts";
import { installPublishedServers, publishedServers } from "./published-servers.ts";

const PAGE = fileURLToPath(new URL("../../docs/how-to/code-mode.md", import.meta.url));
const BLOCK = /(<!-- report -->\n)([^]*?)(<!-- end -->)/;

/** How long all servers may take to start, on a machine that runs other tests as well. */
const MAX_START_MS = 120_000;

/** What a task is, and its code, which finds the folder by itself. */
interface Task {
  readonly title: string;
  readonly code: string;
}

const TASKS: readonly Task[] = [
  {
    title: "Walk a folder and summarize its sizes",
    code: `
const [, root] = (await tools.files.list_allowed_directories()).content.split("\\n");
const sizes = {};
async function walk(folder) {
  const { content } = await tools.files.list_directory({ path: folder });
  const entries = [...content.matchAll(/\\[(FILE|DIR)\\] (.*)/g)];
  await Promise.all(
    entries.map(async ([, kind, name]) => {
      const path = \`\${folder}/\${name}\`;
      if (kind === "DIR") return walk(path);
      const info = await tools.files.get_file_info({ path });
      const type = name.split(".").at(-1);
      sizes[type] = (sizes[type] ?? 0) + Number(/size: (\\d+)/.exec(info.content)[1]);
    }),
  );
}
await walk(\`\${root}/site\`);
Object.fromEntries(Object.entries(sizes).sort());
`,
  },
  {
    title: "Build a knowledge graph from files",
    code: `
const [, root] = (await tools.files.list_allowed_directories()).content.split("\\n");
const found = await tools.files.search_files({ path: \`\${root}/notes\`, pattern: "**/*.md" });
const notes = await Promise.all(
  found.content.split("\\n").map(async (path) => {
    const { content } = await tools.files.read_text_file({ path });
    const [name, type] = /^# (.*) \\((.*)\\)/.exec(content).slice(1);
    const links = [...content.matchAll(/(\\w+) \\[\\[(.*?)\\]\\]/g)].map(([, how, to]) => ({ how, to }));
    return { name, type, links, lines: content.split("\\n").filter((line) => line.startsWith("- ")) };
  }),
);
await tools.memory.create_entities({
  entities: notes.map(({ name, type, lines }) => ({ name, entityType: type, observations: lines })),
});
const { relations } = await tools.memory.create_relations({
  relations: notes.flatMap(({ name, links }) => links.map(({ how, to }) => ({ from: name, to, relationType: how }))),
});
\`\${notes.length} entities, \${relations.length} relations\`;
`,
  },
  {
    title: "Read 50 logs side by side and count their errors",
    code: `
const [, root] = (await tools.files.list_allowed_directories()).content.split("\\n");
const days = Array.from({ length: 50 }, (_, at) => \`\${root}/logs/day-\${at + 1}.log\`);
const logs = await Promise.all(days.map((path) => tools.files.read_text_file({ path })));
const errors = {};
for (const { content } of logs) {
  for (const [, service] of content.matchAll(/ERROR (\\w+):/g)) errors[service] = (errors[service] ?? 0) + 1;
}
errors;
`,
  },
];

/** Writes the files that the tasks work on. They are the same each time. */
function writeFiles(folder: string): void {
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
  for (const name of ["site/pages", "site/styles", "site/scripts", "notes", "logs"]) {
    mkdirSync(join(folder, name), { recursive: true });
  }
  for (let at = 1; at <= 20; at += 1) {
    write(`site/pages/page-${at}.html`, "<p>Some words of a page.</p>\n".repeat(at * 5));
    if (at <= 10) write(`site/styles/part-${at}.css`, "p { margin: 0 }\n".repeat(at * 4));
    if (at <= 10) write(`site/scripts/part-${at}.js`, "console.log('part');\n".repeat(at * 6));
    const lines = Array.from({ length: 12 }, (_, line) => `- Remark ${line + 1} about subject ${at}, from a meeting.`);
    const links = `Uses [[Subject ${(at % 20) + 1}]] and extends [[Subject ${((at * 7) % 20) + 1}]].`;
    write(
      `notes/subject-${at}.md`,
      `# Subject ${at} (${at % 2 === 0 ? "idea" : "tool"})\n\n${links}\n\n${lines.join("\n")}\n`,
    );
  }
  const services = ["mail", "search", "billing"];
  for (let day = 1; day <= 50; day += 1) {
    const lines = Array.from({ length: 40 }, (_, at) => {
      const level = (at * day) % 13 === 1 ? "ERROR" : "INFO";
      return `${String(at % 24).padStart(2, "0")}:00 ${level} ${services[(at + day) % 3]}: request ${day * 100 + at} took ${at} ms`;
    });
    write(`logs/day-${day}.log`, `${lines.join("\n")}\n`);
  }
}

/** The tokens of the definitions of some tools. */
export interface ServerFigures {
  readonly name: string;
  readonly package: string;
  readonly tools: number;
  readonly tokens: number;
}

export interface TaskFigures extends Task {
  /** What the run printed and returned, without the line of its calls. */
  readonly result: string;
  readonly calls: number;
  /** Arguments and results of all calls, which a model would have written and read. */
  readonly directBytes: number;
  /** The code, the result of the run, and the declarations of the tools that it called. */
  readonly codeBytes: number;
}

export interface Report {
  readonly servers: readonly ServerFigures[];
  readonly full: { readonly tools: number; readonly tokens: number };
  readonly code: { readonly tools: number; readonly tokens: number };
  readonly savedPercent: number;
  readonly tasks: readonly TaskFigures[];
}

/** Resolves to a reason if the servers cannot be installed. */
export async function measure(): Promise<Report | string> {
  const reason = await installPublishedServers();
  if (reason !== undefined) return reason;
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "catenary-report-")));
  writeFiles(folder);
  const found = publishedServers(folder);
  let directBytes = 0;
  const count: Middleware = async (request, context, next) => {
    const result = await next(request, context);
    if (request.method === "tools/call") directBytes += sizeOf(request.params, result["content"]);
    return result;
  };
  const upstreams = Object.entries(found).map(([name, server]) => {
    return [name, upstream(server.command, { remember: false })] as const;
  });
  const gateway = chain(count).to(Object.fromEntries(upstreams));
  const front = codeMode(gateway, { sandbox: (await sandboxProblem()) === undefined });
  const [direct, client] = await Promise.all([connect(gateway), connect(front)]);
  try {
    const listed = await allTools(direct);
    const { full, code, savedPercent, isEstimate } = await reportCodeTools(listed, {});
    if (isEstimate) throw new Error("gpt-tokenizer is missing: run npm ci");
    const servers: ServerFigures[] = [];
    for (const [name, { package: from }] of Object.entries(found)) {
      const own = listed.filter((tool) => tool._meta?.[UPSTREAM] === name);
      const { full: cost } = await reportCodeTools(own, {});
      servers.push({ name, package: from, tools: cost.tools, tokens: cost.tokens });
    }
    const tasks: TaskFigures[] = [];
    for (const { title, code: text } of TASKS) {
      directBytes = 0;
      tasks.push({ ...(await runTask(client, { title, code: text.trim() })), directBytes });
    }
    return { servers, full, code, savedPercent, tasks };
  } finally {
    await Promise.all([direct.close(), client.close()]);
    await front.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runTask(client: Client, task: Task): Promise<Omit<TaskFigures, "directBytes">> {
  const args = { code: task.code };
  const { content, structuredContent, isError } = await client.callTool("run-code", args);
  const [{ text = "" } = {}] = content as readonly { text?: string }[];
  if (isError === true) throw new Error(`${task.title}: ${text}`);
  const { calls } = structuredContent as { calls: readonly { tool: string }[] };
  const names = [...new Set(calls.map(({ tool }) => tool))];
  const { content: declarations } = await client.callTool("describe-tools", { names });
  const codeBytes =
    sizeOf({ name: "describe-tools", arguments: { names } }, declarations) +
    sizeOf({ name: "run-code", arguments: args }, content);
  return { ...task, result: text.trim(), calls: calls.length, codeBytes };
}

/** Asks until no upstream is missing, since a gateway does not wait long for one that is still starting. */
async function allTools(client: Client): Promise<Tool[]> {
  const endAt = performance.now() + MAX_START_MS;
  for (;;) {
    const missing = (await client.listTools())._meta?.[UNAVAILABLE];
    if (missing === undefined) break;
    if (performance.now() > endAt) throw new Error(`Not all servers have started: ${JSON.stringify(missing)}`);
    await setTimeout(500);
  }
  const tools: Tool[] = [];
  for await (const tool of client.tools()) tools.push(tool);
  return tools;
}

/** What passes through a model: what it writes to make a call, and the content that it reads. */
function sizeOf({ name, arguments: args }: { readonly [key: string]: unknown }, content: unknown): number {
  return Buffer.byteLength(JSON.stringify({ name, arguments: args })) + Buffer.byteLength(JSON.stringify(content));
}

const thousands = (count: number): string => String(count).replaceAll(/\B(?=(\d{3})+$)/g, ",");
const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`;

/** The part of the page, as Markdown. */
export function format({ servers, full, code, savedPercent, tasks }: Report): string {
  const table = (rows: readonly (readonly string[])[]): string =>
    rows.map((row) => `| ${row.join(" | ")} |`).join("\n");
  const costs = [
    ...servers.map(({ name, package: from, tools, tokens }) => [
      `\`${name}\`: ${from}`,
      String(tools),
      thousands(tokens),
    ]),
    ["**All**", `**${full.tools}**`, `**${thousands(full.tokens)}**`],
    ["**Code mode**", `**${code.tools}**`, `**${thousands(code.tokens)}** (${savedPercent} % fewer)`],
  ];
  const done = tasks.map(({ title, calls, directBytes, codeBytes }) => [
    title,
    String(calls),
    kilobytes(directBytes),
    kilobytes(codeBytes),
  ]);
  const codes = tasks.map(
    (task) => `**${task.title}:**\n\n\`\`\`js\n${task.code}\n\`\`\`\n\n\`\`\`text\n${task.result}\n\`\`\``,
  );
  return [
    table([["Server", "Tools", "Tokens"], ["---", "---", "---"], ...costs]),
    "The tokens are those of names, descriptions and arguments, counted with gpt-tokenizer. Three tasks, each done in one `run-code`:",
    table([["Task", "Calls", "Bytes without code mode", "Bytes with it"], ["---", "---", "---", "---"], ...done]),
    "The bytes are those that pass through a model: without code mode the arguments and results of all calls, with it the code, what it returns, and the declarations of the tools that it calls.",
    ...codes,
  ].join("\n\n");
}

/** The part that the page has. */
export function readReport(): string {
  return BLOCK.exec(readFileSync(PAGE, "utf8"))?.[2]?.trim() ?? "";
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const report = await measure();
  if (typeof report === "string") throw new Error(report);
  const text = format(report);
  process.stdout.write(`${text}\n`);
  if (process.argv.includes("--write")) {
    const page = readFileSync(PAGE, "utf8");
    writeFileSync(
      PAGE,
      page.replace(BLOCK, (_all, begin: string, _old, end: string) => `${begin}\n${text}\n\n${end}`),
    );
  }
}
