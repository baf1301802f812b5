// The page Traffic in a real browser, in front of a made-up gateway: keys, filters, links, what happens when the connection
// is lost, and that a hundred thousand rows and two thousand calls a second are not too many.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { IS_LONG } from "../support/thoroughness.ts";
import { hasChromium, launchBrowser, openConsolePage, type WatchedPage } from "../support/browser.ts";
import { FeedServer } from "./feed-server.ts";

describe.skipIf(!hasChromium())("Traffic in a browser", () => {
  let browser: Browser;
  let server: FeedServer;
  let url: string;
  beforeAll(async () => {
    browser = await launchBrowser();
    server = new FeedServer({ callsPerSecond: 0, rows: 3000 });
    url = await server.start();
  });
  afterAll(async () => {
    await browser.close();
    await server.stop();
  });

  const open = async (hash: string, width = 1280): Promise<WatchedPage> => {
    return openConsolePage(browser, url + hash, { viewport: { width, height: 800 } });
  };
  const table = (page: Page) => page.getByRole("table", { name: "Calls" });
  const lastRow = (page: Page) =>
    table(page)
      .getByRole("row")
      .filter({ has: page.getByRole("cell") })
      .last();

  it("shows the last calls, and only as many rows as fit", async () => {
    const { page, context, faults } = await open("#/traffic");
    await lastRow(page).waitFor();
    expect(Number(await table(page).getAttribute("aria-rowcount"))).toBeGreaterThan(2900);
    await expect.poll(() => table(page).getByRole("row").count()).toBeLessThan(60);
    expect(faults).toEqual([]);
    await context.close();
  });

  it("is moved through with keys: up and down, open, close, filter, pause", async () => {
    const { page, context } = await open("#/traffic");
    await lastRow(page).waitFor();
    await page.keyboard.press("k");
    await page.keyboard.press("k");
    await page.keyboard.press("Enter");
    await page.getByRole("region", { name: "Call" }).waitFor();
    const first = page.url();
    await page.keyboard.press("ArrowUp");
    await expect.poll(() => page.url()).not.toBe(first);
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByRole("region", { name: "Call" }).count()).toBe(0);
    await page.keyboard.press(" ");
    await page.getByRole("button", { name: "Paused" }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("stat");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.keyboard.type("err");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.getByRole("searchbox", { name: "Filter" }).inputValue()).toBe("status:error ");
    expect(page.url()).toContain("filter=status%3Aerror");
    await context.close();
  });

  it("opens a call and a filter by a link, and says what is wrong with a filter", async () => {
    const id =
      2000 + server.rows.slice(2000).findIndex(({ kind, server: name }) => kind === "call" && name === "github") + 1;
    const { page, context, faults } = await open(`#/traffic/${id}?filter=server:github`);
    const call = page.getByRole("region", { name: "Call" });
    await call.getByText("of work").waitFor();
    for (const tab of ["Request", "Response", "Steps", "Wire"]) {
      await call.getByRole("tab", { name: tab }).click();
      await call.getByRole("tabpanel", { name: tab }).waitFor();
    }
    // Escape sequences of terminals are left out.
    await call.getByText("GET /repos/catenary 200").waitFor();
    await call.getByRole("button", { name: "Call again" }).click();
    await expect.poll(() => server.posts).toContain(`call {"row":${id}}`);
    await call.getByRole("button", { name: "Copy command" }).waitFor();
    await page.getByRole("searchbox", { name: "Filter" }).fill("servr:github");
    await page.getByText("did you mean server:?").waitFor();
    // The rest of the filter is in use.
    const shown = page.locator(".calls-count");
    await page.getByRole("searchbox", { name: "Filter" }).fill("server:github");
    await expect.poll(() => shown.textContent()).toMatch(/ of /);
    const ofGithub = await shown.textContent();
    await page.getByRole("searchbox", { name: "Filter" }).fill("tool:nothing_at_all");
    await expect.poll(() => shown.textContent()).toMatch(/^0 of/);
    await page.getByRole("searchbox", { name: "Filter" }).fill("server:github status:er");
    await page.getByText("did you mean error?").waitFor();
    await expect.poll(() => shown.textContent()).toBe(ofGithub);
    await page.getByRole("searchbox", { name: "Filter" }).fill("tool:nothing_at_all");
    await page.getByRole("button", { name: "Show all calls" }).click();
    await lastRow(page).waitFor();
    expect(faults).toEqual([]);
    await context.close();
  });

  it("replaces the list by the detail in a narrow window, without scrolling sideways", async () => {
    const { page, context } = await open("#/traffic", 360);
    await lastRow(page).click();
    await page.getByRole("region", { name: "Call" }).waitFor();
    await expect.poll(() => table(page).isVisible()).toBe(false);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    await page.getByRole("button", { name: "Close" }).click();
    await table(page).waitFor();
    await context.close();
  });

  it("shows new calls and changed ones, with what is nested under them", async () => {
    const { page, context } = await open("#/traffic");
    await lastRow(page).waitFor();
    const row = {
      id: 900_001,
      kind: "call",
      at: Date.now(),
      method: "tools/call",
      name: "brand_new",
      status: "running",
    };
    server.send("calls", [row]);
    await lastRow(page).getByText("brand_new").waitFor();
    const question = { ...row, id: 900_002, parent: row.id, kind: "question", method: "elicitation/create" };
    server.send("calls", [{ ...row, status: "asked" }, question]);
    await lastRow(page).getByText("elicitation/create").waitFor();
    server.send("calls", [{ ...row, status: "error", error: "timeout", ms: 1234, waitMs: 20, endedAt: row.at + 1254 }]);
    await table(page).getByText("timeout").waitFor();
    await table(page).getByText("1.2 s").waitFor();
    await context.close();
  });

  it("says that the connection is lost, and opens it again", async () => {
    const { page, context } = await open("#/traffic");
    await lastRow(page).waitFor();
    await page.route("**/api/events*", (route) => route.abort());
    server.cut();
    await page.getByText("Connection lost, trying again").waitFor();
    await page.unroute("**/api/events*");
    await page.getByRole("button", { name: "Try now" }).click();
    await expect.poll(() => page.getByText("Connection lost").count()).toBe(0);
    await context.close();
  });

  it.runIf(IS_LONG)("filters a hundred thousand rows while two thousand calls a second come", async () => {
    const busy = new FeedServer({ callsPerSecond: 2000, rows: 100_000 });
    const { page, context } = await openConsolePage(browser, `${await busy.start()}#/traffic`);
    const count = page.locator(".calls-count");
    await expect.poll(() => count.textContent()).toMatch(/^\d\d,\d{3}$/);
    await page.getByRole("searchbox", { name: "Filter" }).fill("server:github dur:>100ms -tool:search_*");
    await expect.poll(() => count.textContent()).toMatch(/^\d+,\d{3} of \d\d,\d{3}$/);
    await expect.poll(() => count.getAttribute("title")).toMatch(/in [1-9]\d* ms/);
    const [, ms] = /in (\d+) ms/.exec((await count.getAttribute("title")) ?? "") ?? [];
    console.log(`The filter took ${ms} ms over 100,000 rows`);
    const cdp = await context.newCDPSession(page);
    await cdp.send("HeapProfiler.collectGarbage");
    const { usedSize } = await cdp.send("Runtime.getHeapUsage");
    expect(usedSize).toBeLessThan(200e6);
    await context.close();
    await busy.stop();
  });
});
