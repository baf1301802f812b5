// Results of evaluations in each language, as a client gets them: the text in the form of the seed, the record, which
// must match the declared schema, and isError.

import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { javascript, lisp, smalltalk } from "../../../src/live/index.ts";
import { hasSbcl } from "../../support/setup/sbcl.ts";
import { LiveFixture, textOf } from "./live-fixture.ts";

interface ResultCase {
  readonly code: string;
  readonly text: string | RegExp;
  readonly isError?: true;
  /** Other arguments of the call. */
  readonly args?: object;
  readonly shows?: object;
}

const TOO_LONG = { timeout: 0.2 };
const TIMEOUT = /^\[TIMEOUT\] Evaluation exceeded 0\.2 seconds\n\n.*\n.*configure-limits/;
const error = { isError: true } as const;

const LANGUAGES: Readonly<Record<"js" | "lisp" | "smalltalk", readonly ResultCase[]>> = {
  js: [
    { code: "1 + 2 + 3", text: "=> 6" },
    { code: "const nothing = 1", text: "; No values" },
    { code: "", text: "; No values" },
    { code: 'console.log("hello"); console.error("err"); ({ r: 1 })', text: "hello\n[stderr] err\n=> { r: 1 }" },
    { code: "const n: number = 4; n", text: "=> 4" },
    { code: "2 + 3", args: { "capture-time": true }, text: /^=> 5\n\n; Timing: \d+ms real/ },
    {
      code: 'console.log("before"); throw new RangeError("boom")',
      text: /^before\n\[ERROR\] RangeError\nboom\n\n\[Backtrace\]\n0: <eval \d+>:1/,
      ...error,
      shows: { status: "error", condition: { type: "RangeError", restarts: [], open: false } },
    },
    { code: "1 +", text: /^\[ERROR\] SyntaxError\n/, ...error },
    { code: "for (;;);", args: TOO_LONG, text: TIMEOUT, ...error, shows: { status: "timeout", step: "interrupt" } },
    {
      code: "process.exit(3)",
      text: /^\[Notice\] The state of session main was lost: .*\(exit code 3\).*\n\[LOST\] /,
      ...error,
      shows: { status: "lost", state: "lost", step: "restart" },
    },
  ],
  lisp: [
    { code: "(+ 1 2 3)", text: "=> 6" },
    { code: "(floor 17 5)", text: "=> 3\n=> 2" },
    { code: "(values)", text: "; No values" },
    { code: "", text: "; No values" },
    { code: '(format t "hello") (format *error-output* "err") :r', text: "hello\n[stderr] err\n=> :R" },
    {
      code: '(warn "careful ~a" 1) :ok',
      text: "[Warning] SIMPLE-WARNING: careful 1\n=> :OK",
    },
    {
      code: "(+ 2 3)",
      args: { "capture-time": true },
      text: /^=> 5\n\n; Timing: \d+ms real, \d+ms run, \d+ms GC, [\d,]+ bytes consed$/,
    },
    {
      code: '(princ "before") (error "custom ~a" :boom)',
      text: /^before\n\[ERROR\] SIMPLE-ERROR\ncustom BOOM/,
      ...error,
      shows: { status: "error", condition: { type: "SIMPLE-ERROR" } },
    },
    {
      code: "(defpackage :rooms (:use :cl)) (in-package :rooms) (defun hall () :here) (hall)",
      text: "=> :HERE\n; The current package is now ROOMS.",
      shows: { package: "ROOMS" },
    },
    { code: "(hall)", text: "=> :HERE", shows: { package: "ROOMS" } },
    {
      code: "(rooms::hall)",
      args: { package: "cl-user" },
      text: /^=> :HERE\b/,
    },
    { code: "(+ 1 2", text: /^\[ERROR\] END-OF-FILE\n/, ...error },
    { code: "(loop)", args: TOO_LONG, text: TIMEOUT, ...error, shows: { status: "timeout", step: "interrupt" } },
    {
      code: "(sb-ext:exit :code 3)",
      text: /^\[Notice\] The state of session main was lost: .*\(exit code 3\); lost definitions: .*hall\n\[LOST\] /,
      ...error,
      shows: { status: "lost", state: "lost", step: "restart" },
    },
    { code: "*package*", text: '=> #<PACKAGE "COMMON-LISP-USER"> [handle 1]' },
    {
      code: '(princ "step 1") (finish-output) (sb-ext:exit :abort t)',
      text: /\nstep 1\n\[LOST\] /,
      ...error,
      shows: { status: "lost", state: "lost" },
    },
    {
      code: '(dotimes (i 50000) (princ ".") (force-output))',
      text: /^\.{5000}\n\[40,000 of 50,000 characters left out here; all are in (live:\/\/session\/main\/output\/\d+); .*\]\n\.{5000}\n=> NIL$/,
      shows: { truncated: { stdout: { chars: 50_000, uri: expect.stringMatching(/^live:/) as string } } },
    },
  ],
  smalltalk: [
    { code: "3 + 4", text: "=> 7" },
    { code: "", text: "; No values" },
    { code: "Transcript show: 'hello'; cr. #r", text: "hello\n=> 'r'" },
    { code: "Nowhere", text: "[Warning] UnknownName: Nowhere is not defined, so it is nil\n=> nil" },
    {
      code: "kept := 5. #(1) do: [:each | each boom]",
      text: /^\[ERROR\] MessageNotUnderstood\n1 does not understand #boom\n\n\[Backtrace\]\n0: .*\n {5}each = 1\n/,
      ...error,
      shows: { status: "error", condition: { type: "MessageNotUnderstood" } },
    },
    { code: "3 +", text: "[ERROR] ParseError\nUnexpected end of the code", ...error },
    {
      code: "[true] whileTrue: []",
      args: TOO_LONG,
      text: TIMEOUT,
      ...error,
      shows: { status: "timeout", step: "interrupt" },
    },
    {
      code: "(Compiler new eval: 'process') exit: 3",
      text: /^\[Notice\] The state of session main was lost: .*\(exit code 3\); lost definitions: kept\n\[LOST\] /,
      ...error,
      shows: { status: "lost", state: "lost", step: "restart" },
    },
  ],
};

