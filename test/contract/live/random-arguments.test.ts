// What arrives at a tool when code of each language calls it with random values of random schemas: the values themselves,
// however the language writes them.

import { expect, it } from "vitest";
import { connect } from "../../../src/client/connect.ts";
import type { Handler } from "../../../src/core/handler.ts";
import { createCodeRunner } from "../../../src/live/code-mode.ts";
import { jsLanguage } from "../../../src/live/js/index.ts";
import { lispLanguage } from "../../../src/live/lisp/index.ts";
import { smalltalkLanguage } from "../../../src/live/smalltalk/index.ts";
import type { Language } from "../../../src/live/tool.ts";
import { RandomArguments, type RandomCase } from "../../support/live/random-arguments.ts";
import { hasSbcl } from "../../support/setup/sbcl.ts";
import { gstProgram } from "../../support/setup/smalltalk.ts";
import { IS_LONG } from "../../support/thoroughness.ts";

const CASES = IS_LONG ? 200 : 20;
/** So many calls are one evaluation. */
const BATCH = 20;
const SEED = Number(process.env["CATENARY_SEED"] ?? 26);

const gst = gstProgram();
/** A hash table with strings as keys. */
const LISP_TABLE = `(defun table (&rest members)
  (let ((table (make-hash-table :test 'equal)))
    (loop for (key value) on members by #'cddr do (setf (gethash key table) value))
    table))`;

const LANGUAGES: readonly (readonly [string, "js" | "lisp" | "smalltalk", () => Language, string, boolean])[] = [
  ["JavaScript", "js", () => jsLanguage({}), "", true],
  ["Common Lisp (needs SBCL)", "lisp", () => lispLanguage(), LISP_TABLE, hasSbcl()],
  ["Smalltalk on Amber", "smalltalk", () => smalltalkLanguage(), "", true],
  ["GNU Smalltalk (needs gst)", "smalltalk", () => smalltalkLanguage({ command: gst ?? "gst" }), "", gst !== undefined],
];

for (const [title, name, language, setup, isInstalled] of LANGUAGES) {
  it.runIf(isInstalled)(
    `the values that code in ${title} sends arrive as the schema of the tool has them`,
    { timeout: 240_000 },
    async () => {
      const random = new RandomArguments(SEED);
      const cases = Array.from({ length: CASES }, () => random.next());
      const arrived = new Map<string, unknown>();
      const failures = await callAll(language(), name, setup, cases, arrived);
      expect(failures).toEqual([]);
      for (const [at, { args, schema }] of cases.entries()) {
        expect(arrived.get(`case${at}`), `case ${at} of seed ${SEED}: ${JSON.stringify(schema)}`).toEqual(args);
      }
    },
  );
}

/** Calls the tool of each case with its arguments, and returns what failed. */
async function callAll(
  language: Language,
  name: "js" | "lisp" | "smalltalk",
  setup: string,
  cases: readonly RandomCase[],
  arrived: Map<string, unknown>,
): Promise<readonly string[]> {
  const gateway: Handler = async ({ params }) => {
    arrived.set(String(params["name"]), params["arguments"]);
    return { resultType: "complete", content: [{ type: "text", text: "ok" }] };
  };
  const entries = cases.map(({ schema }, at) => ({
    path: `case${at}`,
    name: `case${at}`,
    signature: `case${at}(...)`,
    summary: "",
    isDestructive: false,
    tool: { inputSchema: schema },
  }));
  const tools = async () => ({ entries, missing: new Map(), gateway, search: async () => [] });
  const runner = createCodeRunner(language, { tools, limits: { timeoutMs: 120_000 } });
  const client = await connect(runner.handler);
  const failures: string[] = [];
  const run = async (code: string): Promise<void> => {
    const { isError, content } = await client.callTool("run-code", { code }, { timeoutMs: 0 });
    if (isError === true) failures.push(`${JSON.stringify(content).slice(0, 2_000)}\n${code}`);
  };
  try {
    if (setup !== "") await run(setup);
    for (let at = 0; at < cases.length; at += BATCH) {
      await run(
        cases
          .slice(at, at + BATCH)
          .map((one, index) => one.code(name, `case${at + index}`))
          .join("\n"),
      );
    }
  } finally {
    await client.close();
    await runner.close();
  }
  return failures;
}
