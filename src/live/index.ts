// catenary/live: live sessions, as servers. Each call of `javascript` or `lisp` is a server of its own, with its own
// sessions; nothing is started before the first evaluation. They run whatever they are given: this is no sandbox.

import { jsLanguage } from "./js/index.ts";
import { lispLanguage } from "./lisp/index.ts";
import { liveServer, type Live } from "./live.ts";
import { checkJavaScript, checkLisp, type JavaScriptOptions, type LispOptions } from "./options.ts";

export type { Evaluation } from "./evaluation.ts";
export type { JavaScriptPermission } from "./js/index.ts";
export type { Live, LiveOptions } from "./live.ts";
export type { JavaScriptOptions, LispOptions } from "./options.ts";
export type { Limits } from "./runtime.ts";

/**
 * Sessions in JavaScript and TypeScript, in Node processes of their own.
 *
 * @example
 * await serve(javascript());
 */
export function javascript(options: JavaScriptOptions = {}): Live {
  checkJavaScript(options);
  return liveServer(jsLanguage(options), options);
}

/**
 * Sessions in Common Lisp, on the SBCL of this machine.
 *
 * @example
 * await serve(chain(log()).to({ lisp: lisp(), js: javascript() }));
 */
export function lisp(options: LispOptions = {}): Live {
  checkLisp(options);
  return liveServer(lispLanguage(options), options);
}