const OPEN = { js: () => javascript(), lisp: () => lisp(), smalltalk: () => smalltalk() };

describe.each(["js", "lisp", "smalltalk"] as const)("a result in %s", (language) => {
  const isSkipped = language === "lisp" && !hasSbcl();
  let fixture: LiveFixture | undefined;
  let check: ReturnType<Ajv2020["compile"]>;
  beforeAll(async () => {
    if (isSkipped) return;
    fixture = await LiveFixture.open(OPEN[language](), language);
    const { tools } = await fixture.client.listTools();
    const { outputSchema } = tools.find(({ name }) => name === `evaluate-${language}`) ?? {};
    if (outputSchema === undefined) throw new Error("The tool declares no output schema");
    check = new Ajv2020({ allErrors: true, strict: false }).compile(outputSchema);
  });
  afterAll(() => fixture?.close());

  it.skipIf(isSkipped).each(LANGUAGES[language])(
    "the result of $code",
    async ({ code, args, text, isError = false, shows }) => {
      if (fixture === undefined) throw new Error("The fixture is not open");
      const result = await fixture.answer(code, { ...args });
      expect(result.content).toHaveLength(1);
      if (typeof text === "string") expect(textOf(result)).toBe(text);
      else expect(textOf(result)).toMatch(text);
      expect(result.isError).toBe(isError);
      expect(check(result.structuredContent), JSON.stringify(check.errors)).toBe(true);
      expect(result.structuredContent).toMatchObject({ session: "main", state: "kept", ...shows });
    },
  );
});
