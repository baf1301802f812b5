// The page Traffic before a real gateway: calls of both official SDK clients while they run, their detail, questions and
// retries in one row, and calls made again from the page.

import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../src/protocol/revisions/index.ts";
import { hasChromium, launchBrowser } from "../support/browser.ts";
import { goTo, SERVERS, TestGateway } from "./gateway.ts";
import { connectSdk1, connectSdk2, later, type SdkClient } from "./sdk-clients.ts";

const CONFIG = {
  mcpServers: { steered: { ...SERVERS.steered, use: [{ rename: { tools: { keep: "keep_secret" } } }] } },
  chain: [{ redact: { keys: ["*password*"], in: ["arguments", "results"] } }],
};

describe.skipIf(!hasChromium())("calls of clients in Traffic", () => {
  let browser: Browser;
  let gateway: TestGateway;
  const clients: SdkClient[] = [];

  beforeAll(async () => {
    [browser, gateway] = await Promise.all([launchBrowser(), TestGateway.start(CONFIG)]);
  });
  afterEach(async () => {
    expect(await gateway.closePages()).toEqual([]);
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await browser?.close();
    await gateway?.stop();
  });

  const rowsOf = (page: Page, text: string): Locator =>
    page.getByRole("table", { name: "Calls" }).getByRole("row").filter({ hasText: text });
  const tab = async (page: Page, name: string): Promise<Locator> => {
    const call = page.getByRole("region", { name: "Call" });
    await call.getByRole("tab", { name }).click();
    return call.getByRole("tabpanel");
  };

  it("is beside the other pages, which all open by their links", async () => {
    const { page } = await gateway.open(browser);
    for (const name of ["Traffic", "Tools", "Live", "Chain", "Home"]) {
      // The name is enough to find the link, also as a part.
      await page.getByRole("link", { name }).click();
      await page.getByRole("heading", { name, level: 1 }).waitFor();
    }
    await page.getByRole("list", { name: "Servers" }).getByText("steered").waitFor();
  });

  it("shows a call of a client while it runs, and then how it ended", async () => {
    const { page } = await gateway.open(browser, "#/traffic");
    const client = await connectSdk1(gateway, { name: "agent-one" });
    clients.push(client);
    const running = client.call("hold", { label: "live" });
    const row = rowsOf(page, "hold");
    await row.waitFor();
    await expect.poll(() => row.innerText()).toMatch(/agent-one.*hold.*steered.*…/s);
    gateway.release("live");
    await running;
    await expect.poll(() => row.innerText()).not.toContain("…");
    await row.click();
    const call = page.getByRole("region", { name: "Call" });
    await call.getByText('"live"').first().waitFor();
    const response = await tab(page, "Response");
    await response.getByText("released live").first().waitFor();
    expect(page.url()).toMatch(/#\/traffic\/\d+$/);
  });

  it("shows what each step has changed, and the messages in both revisions", async () => {
    const client = await connectSdk1(gateway, { name: "agent-two" });
    clients.push(client);
    await client.call("keep_secret", { password: "hunter2-in", note: "harmless" });
    const { page } = await gateway.open(browser, "#/traffic?filter=tool:keep_secret");
    await rowsOf(page, "keep_secret").click();
    const steps = await tab(page, "Steps");
    await steps.getByText("redact", { exact: true }).waitFor();
    const changed = await steps.innerText();
    expect(changed).toMatch(/rename/);
    expect(changed).toMatch(/keep_secret/);
    expect(changed).toMatch(/arguments\.password/);
    expect(changed).toMatch(/in the result/);
    const wire = await tab(page, "Wire");
    await wire.getByText("gateway → steered").first().waitFor();
    const messages = await wire.innerText();
    expect(messages).toContain(NEWEST.name);
    expect(messages).toContain(NEWEST_SESSION.name);
    expect(messages).toContain("client → gateway");
    expect(messages).toContain("POST /mcp");
  });

  it("nests a question and its retry in one row, and tells the time of the person apart", async () => {
    const answer = later<Record<string, string | number>>();
    const client = await connectSdk2(gateway, { name: "agent-asked", answer: () => answer.promise });
    clients.push(client);
    const { page } = await gateway.open(browser, "#/traffic?filter=tool:ask");
    const running = client.call("ask");
    const row = rowsOf(page, "agent-asked");
    await row.getByText("asked", { exact: true }).waitFor();
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 300)));
    answer.resolve({ nick: "Ada", age: 36 });
    await running;
    await expect.poll(() => row.innerText()).not.toContain("…");
    await expect.poll(() => row.count()).toBe(1);
    await expect.poll(() => rowsOf(page, "elicitation/create").count()).toBe(1);
    await row.click();
    const call = page.getByRole("region", { name: "Call" });
    await call.getByText(/of work, .* waiting for a person/).waitFor();
    const [, waited = ""] = /of work, ([\d.]+ m?s) waiting/.exec(await call.innerText()) ?? [];
    expect(Number.parseFloat(waited) * (waited.endsWith("ms") ? 1 : 1000)).toBeGreaterThanOrEqual(250);
    await call.getByRole("tab", { name: "Response" }).click();
    await call
      .getByText(/accept: .*Ada/)
      .first()
      .waitFor();
  });

  it("filters as the command line does, and keeps the filter in the address", async () => {
    const [client] = clients;
    await client?.call("fail").catch(() => undefined);
    await client?.call("greet", { name: "Filtered" });
    const { page } = await gateway.open(browser, "#/traffic?filter=status:error");
    await rowsOf(page, "fail").first().waitFor();
    await expect.poll(() => rowsOf(page, "greet").count()).toBe(0);
    const filter = page.getByRole("searchbox", { name: "Filter" });
    await expect.poll(() => filter.inputValue()).toBe("status:error");
    await filter.fill("tool:gr* client:agent-one");
    await rowsOf(page, "greet").waitFor();
    await expect.poll(() => rowsOf(page, "fail").count()).toBe(0);
    expect(decodeURIComponent(page.url())).toContain("filter=tool:gr*+client:agent-one");
    await filter.fill('text:"Hello Filtered"');
    await expect.poll(() => rowsOf(page, "greet").count()).toBe(1);
    await filter.fill("dur:>oops");
    await page.getByRole("alert").waitFor();
    await filter.fill("tool:nothing");
    await page.getByText("No call matches").waitFor();
    await page.getByRole("button", { name: "Show all calls" }).click();
    await rowsOf(page, "greet").waitFor();
    await expect.poll(() => filter.inputValue()).toBe("");
  });

  it("makes a call again, copies its command, and pauses", async () => {
    await clients[0]?.call("greet", { name: "Again" });
    const { page, context } = await gateway.open(browser, "#/traffic?filter=text:Again");
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const rows = rowsOf(page, "greet");
    await rows.first().click();
    const call = page.getByRole("region", { name: "Call" });
    await call.getByRole("button", { name: "Copy command" }).click();
    await expect
      .poll(() => page.evaluate(() => navigator.clipboard.readText()))
      .toMatch(new RegExp(`^node \\S+main\\.js call ${gateway.url} greet name=Again$`));
    await call.getByRole("button", { name: "Call again" }).click();
    await expect.poll(() => rows.count()).toBe(2);
    await expect.poll(() => rowsOf(page, "you").count()).toBe(1);
    // The new call is shown.
    await call.getByRole("tab", { name: "Response" }).click();
    await call.getByText("Hello Again").first().waitFor();

    await goTo(page, "#/traffic");
    await page.getByRole("button", { name: "Pause" }).click();
    await clients[0]?.call("greet", { name: "Unseen" });
    await page.getByText("1 new").waitFor();
    await page.getByRole("searchbox", { name: "Filter" }).fill("text:Unseen");
    await page.getByRole("button", { name: "Paused" }).click();
    await expect.poll(() => rowsOf(page, "greet").count()).toBe(1);
  });

  it("a deep link opens the call, and an id that is not there says so", async () => {
    await clients[0]?.call("greet", { name: "Deep" });
    const first = await gateway.open(browser, "#/traffic?filter=text:Deep");
    await rowsOf(first.page, "greet").click();
    await first.page.getByRole("region", { name: "Call" }).waitFor();
    const { hash } = new URL(first.page.url());
    const second = await gateway.open(browser, hash);
    await second.page.getByRole("region", { name: "Call" }).getByText('"Deep"').first().waitFor();
    await expect.poll(() => second.page.getByRole("searchbox", { name: "Filter" }).inputValue()).toBe("text:Deep");
    await goTo(second.page, "#/traffic/99999999");
    await second.page.getByText("This call cannot be shown").waitFor();
  });
});
