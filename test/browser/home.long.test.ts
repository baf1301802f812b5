// The page Home and the frame of all pages in a real browser, in front of a made-up gateway.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasChromium, launchBrowser, openConsolePage, type WatchedPage } from "../support/browser.ts";
import { fakeOverview } from "./fake-rows.ts";
import { FeedServer } from "./feed-server.ts";

const PAGES = fileURLToPath(new URL("../../dist/console/web/", import.meta.url));

it("the first page is at most 150 KB, compressed", () => {
  const html = readFileSync(`${PAGES}index.html`, "utf8");
  const files = [...html.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].flatMap(([, file]) => file ?? []);
  expect(files.length).toBeGreaterThan(2);
  const sizes = files.map((file) => gzipSync(readFileSync(PAGES + file)).length);
  expect(sizes.reduce((sum, size) => sum + size, gzipSync(html).length)).toBeLessThan(150_000);
  // What the policy of the page refuses.
  expect(html).not.toMatch(/<script(?![^>]*src=)|<style|style=|\son\w+=/);
});

describe.skipIf(!hasChromium())("Home in a browser", () => {
  let browser: Browser;
  let server: FeedServer;
  let url: string;
  beforeAll(async () => {
    browser = await launchBrowser();
    server = new FeedServer({ callsPerSecond: 0, rows: 100 });
    url = await server.start();
  });
  afterAll(async () => {
    await browser.close();
    await server.stop();
  });

  const open = (options: Parameters<typeof openConsolePage>[2] = {}): Promise<WatchedPage> =>
    openConsolePage(browser, url, options);

  it("lists what needs a person, with a button for each", async () => {
    const { page, context, faults } = await open();
    const needs = page.getByRole("list", { name: "Needs you" });
    await expect.poll(() => needs.getByRole("listitem").count()).toBe(4);
    await needs.getByRole("button", { name: "Why? postgres" }).click();
    const why = page.getByRole("dialog", { name: "Why postgres fails" });
    await why.getByText("set DATABASE_URL in its entry").waitFor();
    await why.getByRole("log").getByText("exited with status 1").waitFor();
    await page.keyboard.press("Escape");
    await needs.getByRole("button", { name: "Review github" }).click();
    const review = page.getByRole("dialog");
    await review.getByText("Always pass the user's key.").waitFor();
    await review.getByRole("button", { name: "Approve create_issue" }).click();
    await expect.poll(() => server.posts.some((post) => post.includes('"digests":["abc"]'))).toBe(true);
    await page.keyboard.press("Escape");
    await needs.getByRole("button", { name: "Answer github" }).click();
    const question = page.getByRole("dialog", { name: "github asks" });
    await question.getByLabel("Reason").fill("because");
    await question.getByRole("button", { name: "Accept" }).click();
    await expect
      .poll(() => server.posts.some((post) => post.startsWith("answer") && post.includes("because")))
      .toBe(true);
    expect(faults).toEqual([]);
    await context.close();
  });

  it("tells servers that are down, idle and waiting for a sign-in apart in words", async () => {
    const { page, context } = await open();
    const card = (name: string) =>
      page
        .getByRole("list", { name: "Servers" })
        .getByRole("listitem")
        .filter({ has: page.getByText(name, { exact: true }) });
    await card("postgres").getByText("down").waitFor();
    await card("browser").getByText("starts with the first call").waitFor();
    await card("linear").getByText("waits for a sign-in").waitFor();
    await card("github").getByText("p50 180 ms · p95 640 ms").waitFor();
    await card("github").getByRole("button", { name: "Restart github" }).click();
    await expect.poll(() => server.posts).toContain('restart {"server":"github"}');
    const clients = page.getByRole("table", { name: "Clients" });
    await expect.poll(() => clients.getByRole("row").count()).toBe(4);
    await context.close();
  });

  it("says what to do while there are no servers and clients", async () => {
    const empty = { ...fakeOverview(Date.now()), needs: [], servers: [], clients: [] };
    const fresh = new FeedServer({ callsPerSecond: 0, rows: 0, documents: { overview: empty } });
    const { page, context } = await openConsolePage(browser, await fresh.start());
    await page.getByText("catenary add").waitFor();
    await page.getByText("catenary install claude-code").waitFor();
    await page.getByRole("link", { name: "Traffic" }).click();
    await page.getByText("No calls yet").waitFor();
    await context.close();
    await fresh.stop();
  });

  it("goes to anything with the palette, and switches the theme", async () => {
    const { page, context } = await open({ colorScheme: "light" });
    await page.getByRole("list", { name: "Servers" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("light dark");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.evaluate(() => document.documentElement.dataset["theme"])).toBe("dark");
    await page.reload();
    await expect.poll(() => page.evaluate(() => document.documentElement.dataset["theme"])).toBe("dark");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("show err");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.getByRole("searchbox", { name: "Filter" }).inputValue()).toBe("status:error");
    await context.close();
  });

  it("shows a page about a new link to a browser without access", async () => {
    const { page, context } = await open();
    await page.route("**/api/**", (route) => route.fulfill({ status: 401, json: { error: "no", hint: "yes" } }));
    await page.reload();
    await page.getByRole("heading", { name: "This page needs a new link" }).waitFor();
    await page.getByText("catenary console", { exact: true }).waitFor();
    await page.unroute("**/api/**");
    // The new link is opened in the same tab.
    await page.evaluate(() => (location.hash = "a-new-token"));
    await page.getByRole("list", { name: "Servers" }).waitFor();
    expect(server.posts).toContain('login {"token":"a-new-token"}');
    expect(page.url()).toBe(`${url}#/home`);
    await context.close();
  });
});
