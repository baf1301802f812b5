// Common Lisp as a live language: the runtime that starts SBCL, the tools, and what the model is told of them. What all
// languages have in common is in the rooms above; what happens inside the image is in the .lisp files beside this one.

import type { Language } from "../tool.ts";
import { RUNNING_TOOLS, EVALUATE, LOOKING_TOOLS, TELOS_TOOLS } from "./tools.ts";
import { lispRuntime, type LispRuntimeOptions } from "./runtime.ts";

export type LispGuestOptions = LispRuntimeOptions;

const INSTRUCTIONS =
  "Persistent Common Lisp sessions on SBCL. Evaluate with evaluate-lisp: definitions, variables and the current " +
  "package stay for later calls, and errors come back with a backtrace and end nothing. Look things up with " +
  "describe-symbol and apropos-search before using them, and check code with validate-syntax and compile-form before " +
  "saving it. Tools that work in a session take its name, `session`; different names are separate images. get-usage-guide tells more.";

export function lispLanguage(options: LispGuestOptions = {}): Language {
  return {
    runtime: lispRuntime(options),
    title: "Common Lisp",
    instructions: INSTRUCTIONS,
    evaluate: EVALUATE,
    tools: [...LOOKING_TOOLS, ...RUNNING_TOOLS, ...TELOS_TOOLS],
    guide: GUIDE,
  };
}

// What get-usage-guide says of a Lisp session: markdown, for a model that has not used one. It stands apart from the
// tools' own descriptions because it tells how they are used together, and is sent only when it is asked for.

export const GUIDE: string = `# Common Lisp sessions

A session is a running SBCL image. What you define in one call is there in the next; an error ends the call and not the
session. Treat it as a workbench: try a small piece, look at it, go on.

## Quick start

1. \`evaluate-lisp\` with \`(defun sq (x) (* x x))\` answers \`=> SQ\`.
2. \`evaluate-lisp\` with \`(sq 5)\` answers \`=> 25\`.
3. \`describe-symbol\` with \`sq\` tells its arguments, \`who-calls\` who uses it.
4. \`list-definitions\` lists what the session has got so far.

## Tools

| tool | what it is for | when |
|---|---|---|
| evaluate-lisp | run code, keep the state | always |
| time-execution | run once, with time and allocation | before and after making something faster |
| validate-syntax | can this text be read? | before you write a file |
| match-paren | the other end of a parenthesis | when validate-syntax complains |
| compile-form | errors, type conflicts and undefined names, without running | before you evaluate something risky |
| macroexpand-form | what a macro makes | when a macro surprises you |
| describe-symbol | kind, arguments, value, documentation, source | before calling what you do not know |
| apropos-search | names that contain a text | when you half remember a name |
| who-calls, who-references | where a function or a variable is used | before you change it |
| class-info, find-methods | slots, superclasses, methods | when you work with CLOS |
| list-definitions | what evaluations and load-file defined, anywhere in a form; which systems were loaded | when you come back to a session |
| describe-last-error, get-backtrace | the last error, with restarts and frames | after [ERROR] |
| load-file, load-system, quickload | code from disk, ASDF, Quicklisp | to bring in a project |
| list-local-systems, describe-system, system-dependencies, find-system-file, quicklisp-search | what there is to load | before loading |
| profile-code, allocation-profile, profile-functions | where time and memory go | when something is slow |
| memory-report | what the image holds | when memory grows |
| telos-* | why a program is as it is | where the library telos is loaded |
| list-sessions, interrupt-session, reset-session, close-session, configure-limits | sessions and their limits | see below |

## Workflow

- **In small steps.** Define one function, call it with an easy case and with an edge case, then write the next.
- **Check before you save.** \`validate-syntax\` first, then \`compile-form\`, then write the file, then \`load-file\`.
- **Look before you use.** \`apropos-search\`, then \`describe-symbol\`; for a library, \`describe-system\` first.
- **Types.** Declare them where they matter and read the warnings of \`compile-form\`: a type conflict is told there.

## Patterns

- Several forms in one call run in order; each is read when those before it have run, so \`(defpackage :app ...)\`,
  \`(in-package :app)\` and what follows may stand together.
- The package stays: after \`(in-package :app)\`, or with \`package\` given to evaluate-lisp, later calls and tools work
  in APP. Given to another tool, \`package\` is for that call alone.
- \`*\`, \`**\` and \`***\` hold the last values, \`(values)\` answers \`; No values\`.
- Print with \`format t\`; output comes back before the values, and as progress while the code runs.
- Long values are cut in length and depth; ask for the part that you need.

## What not to do

- Do not read from the terminal: there is none, and \`(read-line)\` fails at once.
- Do not use \`#.\`: it is refused. Evaluate the form, then use its value.
- Do not call \`(sb-ext:exit)\`: it ends the session and all its state.
- Do not turn off interrupts for long: such code is not stopped at once. Its evaluator is replaced and the state kept,
  or, where that fails, the session is ended.
- Do not redefine symbols of COMMON-LISP; make a package of your own and shadow them.
- This is no sandbox: the code may do whatever the user of this machine may do.

## Error recovery

- \`[ERROR] TYPE\` with a message and a \`[Backtrace]\`: mend the code and evaluate it again; all definitions are kept.
- Of several forms, the message names the one that failed; those before it have run, so send only the rest again.
- A \`defstruct\` or \`defconstant\` that is changed is an error with a restart CONTINUE. Take it so:
  \`(handler-bind ((error #'continue)) (eval '(defstruct foo a b)))\`. Restarts are listed by \`describe-last-error\`.
- \`[TIMEOUT]\`: the evaluation was stopped. The answer says whether the state was kept. Give \`timeout\` (seconds) for a
  call that needs more, or raise it with \`configure-limits\`.
- Stack or heap exhaustion is an error as any other; drop what you no longer need, then go on.
- When a session is lost (it exited, or could not be stopped otherwise), the next answer says so, and names what was
  defined. Define it again, best from a file with \`load-file\`.
- Names in a muddle? \`reset-session\` gives a truly fresh image.

## Persistence and sessions

- All state lives in the image until it is reset, closed, idle for too long, or the server ends. It is not on disk:
  keep what matters in files.
- Tools that work in a session take its name, \`session\`; without it, \`main\` is meant. A new name makes a new image,
  apart from all others. Evaluations of one session run one after the other; different sessions run at the same time.
- \`list-sessions\` shows them, \`interrupt-session\` stops what runs and keeps the state, \`close-session\` ends one.
`;
