// Text of a hostile server and of a hostile client is inert on every page: nothing of it runs, loads, hides, or turns what a
// person reads, and the pages stay usable.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasChromium, launchBrowser, type WatchedPage } from "../support/browser.ts";
import { goTo, SERVERS, TestGateway } from "./gateway.ts";
import { CODE_URL, HOSTILE } from "./hostile-text.ts";
import { connectSdk1, type SdkClient } from "./sdk-clients.ts";

describe.skipIf(!hasChromium())("hostile text in the console", () => {
  let browser: Browser;
  let gateway: TestGateway;
  let opened: WatchedPage;
  let page: Page;
  let client: SdkClient;
  const dialogs: string[] = [];

  beforeAll(async () => {
    const config = { mcpServers: { hostile: SERVERS.hostile, js: SERVERS.js } };
    [browser, gateway] = await Promise.all([launchBrowser(), TestGateway.start(config)]);
    client = await connectSdk1(gateway, { name: HOSTILE.slice(0, 700), answer: async () => ({ a: "b" }) });
    opened = await gateway.open(browser, "#/home");
    ({ page } = opened);
    page.on("dialog", (dialog) => {
      dialogs.push(dialog.message());
      void dialog.dismiss();
    });
  });
  afterAll(async () => {
    await client?.close().catch(() => undefined);
    await browser?.close();
    await gateway?.stop();
  });

  /** Nothing of the text has become part of the page, and nobody reads it in another order than it has. */
  async function expectInert(): Promise<void> {
    const found = await page.evaluate(() => {
      const bad = "script:not([src]), iframe, object, embed, base, style, .pwned, [onerror], [onload], [onmouseover]";
      const links = [...document.querySelectorAll("body [href], body [src]")].flatMap((element) =>
        ["href", "src"].flatMap((name) => element.getAttribute(name) ?? []),
      );
      const attributes = [...document.querySelectorAll("body *")].flatMap((element) =>
        element.getAttributeNames().map((name) => element.getAttribute(name) ?? ""),
      );
      // oxlint-disable-next-line no-control-regex -- as they must not be there
      const hidden = /[\u0000\u0008\u001b\u200b\u202a-\u202e\u2066-\u2069\ufeff]|\u{e0041}/u;
      const text = document.body.innerText;
      return {
        elements: [...document.querySelectorAll(bad)].map(({ outerHTML }) => outerHTML.slice(0, 200)),
        links: links.filter((link) => !/^(?:#|\.?\/|data:(?:image|audio)\/|[\w./-]+$)/.test(link)),
        pwned: (window as { __pwned?: unknown }).__pwned,
        polluted: ({} as { polluted?: unknown }).polluted,
        text: hidden.exec(text)?.[0],
        attributes: attributes.filter((value) => hidden.test(value)).map((value) => value.slice(0, 100)),
      };
    });
    expect(found).toEqual({ elements: [], links: [], attributes: [] });
    expect(opened.faults).toEqual([]);
    expect(dialogs).toEqual([]);
  }

  const tabs = async (region: string): Promise<void> => {
    for (const tab of await page.getByRole("region", { name: region }).getByRole("tab").all()) {
      await tab.click();
      await expectInert();
    }
  };

  it("in calls of a client: rows, and all parts of their detail", async () => {
    for (const name of ["bad_result", "bad_question", "bad_error"]) await client.call(name).catch(() => undefined);
    await goTo(page, "#/traffic?filter=method:tools/call");
    const rows = page.getByRole("table", { name: "Calls" }).getByRole("row");
    for (const name of ["bad_result", "bad_question", "bad_error"]) {
      await rows.filter({ hasText: name }).click();
      await page
        .getByRole("region", { name: "Call" })
        .getByRole("heading")
        .or(page.getByText(`tools/call ${name}`))
        .first()
        .waitFor();
      await tabs("Call");
    }
    await page.getByRole("region", { name: "Call" }).getByRole("tab", { name: "Wire" }).click();
    await page.getByRole("heading", { name: "What it wrote to stderr" }).waitFor();
    await expectInert();
  });

  it("in Tools: definitions, forms, results, errors and questions", async () => {
    await goTo(page, "#/tools");
    await page.getByRole("link", { name: "bad_form" }).waitFor();
    await expectInert();
    const call = page.getByRole("button", { name: "Call", exact: true });
    for (const name of ["bad_form", "bad_result", "bad_error", "bad_description"]) {
      await page.getByRole("link", { name, exact: true }).click();
      await page.getByRole("heading", { name, exact: true }).waitFor();
      if (name === "bad_form")
        await page
          .getByLabel("pattern", { exact: true })
          .first()
          .fill(`${"a".repeat(40)}!`);
      await call.click();
      await page.getByRole("link", { name: "Show the call" }).waitFor();
      await tabs("Result");
    }
    for (const [name, button] of [
      ["bad_question", "Accept"],
      ["bad_visit", "Decline"],
    ] as const) {
      await page.getByRole("link", { name, exact: true }).click();
      await page.getByRole("heading", { name, exact: true }).waitFor();
      await call.click();
      const dialog = page.getByRole("dialog", { name: "hostile asks" });
      await dialog.waitFor();
      await expectInert();
      await dialog.getByRole("button", { name: button }).click();
      await page.getByRole("link", { name: "Show the call" }).waitFor();
      await expectInert();
    }
    for (const [kind, name] of [
      ["Prompts", "bad_prompt"],
      ["Resources", CODE_URL],
      ["Resources", "bad://{x}"],
    ] as const) {
      await page.getByRole("button", { name: new RegExp(`^${kind}`) }).click();
      await page.getByRole("link", { name, exact: true }).click();
      await page.getByRole("heading", { name, exact: true }).waitFor();
      await expectInert();
    }
    expect(opened.context.pages()).toHaveLength(1);
  });

  it("in a line of a megabyte, with which the page goes on", async () => {
    await goTo(page, "#/tools/hostile/bad_long");
    await page.getByRole("button", { name: "Call", exact: true }).click();
    await page.getByRole("link", { name: "Show the call" }).waitFor();
    await expectInert();
    await page.getByRole("link", { name: "Show the call" }).click();
    await tabs("Call");
    await goTo(page, "#/home");
    await page.getByRole("button", { name: "Log of hostile" }).click();
    const log = page.getByRole("dialog", { name: "Log of hostile" });
    await log.getByText("script").first().waitFor();
    await expectInert();
    await page.keyboard.press("Escape");
  });

  it("in schemas and results that are too large for a page", async () => {
    const call = page.getByRole("button", { name: "Call", exact: true });
    const size = (): Promise<number> => page.evaluate(() => document.querySelectorAll("main *").length);
    await goTo(page, "#/tools/hostile/bad_depth");
    await page.getByLabel("p19", { exact: true }).waitFor();
    expect(await size()).toBeLessThan(2000);
    await goTo(page, "#/tools/hostile/bad_width");
    await page.getByText("The form has 300 of 5,000 fields. The rest is edited as JSON.").waitFor();
    await page.getByLabel("p299", { exact: true }).waitFor();
    await page.getByLabel("Arguments as JSON").fill('{"p1": "with a field", "p4999": "without"}');
    await expect.poll(() => page.getByLabel("p1", { exact: true }).inputValue()).toBe("with a field");
    expect(await size()).toBeLessThan(4000);
    await goTo(page, "#/tools/hostile/bad_many");
    await page.getByRole("heading", { name: "bad_many", exact: true }).waitFor();
    await call.click();
    const result = page.getByRole("region", { name: "Result" });
    await result.getByText("block 199", { exact: true }).waitFor();
    expect(await size()).toBeLessThan(3000);
    await result.getByRole("button", { name: "29,800 more blocks" }).click();
    await result.getByText("block 799", { exact: true }).waitFor();
    await result.getByRole("button", { name: "29,200 more blocks" }).waitFor();
    await goTo(page, "#/tools/hostile/bad_wide_question");
    await page.getByRole("heading", { name: "bad_wide_question", exact: true }).waitFor();
    await call.click();
    const dialog = page.getByRole("dialog", { name: "hostile asks" });
    await dialog.getByText("The form has 300 of 1,000 fields.").waitFor();
    await dialog.getByLabel("Answer as JSON").fill('{"p999": "the last"}');
    await dialog.getByRole("button", { name: "Accept" }).click();
    await result.getByText("the last").waitFor();
    await expectInert();
  });

  it("in Home, Chain, Live and the palette", async () => {
    await goTo(page, "#/home");
    await page.getByRole("table", { name: "Clients" }).getByRole("row").nth(1).waitFor();
    await expectInert();
    await goTo(page, "#/chain");
    await page.getByRole("button", { name: /^Server hostile/ }).click();
    await page.getByRole("region", { name: "Server hostile" }).waitFor();
    await expectInert();
    await page
      .getByRole("button", { name: /^Client/ })
      .first()
      .click();
    await expectInert();
    await goTo(page, "#/live");
    await page
      .getByRole("textbox", { name: "Evaluate" })
      .fill(`console.log(${JSON.stringify(HOSTILE)}); throw new Error(${JSON.stringify(HOSTILE)})`);
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("log", { name: "Transcript" }).getByText("Error").first().waitFor();
    await expectInert();
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog", { name: "Go to anything" }).getByRole("combobox").fill("bad");
    await page.getByRole("option").first().waitFor();
    await expectInert();
  });
});
