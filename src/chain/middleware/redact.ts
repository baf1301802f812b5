// Replaces secrets in what travels through a chain: in results, errors, notifications and questions on their way to the
// caller, and in arguments and answers on their way to the upstream.

import { copyContext } from "../../core/cancel.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context, Middleware, Result } from "../../core/handler.ts";
import { choices, refine, strings, type OptionsOf, type ValuesOf } from "../../core/fields.ts";
import { DEFAULT_SHAPES, Redactor } from "../../core/redactor.ts";
import { REDACTED, SHAPES } from "../../core/secret-shapes.ts";
import { MIN_SECRET_LENGTH, redactConnectionError } from "../../core/secrets.ts";
import { define, type DefinedMiddleware } from "../define.ts";
import { matchesGlob } from "../../core/text.ts";
import { McpError, toMcpError } from "../../protocol/errors.ts";

const OPTIONS = {
  in: choices("Where secrets are replaced.", ["results", "arguments"]).or(["results"], "results"),
  detect: choices("What is recognized by its shape.", SHAPES).or(DEFAULT_SHAPES, "tokens, jwts and private-keys"),
  values: refine(strings("Secrets by their value, such as `${API_KEY}`."), (values, place) => {
    if (values.every((value) => value.length >= MIN_SECRET_LENGTH)) return;
    throw place.error(`must have at least ${MIN_SECRET_LENGTH} characters each: shorter ones are in many words`);
  }),
  keys: strings("The names of fields with secrets, such as `*password*`."),
};

/** Options of `redact()`. */
export type RedactOptions = OptionsOf<typeof OPTIONS>;

/**
 * Replaces secrets in results, errors and notifications with `[redacted]`, and in arguments if the options say so.
 *
 * @example
 * redact({ keys: ["password", "*token*"] })
 */
export const redact: DefinedMiddleware<[options?: RedactOptions]> = define({
  name: "redact",
  summary: "Replaces secrets in results, and in arguments.",
  options: OPTIONS,
  keepsLists: true,
  middleware: createRedact,
});

function createRedact(options: ValuesOf<typeof OPTIONS>): Middleware {
  const { in: places, detect: shapes, values = [] } = options;
  const keys = (options.keys ?? []).map((key) => key.toLowerCase());
  const isSecret = (name: string): boolean => keys.some((glob) => matchesGlob(glob, name.toLowerCase()));
  const secrets = values.map((value) => ({ value, reference: REDACTED }));
  const redactor = new Redactor(shapes, secrets, keys.length > 0 ? isSecret : undefined);
  const [inResults, inArguments] = [places.includes("results"), places.includes("arguments")];
  return function redact(request, context, next) {
    const sent = inArguments ? redactor.request(request) : request;
    const ask: Context["ask"] = async (question, options) => {
      const redacted = inResults ? { ...question, params: redactor.protocol(question.params) } : question;
      const answer = await context.ask(redacted, options);
      return inArguments ? (redactor.json(answer) as Result) : answer;
    };
    if (!inResults) return next(sent, copyContext(context, { ask }));
    const notify: Context["notify"] = (notification) => context.notify(redactor.notification(notification));
    return next(sent, copyContext(context, { notify, ask })).then(
      (result) => redactor.protocol(result),
      (error: unknown) => {
        throw redactError(error, redactor);
      },
    );
  };
}

/** The error without secrets. A cause could have them too, so it is left out. */
export function redactError(error: unknown, redactor: Redactor): unknown {
  try {
    if (error instanceof McpError) {
      const [message, data] = [redactor.text(error.message), redactor.json(error.data)];
      return message === error.message && data === error.data ? error : new McpError(error.code, message, data);
    }
    if (!(error instanceof Error)) return error;
    const message = redactor.text(error.message);
    if (message === error.message) return error;
    if (!(error instanceof ConnectionError)) return toMcpError(new Error(message));
    return redactConnectionError(error, (text) => redactor.text(text));
  } catch {
    // The thrown value may be a Proxy whose traps throw.
    return error;
  }
}
