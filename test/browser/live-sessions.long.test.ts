// The page Live before a real gateway: evaluations with errors, restarts, interrupts and resets, and what a client evaluates
// while it runs.

import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { hasChromium, launchBrowser } from "../support/browser.ts";
import { sampleOf } from "../support/thoroughness.ts";
import { hasSbcl } from "../support/setup/sbcl.ts";
import { goTo, SERVERS, TestGateway } from "./gateway.ts";
import { connectSdk1, connectSdk2 } from "./sdk-clients.ts";

describe.skipIf(!hasChromium())("the page Live", () => {
  let browser: Browser;
  let gateway: TestGateway;
  let page: Page;

  beforeAll(async () => {
    const config = { mcpServers: { js: SERVERS.js, ...(hasSbcl() && { lisp: SERVERS.lisp }) } };
    [browser, gateway] = await Promise.all([launchBrowser(), TestGateway.start(config)]);
    ({ page } = await gateway.open(browser, "#/live"));
  });
  afterEach(() => {
    expect(gateway.faults).toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    await gateway?.stop();
  });

  const transcript = (): Locator => page.getByRole("log", { name: "Transcript" });
  const evaluate = async (code: string): Promise<void> => {
    const box = page.getByRole("textbox", { name: "Evaluate" });
    await box.fill(code);
    await box.press("Enter");
  };
  const button = (name: string): Locator => page.getByRole("button", { name, exact: true });

  it("evaluates in a new session, keeps its state, and completes from it", async () => {
    await goTo(page, "#/live/new?server=js&name=mine");
    await evaluate("const answerToAll = 6 * 7; answerToAll");
    await transcript().getByText("42", { exact: true }).waitFor();
    await evaluate("answerToAll + 1");
    await transcript().getByText("43", { exact: true }).waitFor();
    const box = page.getByRole("textbox", { name: "Evaluate" });
    await box.fill("answerTo");
    await box.press("Tab");
    await expect.poll(() => box.inputValue()).toBe("answerToAll");
    await box.fill("");
    await box.press("ArrowUp");
    await expect.poll(() => box.inputValue()).toBe("answerToAll + 1");
    await box.fill("");
  });

  it("shows an error with its frames, and walks through a value", async () => {
    await evaluate("(function outer(depth) { throw new RangeError('too deep: ' + depth) })(7)");
    await transcript().getByText("RangeError").first().waitFor();
    await transcript().getByText("too deep: 7").first().waitFor();
    // What is shown whole has no handle.
    await evaluate("Array.from({ length: 300 }, (_, at) => ({ at, name: 'part ' + at }))");
    await transcript().getByRole("button", { name: "Inspect the value" }).last().click();
    await page.getByText("part 7").last().waitFor();
  });

  it("interrupts an endless loop, after which the session goes on", async () => {
    await evaluate("for (;;) {}");
    // An interrupt that comes before the code does nothing, and a person presses again.
    const interrupt = button("Interrupt");
    const press = async (): Promise<number> => {
      if (await interrupt.isEnabled()) await interrupt.click({ timeout: 2000 }).catch(() => undefined);
      return transcript()
        .getByText(/interrupted/i)
        .count();
    };
    await expect.poll(press, { interval: 500 }).toBeGreaterThan(0);
    await evaluate("'still ' + 'here'");
    await transcript()
      .getByText(/still here/)
      .first()
      .waitFor();
  });

  it("resets a session", async () => {
    await button("Reset").click();
    await page
      .getByRole("dialog", { name: /^Reset / })
      .getByRole("button", { name: "Reset session" })
      .click();
    await evaluate("typeof answerToAll");
    await transcript()
      .getByText(/undefined/)
      .first()
      .waitFor();
  });

  it("inspects no values of a process that is gone", async () => {
    await goTo(page, "#/live/new?server=js&name=renewed");
    const inspect = transcript().getByRole("button", { name: "Inspect the value" });
    const inspector = page.getByRole("region", { name: "Inspector" });
    const renewed = transcript().getByText("In a new process", { exact: true });
    const list = (name: string): string => `Array.from({ length: 300 }, (_, at) => ({ at, name: '${name} ' + at }))`;
    await evaluate(list("old"));
    await inspect.waitFor();
    await inspect.click();
    await inspector.getByText("old 7").first().waitFor();
    expect(await renewed.count()).toBe(0);
    await button("Reset").click();
    await page
      .getByRole("dialog", { name: /^Reset / })
      .getByRole("button", { name: "Reset session" })
      .click();
    await expect.poll(() => inspect.count()).toBe(0);
    await expect.poll(() => inspector.getByText("old 7").count()).toBe(0);
    await evaluate(list("new"));
    await inspect.waitFor();
    // In their order: old values, the line, new values.
    await expect
      .poll(() => transcript().innerText())
      .toMatch(/^(?:(?!In a new process)[^])*old [^]*In a new process[^]*new /);
    expect(await renewed.count()).toBe(1);
    expect(await inspect.count()).toBe(1);
    await inspect.click();
    await inspector.getByText("new 7").first().waitFor();
  });

  it.runIf(hasSbcl())("takes a restart of an error in Lisp, with a value", async () => {
    await goTo(page, "#/live/new?server=lisp&name=mine");
    await evaluate("(list :result (+ 1 unbound-number))");
    await transcript().getByText("UNBOUND-VARIABLE").first().waitFor();
    const restarts = transcript().getByRole("group", { name: "Restarts" });
    await restarts.getByRole("button", { name: /^use-value/i }).click();
    const dialog = page.getByRole("dialog", { name: /^Take use-value/i });
    await dialog.getByRole("textbox").fill("(* 6 7)");
    await dialog.getByRole("button", { name: "Take it" }).click();
    await transcript().getByText("(:RESULT 43)").first().waitFor();
    // A frame has its variables.
    await evaluate('(defun fails (x) (declare (optimize debug)) (error "no ~a" x))');
    await evaluate("(fails :luck)");
    await transcript().getByText("no LUCK").first().waitFor();
    await transcript()
      .getByRole("button", { name: /\(FAILS :LUCK\)/ })
      .first()
      .click();
    await transcript().getByText(":LUCK").last().waitFor();
    await transcript().getByRole("button", { name: "Evaluate here, in frame 0" }).last().click();
    await evaluate("(list x :in-frame)");
    await transcript().getByText("(:LUCK :IN-FRAME)").first().waitFor();
  });

  it.runIf(hasSbcl())(
    "leaves the frame when a restart has closed its error, and keeps code that is refused",
    async () => {
      await goTo(page, "#/live/new?server=lisp&name=left");
      await evaluate('(defun g (n) (restart-case (error "bad ~a" n) (skip () :skipped))) (g 1)');
      await button("Evaluate here, in frame 0").click();
      await page.getByText("In frame 0 of the open error").waitFor();
      await evaluate("(list n :seen)");
      await transcript().getByText("(1 :SEEN)").waitFor();
      await transcript().getByRole("group", { name: "Restarts" }).getByRole("button", { name: /skip/i }).click();
      await transcript().getByText(":SKIPPED", { exact: true }).waitFor();
      await expect.poll(() => page.getByText("In frame 0 of the open error").count()).toBe(0);
      await evaluate("(+ 20 22)");
      await transcript().getByText("42", { exact: true }).waitFor();
      // As from a page that does not know yet.
      await page.route("**/api/evaluate", (route) =>
        route.continue({ postData: JSON.stringify({ ...(route.request().postDataJSON() as object), frame: 0 }) }),
      );
      await evaluate("(list :kept)");
      await page.getByRole("status").getByText("No error is open").waitFor();
      await expect.poll(() => page.getByRole("textbox", { name: "Evaluate" }).inputValue()).toBe("(list :kept)");
      await page.unroute("**/api/evaluate");
    },
  );

  it.each(
    sampleOf(1, [
      ["1", connectSdk1],
      ["2", connectSdk2],
    ] as const),
  )("shows what the client of SDK %s evaluates while it runs", async (number, connect) => {
    const client = await connect(gateway, { name: `sdk-agent-${number}` });
    const file = JSON.stringify(`${gateway.folder}/go-${number}.release`);
    const code = [
      'const { existsSync } = await import("node:fs");',
      `console.log("has begun ${number}");`,
      `while (!existsSync(${file})) await new Promise((resolve) => setTimeout(resolve, 20));`,
      `"and ended ${number}"`,
    ].join("\n");
    const running = client.call("evaluate-js", { code, session: `shared-${number}` });
    running.catch(() => undefined);
    await page
      .getByRole("list", { name: "Sessions" })
      .getByRole("link", { name: new RegExp(`shared-${number}`) })
      .click();
    await transcript().getByText(`has begun ${number}`, { exact: true }).waitFor();
    await transcript().getByText(`sdk-agent-${number}`).first().waitFor();
    await expect.poll(() => transcript().getByText(`⇒`).count()).toBe(0);
    gateway.release(`go-${number}`);
    await running;
    await transcript().getByText("⇒").waitFor();
    await client.close();
  });
});
