// docs/how-to/mcp-apps.md: its server and its view work, directly and through a gateway, and what the page says does not
// work yet is so. The script of the view runs here, with a host that passes its messages on. The commands of the
// page are played in pages.long.test.ts.

import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { chain, connect, createServer, upstream, type Client, type Gateway, type Server } from "../../src/index.ts";
import { pin, rename, search } from "../../src/chain/middleware/index.ts";
import { codeMode } from "../../src/live/index.ts";
import { connectInMemory, REVISION_NAMES } from "../../src/testing.ts";
import { PageFolder, readPage } from "./page.ts";

const PAGE = readPage("docs/how-to/mcp-apps.md");
const EXTENSION = "io.modelcontextprotocol/ui";
const HTML = "text/html;profile=mcp-app";
const VIEW = "ui://dice/view.html";
const UI_CLIENT = { capabilities: { extensions: { [EXTENSION]: { mimeTypes: [HTML] } } } };

let folder: PageFolder;
beforeAll(async () => {
  folder = await PageFolder.create(PAGE);
});
afterAll(() => folder.close());

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly name?: string; readonly protocolVersion?: string };
  readonly result?: unknown;
}

type Listener = (event: { readonly source: object; readonly data: unknown }) => void;

/** A host that shows a view: it runs the script of the view, and passes its calls of tools on to the client. */
class Host {
  readonly #client: Client;
  readonly #listeners: Listener[] = [];
  readonly #parent = { postMessage: (message: Message) => queueMicrotask(() => void this.#receive(message)) };
  readonly received: (string | undefined)[] = [];
  readonly sum = { textContent: "..." };
  readonly initialized: Promise<void>;
  #isInitialized = (): void => {};
  #click = (): void => {};
  #isShown = (): void => {};

