// What a caller reads of an evaluation, in both languages: the text in the form of the seed, the record beside it,
// which holds the schema that the tool declares, and whether it is an error. How code is stopped is tried elsewhere.

import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { javascript, lisp } from "../../src/live/index.ts";
import { hasSbcl } from "../support/setup/sbcl.ts";
import { Stage, textOf } from "./stage.ts";

interface Row {
  readonly code: string;
  readonly text: string | RegExp;
  readonly isError?: true;
  /** Other arguments of the call. */
  readonly said?: object;
  readonly shows?: object;
}

const TOO_LONG = { timeout: 0.2 };
const TIMEOUT = /^\[TIMEOUT\] Evaluation exceeded 0\.2 seconds\n\n.*\n.*configure-limits/;
const error = { isError: true } as const;

const LANGUAGES: Readonly<Record<"js" | "lisp", readonly Row[]>> = {
  js: [
    { code: "1 + 2 + 3", text: "=> 6" },
    { code: "const nothing = 1", text: "; No values" },
    { code: "", text: "; No values" },
    { code: 'console.log("hello"); console.error("err"); ({ r: 1 })', text: "hello\n[stderr] err\n=> { r: 1 }" },
    { code: "const n: number = 4; n", text: "=> 4" },
    { code: "2 + 3", said: { "capture-time": true }, text: /^=> 5\n\n; Timing: \d+ms real/ },
    {
      code: 'console.log("before"); throw new RangeError("boom")',
      text: /^before\n\[ERROR\] RangeError\nboom\n\n\[Backtrace\]\n0: <eval \d+>:1/,
      ...error,
      shows: { status: "error", stdout: "before\n", values: [], condition: { type: "RangeError", message: "boom" } },
    },
    { code: "1 +", text: /^\[ERROR\] SyntaxError\n/, ...error },
    { code: "for (;;);", said: TOO_LONG, text: TIMEOUT, ...error, shows: { status: "timeout", step: "interrupt" } },
    {
      code: "process.exit(3)",
      text: /^\[Notice\] The state of the session main is lost: .*\(exit code 3\).*\n\[LOST\] /,
      ...error,
      shows: { status: "lost", state: "lost", step: "restart" },
    },
  ],
  lisp: [
    { code: "(+ 1 2 3)", text: "=> 6" },
    { code: "(floor 17 5)", text: "=> 3\n=> 2", shows: { values: ["3", "2"] } },
    { code: "(values)", text: "; No values" },
    { code: "", text: "; No values" },
    { code: '(format t "hello") (format *error-output* "err") :r', text: "hello\n[stderr] err\n=> :R" },
    {
      code: '(warn "careful ~a" 1) :ok',
      text: "[Warning] SIMPLE-WARNING: careful 1\n=> :OK",
      shows: { warnings: [{ type: "SIMPLE-WARNING", message: "careful 1" }] },
    },
    {
      code: "(+ 2 3)",
      said: { "capture-time": true },
      text: /^=> 5\n\n; Timing: \d+ms real, \d+ms run, \d+ms GC, [\d,]+ bytes consed$/,
    },
    {
      code: '(princ "before") (error "custom ~a" :boom)',
      text: /^before\n\[ERROR\] SIMPLE-ERROR\ncustom BOOM/,
      ...error,
      shows: {
        status: "error",
        stdout: "before",
        condition: { type: "SIMPLE-ERROR", message: expect.stringMatching(/^custom BOOM\n/) as string },
      },
    },
    {
      code: "(defpackage :rooms (:use :cl)) (in-package :rooms) (defun hall () :here) (hall)",
      text: "=> :HERE",
      shows: { package: "ROOMS" },
    },
    { code: "(hall)", text: "=> :HERE", shows: { package: "ROOMS" } },
    {
      code: "(rooms::hall)",
      said: { package: "cl-user" },
      text: "=> :HERE",
    },
    { code: "(+ 1 2", text: /^\[ERROR\] END-OF-FILE\n/, ...error },
    { code: "(loop)", said: TOO_LONG, text: TIMEOUT, ...error, shows: { status: "timeout", step: "interrupt" } },
    {
      code: "(sb-ext:exit :code 3)",
      text: /^\[Notice\] The state of the session main is lost: .*\(exit code 3\); defined were: .*hall\n\[LOST\] /,
      ...error,
      shows: { status: "lost", state: "lost", step: "restart" },
    },
    { code: "*package*", text: '=> #<PACKAGE "COMMON-LISP-USER">' },
    {
      code: '(princ "step 1") (finish-output) (sb-ext:exit :abort t)',
      text: /\nstep 1\n\[LOST\] /,
      ...error,
      shows: { status: "lost", state: "lost", stdout: "step 1" },
    },
    {
      code: '(dotimes (i 50000) (princ ".") (force-output))',
      text: /^\.+\n=> NIL$/,
      shows: { stdout: ".".repeat(50_000) },
    },
  ],
};

const OPEN = { js: () => javascript(), lisp: () => lisp() };

describe.each(["js", "lisp"] as const)("an answer in %s", (language) => {
  const isLeftOut = language === "lisp" && !hasSbcl();
  let stage: Stage | undefined;
  let check: ReturnType<Ajv2020["compile"]>;
  beforeAll(async () => {
    if (isLeftOut) return;
    stage = await Stage.open(OPEN[language](), language);
    const { tools } = await stage.client.listTools();
    const { outputSchema } = tools.find(({ name }) => name === `evaluate-${language}`) ?? {};
    if (outputSchema === undefined) throw new Error("It declares no schema");
    // With no more than it declares: a field that is not there was forgotten there.
    check = new Ajv2020({ allErrors: true, strict: false }).compile({ ...outputSchema, additionalProperties: false });
  }, 60_000);
  afterAll(() => stage?.close());

  it.skipIf(isLeftOut).each(LANGUAGES[language])("to $code", async ({ code, said, text, isError = false, shows }) => {
    if (stage === undefined) throw new Error("There is no stage");
    const result = await stage.answer(code, { ...said });
    expect(result.content).toHaveLength(1);
    if (typeof text === "string") expect(textOf(result)).toBe(text);
    else expect(textOf(result)).toMatch(text);
    expect(result.isError).toBe(isError);
    expect(check(result.structuredContent), JSON.stringify(check.errors)).toBe(true);
    expect(result.structuredContent).toMatchObject({ session: "main", state: "kept", ...shows });
  });
});
