// The page Tools before a real gateway: calls by form with progress, questions, cancelling and every kind of content, and
// hiding a tool from clients.

import { readdirSync, readFileSync } from "node:fs";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { hasChromium, launchBrowser } from "../support/browser.ts";
import { goTo, SERVERS, TestGateway } from "./gateway.ts";
import { connectSdk1, connectSdk2 } from "./sdk-clients.ts";

const CONFIG = { mcpServers: { steered: SERVERS.steered, everything: SERVERS.everything } };

describe.skipIf(!hasChromium())("calls on the page Tools", () => {
  let browser: Browser;
  let gateway: TestGateway;
  let page: Page;
  let context: Awaited<ReturnType<TestGateway["open"]>>["context"];

  beforeAll(async () => {
    [browser, gateway] = await Promise.all([launchBrowser(), TestGateway.start(CONFIG)]);
    ({ page, context } = await gateway.open(browser, "#/tools"));
  });
  afterEach(() => {
    expect(gateway.faults).toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    await gateway?.stop();
  });

  const result = (): Locator => page.getByRole("region", { name: "Result" });
  const call = (): Locator => page.getByRole("button", { name: "Call", exact: true });
  /** Finds a tool by the search, and opens it. */
  const choose = async (name: string): Promise<void> => {
    await page.getByRole("searchbox", { name: "Search tools" }).fill(name);
    await page.getByRole("link", { name, exact: true }).click();
    await page.getByRole("heading", { name, exact: true }).waitFor();
  };

  it("calls a tool by a form that says what is missing, and the JSON beside it", async () => {
    await choose("greet");
    await call().click();
    const name = page.getByLabel("name", { exact: true });
    await expect.poll(() => name.getAttribute("aria-invalid")).toBe("true");
    await name.fill("Ada");
    await page.getByLabel("times").fill("2");
    await page.getByLabel("style").selectOption("loud");
    await page.getByLabel("polite").check();
    expect(JSON.parse(await page.getByLabel("Arguments as JSON").inputValue())).toEqual({
      name: "Ada",
      times: 2,
      style: "loud",
      polite: true,
    });
    await call().click();
    await result().getByText("DEAR ADA, DEAR ADA").waitFor();
    await page.getByLabel("Arguments as JSON").fill('{"name": "JSON"}');
    await expect.poll(() => name.inputValue()).toBe("JSON");
    // By the keyboard.
    await name.press("Enter");
    await result().getByText("Hello JSON").waitFor();
    // What is shown is in Traffic, as a call of the console.
    await result().getByRole("link", { name: "Show the call" }).click();
    await page.getByRole("region", { name: "Call" }).getByText('"JSON"').first().waitFor();
    await page.goBack();
    await result().getByText("Hello JSON").waitFor();
  });

  it("shows progress while a call runs", async () => {
    await choose("hold");
    await page.getByLabel("label", { exact: true }).fill("shown");
    await call().click();
    const bar = page.getByRole("progressbar");
    await page.getByText("1 of 4: holding on").first().waitFor();
    expect([await bar.getAttribute("value"), await bar.getAttribute("max")]).toEqual(["1", "4"]);
    gateway.release("shown");
    await result().getByText("released shown").waitFor();
    await expect.poll(() => bar.count()).toBe(0);
  });

  it("cancels a call", async () => {
    await choose("hold");
    await page.getByLabel("label", { exact: true }).fill("never");
    await call().click();
    await page.getByText("1 of 4: holding on").first().waitFor();
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await result().getByText("cancelled", { exact: true }).first().waitFor();
    await call().and(page.locator(":enabled")).waitFor();
  });

  it("answers a question with a form", async () => {
    await choose("ask");
    await call().click();
    const dialog = page.getByRole("dialog", { name: "steered asks" });
    await dialog.getByText("Who are you?").waitFor();
    await dialog.getByRole("button", { name: "Accept" }).click();
    // It needs a name.
    const nickname = dialog.getByLabel("Nickname");
    await expect.poll(() => nickname.getAttribute("aria-invalid")).toBe("true");
    await expect.poll(() => nickname.evaluate((field) => field === document.activeElement)).toBe(true);
    await dialog.getByLabel("Nickname").fill("ada");
    await dialog.getByLabel("Age").fill("36");
    await dialog.getByLabel("I agree").check();
    await dialog.getByLabel("Colour").selectOption("green");
    await dialog.getByRole("button", { name: "Accept" }).click();
    await result().getByText("accept: ").waitFor();
    await expect.poll(() => result().innerText()).toContain('{"agree":true,"nick":"ada","age":36,"color":"green"}');
    await call().click();
    await dialog.getByRole("button", { name: "Decline" }).click();
    await result().getByText("decline: null").waitFor();
  });

  it("shows the address of a question, and opens nothing by itself", async () => {
    await choose("visit");
    await call().click();
    const dialog = page.getByRole("dialog", { name: "steered asks" });
    await dialog.getByText("https://example.invalid/sign-in?state=1").waitFor();
    expect(context.pages()).toHaveLength(1);
    await dialog.getByRole("button", { name: "Accept" }).click();
    await result().getByText("visit: accept").waitFor();
  });

  it("shows text, images, sound, resources and structured content", async () => {
    await choose("media");
    await call().click();
    await result().getByText("plain text").waitFor();
    const image = result().getByRole("img", { name: "From the result" });
    await expect.poll(() => image.evaluate((element) => (element as HTMLImageElement).naturalWidth)).toBeGreaterThan(0);
    expect(await result().locator("audio").getAttribute("src")).toMatch(/^data:audio\/wav;base64,/);
    await result().getByText("text of a note").waitFor();
    await result().getByText("note://two").waitFor();
    await result().getByRole("tab", { name: "Structured" }).click();
    await result().getByText("42").waitFor();
    await result().getByRole("tab", { name: "Result" }).click();
  });

  it("shows how a call failed", async () => {
    await choose("fail");
    await call().click();
    await result().getByText("it went wrong").waitFor();
    await result().getByText("failed", { exact: true }).waitFor();
  });

  it("reads a resource and gets a prompt", async () => {
    const search = page.getByRole("searchbox", { name: "Search tools" });
    await search.fill("note://one");
    await page.getByRole("button", { name: /^Resources/ }).click();
    await page.getByRole("link", { name: "note://one" }).click();
    await call().click();
    await result().getByText("text of a note").waitFor();
    await search.fill("review");
    await page.getByRole("button", { name: /^Prompts/ }).click();
    await page.getByRole("link", { name: "review", exact: true }).click();
    await page.getByLabel("what", { exact: true }).fill("all of it");
    await call().click();
    await result().getByText("Review all of it").waitFor();
    // The variable of a template must have a value.
    await goTo(page, `#/tools/everything/${encodeURIComponent("demo://resource/dynamic/text/{resourceId}")}`);
    const variable = page.getByLabel("resourceId", { exact: true });
    await variable.waitFor();
    await call().click();
    await expect.poll(() => variable.getAttribute("aria-invalid")).toBe("true");
    await variable.fill("1");
    await call().click();
    await result().getByText("ok", { exact: true }).waitFor();
    await page.getByRole("button", { name: /^Tools/ }).click();
  });

  it("hides a tool from clients at once, keeps that in the config, and shows it again", async () => {
    const clients = await Promise.all([
      connectSdk1(gateway, { name: "sdk-one" }),
      connectSdk2(gateway, { name: "sdk-two" }),
    ]);
    const before = readFileSync(gateway.config, "utf8");
    for (const client of clients) expect(await client.toolNames()).toContain("greet");
    await choose("greet");
    await page.getByRole("button", { name: "Hide from clients" }).click();
    await page.getByRole("button", { name: "Show to clients" }).waitFor();
    for (const client of clients) await expect.poll(() => client.toolNames()).not.toContain("greet");
    const config = JSON.parse(readFileSync(gateway.config, "utf8")) as typeof CONFIG;
    expect(config.mcpServers.steered).toMatchObject({ exclude: ["greet"] });
    expect(readdirSync(gateway.folder).filter((name) => name.includes(".bak"))).not.toEqual([]);
    await page.getByRole("button", { name: "Show to clients" }).click();
    await page.getByRole("button", { name: "Hide from clients" }).waitFor();
    for (const client of clients) await expect.poll(() => client.toolNames()).toContain("greet");
    expect(readFileSync(gateway.config, "utf8")).toBe(before);
    await Promise.all(clients.map((client) => client.close()));
  });

  it("makes a call of a real server from a link with its arguments", async () => {
    await goTo(page, `#/tools/everything/echo?arguments=${encodeURIComponent('{"message":"from a link"}')}`);
    await expect.poll(() => page.getByLabel("message", { exact: true }).inputValue()).toBe("from a link");
    await call().click();
    await result().getByText("Echo: from a link").waitFor();
  });

  it("has the focus in the form of a tool that the palette opens, and shows the keys on ?", async () => {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Go to anything" }).fill("greet");
    await page.getByRole("option", { name: /^greet tool/ }).waitFor();
    await page.keyboard.press("Enter");
    const first = page.getByLabel("name", { exact: true });
    await expect.poll(() => first.evaluate((field) => field === document.activeElement)).toBe(true);
    // A character in a field.
    await first.fill("");
    await page.keyboard.press("?");
    expect(await first.inputValue()).toBe("?");
    await first.fill("");
    await page.getByRole("heading", { name: "greet", exact: true }).focus();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
  });
});