  constructor(client: Client, html: string) {
    this.#client = client;
    this.initialized = new Promise((resolve) => (this.#isInitialized = resolve));
    const [, script = ""] = /<script>([^]*)<\/script>/.exec(html) ?? [];
    const button = { addEventListener: (_: string, listener: () => void) => (this.#click = listener) };
    const document = { getElementById: (id: string) => (id === "sum" ? this.sum : button) };
    const addEventListener = (_: string, listener: Listener): void => void this.#listeners.push(listener);
    // oxlint-disable-next-line no-implied-eval, no-new-func -- the script is our own page's
    const run = new Function("parent", "document", "addEventListener", script);
    run(this.#parent, document, addEventListener);
  }

  send(message: object): void {
    for (const listener of this.#listeners) listener({ source: this.#parent, data: { jsonrpc: "2.0", ...message } });
  }

  /** Clicks the button, and resolves when the view has got the result. */
  async clickButton(): Promise<void> {
    const shown = new Promise<void>((resolve) => (this.#isShown = resolve));
    this.#click();
    await shown;
  }

  async #receive({ id, method, params }: Message): Promise<void> {
    this.received.push(method ?? "a response");
    if (method === "ui/initialize") {
      this.send({ id, result: { protocolVersion: params?.protocolVersion, hostCapabilities: {}, hostContext: {} } });
    }
    if (method === "ui/notifications/initialized") this.#isInitialized();
    if (method !== "tools/call") return;
    this.send({ id, result: await this.#client.callTool(params?.name ?? "") });
    // The view shows the result in a microtask of its own.
    setImmediate(this.#isShown);
  }
}

/** What a host does with a tool that has a view. */
async function playView(client: Client): Promise<void> {
  const { tools } = await client.listTools();
  const tool = tools.find(({ name }) => name === "roll_dice");
  expect(tool?._meta).toMatchObject({ ui: { resourceUri: VIEW } });
  const { contents } = await client.readResource(VIEW);
  expect(contents).toMatchObject([{ mimeType: HTML, _meta: { ui: { prefersBorder: true } } }]);
  const [view] = contents;
  const host = new Host(client, view !== undefined && "text" in view ? view.text : "");
  await host.initialized;
  host.send({ method: "ui/notifications/tool-result", params: { content: [{ type: "text", text: "first" }] } });
  expect(host.sum.textContent).toBe("first");
  await host.clickButton();
  expect(host.sum.textContent).toMatch(/^You rolled \d+$/);
  host.send({ id: 1, method: "ui/resource-teardown", params: {} });
  await Promise.resolve();
  expect(host.received).toEqual(["ui/initialize", "ui/notifications/initialized", "tools/call", "a response"]);
}

function dice(name = "dice"): Server {
  return createServer({ name, version: "1.0.0", capabilities: { extensions: { [EXTENSION]: {} } } })
    .tool("roll_dice", { _meta: { ui: { resourceUri: VIEW }, "ui/resourceUri": VIEW } }, () => ({
      content: [{ type: "text", text: "7" }],
      structuredContent: { sum: 7 },
      _meta: { seed: 1 },
    }))
    .tool("roll_again", { _meta: { ui: { resourceUri: VIEW, visibility: ["app"] } } }, () => "8")
    .resource(VIEW, { mimeType: HTML, _meta: { ui: { csp: {} } } }, () => "<!doctype html>");
}
const other = (): Server => createServer({ name: "other", version: "1.0.0" }).tool("add", {}, () => "added");

async function connected(gateway: Gateway, options: Parameters<typeof connect>[1] = UI_CLIENT): Promise<Client> {
  const client = await connect(gateway, options);
  onTestFinished(async () => {
    await client.close();
    await gateway.close();
  });
  return client;
}

async function toolsOf(client: Client): Promise<Record<string, unknown>> {
  const { tools } = await client.listTools();
  return Object.fromEntries(tools.map(({ name, _meta }) => [name, _meta?.["ui"]]));
}

const command = (): { command: string; args: string[] } => ({
  command: process.execPath,
  args: [folder.path("dice.js")],
});

it("the example works with the server itself", async () => {
  await using client = await connect(command(), UI_CLIENT);
  await playView(client);
});

it("the example works through a gateway with another server", async () => {
  await using gateway = chain().to({ dice: upstream(command()), other: other() });
  await using client = await connect(gateway, UI_CLIENT);
  await playView(client);
});

it.each(REVISION_NAMES)("what passes through a gateway is unchanged in %s", async (revision) => {
  await using gateway = chain().to({ dice: dice(), other: other() });
  const { client } = await connectInMemory(gateway, { revision, ...UI_CLIENT });
  expect(client.capabilities.extensions).toMatchObject({ [EXTENSION]: {} });
  const { tools } = await client.listTools();
  expect(tools[0]?._meta).toMatchObject({ ui: { resourceUri: VIEW }, "ui/resourceUri": VIEW });
  expect((await client.listResources()).resources).toMatchObject([
    { uri: VIEW, mimeType: HTML, _meta: { ui: { csp: {} } } },
  ]);
  const { contents } = await client.readResource(VIEW);
  expect(contents).toEqual([{ uri: VIEW, mimeType: HTML, text: "<!doctype html>", _meta: { ui: { csp: {} } } }]);
  const { content, structuredContent, _meta } = await client.callTool("roll_dice");
  expect(content).toEqual([{ type: "text", text: "7" }]);
  expect(_meta).toMatchObject({ seed: 1 });
  const isOldest = REVISION_NAMES.indexOf(revision) < 2;
  expect(structuredContent).toEqual(isOldest ? undefined : { sum: 7 });
  await client.close();
});

it("what does not work yet: a URI that got a prefix does not begin with ui:, though the tool names it", async () => {
  for (const gateway of [
    chain().to({ dice: dice(), more: dice("more") }),
    chain().to({ dice: dice(), other: other() }, { names: "always" }),
  ]) {
    const client = await connected(gateway);
    const { resources } = await client.listResources();
    expect(resources[0]?.uri).toBe(`dice.${VIEW}`);
    expect((await toolsOf(client))["dice_roll_dice"]).toEqual({ resourceUri: `dice.${VIEW}` });
    await expect(client.readResource(VIEW)).rejects.toThrow(`use one of dice.${VIEW}`);
  }
});

it("what does not work yet: a view calls a tool by its name at the server", async () => {
  const always = await connected(chain().to({ dice: dice(), other: other() }, { names: "always" }));
  await expect(always.callTool("roll_again")).rejects.toThrow("it is called dice_roll_again here");
  const renamed = await connected(chain(rename({ tools: { roll_again: "again" } })).to(dice()));
  await expect(renamed.callTool("roll_again")).rejects.toThrow("Tool not found");
});

it.each([
  ["search", (include: string[]) => chain(search({ include })).to({ dice: dice(), other: other() })],
  [
    "code mode",
    (include: string[]) => codeMode(chain().to({ dice: dice(), other: other() }), { sandbox: false, include }),
  ],
])("what does not work yet: %s lists no tools with views, and finds those that are for views only", async (_, made) => {
  const client = await connected(made([]));
  expect(Object.values(await toolsOf(client))).toEqual([undefined, undefined, undefined]);
  const { content } = await client.callTool("search-tools", { query: "roll again" });
  expect(JSON.stringify(content)).toContain("roll_again");
  const including = await connected(made(["roll_dice"]));
  expect(await toolsOf(including)).toMatchObject({ roll_dice: { resourceUri: VIEW } });
});

it("what does not work yet: a gateway refuses no call because of `visibility`", async () => {
  const client = await connected(chain().to({ dice: dice(), other: other() }));
  expect((await client.callTool("roll_again")).content).toEqual([{ type: "text", text: "8" }]);
});

it("what does not work yet: `pin` holds a tool that names another view, but not a changed view", async () => {
  const server = dice();
  const client = await connected(chain(pin({ file: folder.path("pins.json") })).to(server));
  await toolsOf(client);
  server.removeTool("roll_again");
  server.tool("roll_again", { _meta: { ui: { resourceUri: "ui://dice/else.html" } } }, () => "8");
  server.removeResource(VIEW);
  server.resource(VIEW, { name: "view", mimeType: HTML }, () => "<!doctype html><p>Else</p>");
  expect(await toolsOf(client)).not.toHaveProperty("roll_again");
  expect((await client.readResource(VIEW)).contents).toMatchObject([{ text: "<!doctype html><p>Else</p>" }]);
});
