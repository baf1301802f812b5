// The resources of a Common Lisp session, completion from its image, and what holds for one call only.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, type Client } from "../../../src/client/index.ts";
import { lisp, type Live } from "../../../src/live/index.ts";
import { hasSbcl } from "../../support/setup/sbcl.ts";
import { IS_LONG } from "../../support/thoroughness.ts";

describe.skipIf(!hasSbcl())("a Lisp session (needs SBCL)", () => {
  let server: Live;
  let client: Client;
  beforeAll(async () => {
    server = lisp();
    client = await connect(server);
    await evaluate('(defpackage garden (:use cl) (:export #:rose) (:documentation "Beds."))');
    await evaluate('(defun garden::rose (colour) "A rose." colour)');
  });
  afterAll(async () => {
    await client.close();
    await server.close();
  });

  async function evaluate(code: string, args: object = {}): Promise<string> {
    const { content } = await client.callTool("evaluate-lisp", { code, ...args });
    return (content as readonly { text?: string }[])[0]?.text ?? "";
  }

  async function read(uri: string): Promise<string> {
    const { contents } = await client.readResource(uri);
    return String((contents[0] as { text?: string }).text);
  }

  it("a Lisp session describes packages and symbols as resources", async () => {
    expect(await read("lisp://package/garden")).toBe(
      "Package: GARDEN\n\nBeds.\n\nUses: COMMON-LISP\n\nExported symbols (1):\n  ROSE",
    );
    expect(await read("lisp://symbol/garden/rose")).toMatch(/^GARDEN::ROSE \[FUNCTION\]\n {2}Arglist: \(COLOUR\)\n/);
    await expect(read("lisp://symbol/garden/tulip")).rejects.toThrow("Symbol tulip not found in package GARDEN");
    await expect(read("lisp://package/desert")).rejects.toThrow("Package desert not found");
  });

  it("a Lisp session completes names of packages and symbols, in the case in which they are typed", async () => {
    const complete = async (uri: string, name: string, value: string, others = {}): Promise<readonly string[]> =>
      (await client.complete({ type: "ref/resource", uri }, { name, value }, { arguments: others })).completion.values;
    expect(await complete("lisp://package/{name}", "name", "gard")).toEqual(["GARDEN"]);
    expect(await complete("lisp://symbol/{package}/{name}", "name", "ros", { package: "garden" })).toEqual(["ROSE"]);
    const code = "live://session/{name}/completions/{code}";
    expect(await complete(code, "code", "(garden:r", { name: "main" })).toEqual(["garden:rose"]);
    expect(await complete(code, "code", "(MAPCA", { name: "main" })).toEqual(["MAPCAN", "MAPCAR"]);
    expect(await complete(code, "code", "(list :exter", { name: "main" })).toContain(":external");
    expect(await complete(code, "code", "(list ", { name: "main" })).toEqual([]);
  });

  it("a Lisp session uses the argument `package` for one call", async () => {
    expect(await evaluate("(rose 1)", { package: "garden" })).toBe("=> 1");
    expect(await evaluate("(package-name *package*)")).toBe('=> "COMMON-LISP-USER"');
  });

  it.runIf(IS_LONG)(
    "a Lisp session is saved as an image, goes on, and is restored after its process was killed",
    async () => {
      await evaluate('(defvar *bed* (make-hash-table)) (setf (gethash :x *bed*) 7) (error "held")', {
        session: "bed",
      });
      const [{ text = "" } = {}] = (await client.callTool("save-session", { session: "bed" })).content as readonly {
        text?: string;
      }[];
      // The error that was open is closed first.
      expect(text).toMatch(/^Saved session bed as checkpoint bed: an image of \d+ MB\.$/);
      expect(await evaluate("(gethash :x *bed*)", { session: "bed" })).toMatch(/^=> 7/);
      const lost = await evaluate("(sb-posix:kill (sb-posix:getpid) 9) (sleep 60)", { session: "bed" });
      expect(lost).toContain("restore-session brings back checkpoint bed");
      await client.callTool("restore-session", { session: "bed" });
      expect(await evaluate("(list (gethash :x *bed*) (package-name *package*))", { session: "bed" })).toBe(
        '=> (7 "COMMON-LISP-USER")',
      );
      expect(await evaluate("(loop)", { session: "bed", timeout: 0.5 })).toContain("the session keeps its state");
      expect(await evaluate("(gethash :x *bed*)", { session: "bed" })).toMatch(/^=> 7/);
    },
  );

  it("a Lisp session is not saved while other threads run, and says so", async () => {
    await evaluate('(sb-thread:make-thread (lambda () (sleep 600)) :name "gardener")', { session: "busy" });
    await expect(client.callTool("save-session", { session: "busy" })).resolves.toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("The session has other threads, which no core can keep: gardener.") }],
    });
    expect(await evaluate("(+ 1 1)", { session: "busy" })).toBe("=> 2");
  });
});
