// Background output is printed once: as it comes, or with the next result.

import { expect, it } from "vitest";
import type { Client } from "../../client/client.ts";
import { BackgroundEcho } from "./background-echo.ts";

class Fixture {
  printed = "";
  readonly #changed: (() => void)[] = [];
  #text = "";
  #total = 0;
  readonly #client = {
    capabilities: { resources: { subscribe: true } },
    listen: async (_filter: unknown, onEvent: () => void) => {
      this.#changed.push(onEvent);
      return { close: async () => undefined };
    },
    readResource: async () => ({
      contents: [{ uri: "a", text: this.#text, _meta: { "catenary/printed": this.#total } }],
    }),
  };
  readonly echo = new BackgroundEcho(
    this.#client as unknown as Client,
    "live://session/{name}/background",
    (text) => (this.printed += text),
  );

  /** The session prints a text, and the prompt is notified. */
  async print(text: string): Promise<void> {
    this.write(text);
    for (const changed of this.#changed) changed();
    await new Promise((resolve) => void setImmediate(resolve));
  }

  /** The session prints a text, and the notification comes too late. */
  write(text: string): void {
    this.#text = (this.#text + text).slice(-4_000);
    this.#total += text.length;
  }

  /** The text of a result with the background output, without what was printed. */
  result(text: string, notice = ""): string {
    const background = this.#text.replace(/\n$/, "");
    this.#text = "";
    return this.echo.withoutShown(`${notice}${background === "" ? "" : `[background] ${background}\n`}${text}`);
  }
}

it("prints what is new, and leaves it out of the next result", async () => {
  const fixture = new Fixture();
  await fixture.echo.follow("main");
  await fixture.print("tick\n");
  await fixture.print("tick\n");
  expect(fixture.printed).toBe("tick\ntick\n");
  expect(fixture.result("=> 1")).toBe("=> 1");
  await fixture.print("no newline");
  expect(fixture.result("=> 2", "[Notice] Lost\n")).toBe("[Notice] Lost\n=> 2");
  expect(fixture.printed).toBe("tick\ntick\nno newline");
});

it("keeps what was not printed in the result", async () => {
  const fixture = new Fixture();
  await fixture.echo.follow("main");
  fixture.write("early\n");
  expect(fixture.result("=> 1")).toBe("[background] early\n=> 1");
  await fixture.print("tick\n");
  fixture.write("tick\n");
  expect(fixture.result("=> 2")).toBe("tick\n=> 2");
  await fixture.print("tock\n");
  expect(fixture.printed).toBe("tick\ntock\n");
});

it("prints all of a flood of equal lines, of which the session keeps only the end", async () => {
  const fixture = new Fixture();
  await fixture.echo.follow("main");
  for (let count = 0; count < 1_000; count += 1) await fixture.print("tick\n");
  expect(fixture.printed).toBe("tick\n".repeat(1_000));
  expect(fixture.result("=> 1")).toBe("=> 1");
});
