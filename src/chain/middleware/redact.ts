// Replaces secrets in what travels through a chain: in results, errors, notifications and questions on their way to the
// caller, and in arguments and answers on their way to the upstream.

import { copyContext } from "../../core/cancel.ts";
import type { Context, Middleware, Result } from "../../core/handler.ts";
import { OPTION_SCHEMAS, OptionReader, type OptionsHelp } from "../../core/options.ts";
import { DEFAULT_SHAPES, MIN_VALUE_LENGTH, Redactor, SHAPES, type SecretShape } from "../../protocol/redactor.ts";
import { matchesGlob } from "./filter.ts";
import { trusted } from "../../protocol/compose.ts";

/** Options of `redact()`. */
export interface RedactOptions {
  /** Where secrets are replaced: on the way to the caller, on the way to the upstream. Default: `["results"]`. */
  readonly in?: readonly ("results" | "arguments")[] | undefined;
  /** What is recognized by its shape. Default: `["tokens", "jwts", "private-keys"]`. */
  readonly detect?: readonly SecretShape[] | undefined;
  /** Secrets by their value, of at least 4 characters. */
  readonly values?: readonly string[] | undefined;
  /** The names of fields whose values are replaced; `*` matches any characters, and case does not matter. */
  readonly keys?: readonly string[] | undefined;
}

const PLACES = ["results", "arguments"] as const;

export const REDACT: OptionsHelp<RedactOptions> = {
  summary: "Replaces secrets in results, and in arguments.",
  options: {
    in: { type: "array", items: { enum: PLACES }, description: "Where secrets are replaced. Default: results." },
    detect: {
      type: "array",
      items: { enum: SHAPES },
      description: "What is recognized by its shape. Default: tokens, jwts and private-keys.",
    },
    values: { ...OPTION_SCHEMAS.strings, description: "Secrets by their value, such as ${API_KEY}." },
    keys: { ...OPTION_SCHEMAS.strings, description: "The names of fields with secrets, such as *password*." },
  },
};

/**
 * Replaces secrets in results, errors and notifications with `[redacted]`, and in arguments if the options say so.
 *
 * @example
 * redact({ keys: ["password", "*token*"] })
 */
export function redact(options: RedactOptions = {}): Middleware {
  const read = new OptionReader("redact", options, Object.keys(REDACT.options));
  const places = choices(read, "in", PLACES) ?? ["results"];
  const shapes = choices(read, "detect", SHAPES) ?? DEFAULT_SHAPES;
  const values = read.strings("values") ?? [];
  if (values.some((value) => value.length < MIN_VALUE_LENGTH)) {
    throw read.error(
      "values",
      `must have at least ${MIN_VALUE_LENGTH} characters each: shorter ones are in many words`,
    );
  }
  const keys = (read.strings("keys") ?? []).map((key) => key.toLowerCase());
  const isSecret = (name: string): boolean => keys.some((glob) => matchesGlob(glob, name.toLowerCase()));
  const redactor = new Redactor(shapes, values, keys.length > 0 ? isSecret : undefined);
  const [inResults, inArguments] = [places.includes("results"), places.includes("arguments")];
  return trusted(function redact(request, context, next) {
    const sent = inArguments ? redactor.request(request) : request;
    const ask: Context["ask"] = async (question, options) => {
      const asked = inResults ? { ...question, params: redactor.protocol(question.params) } : question;
      const answer = await context.ask(asked, options);
      return inArguments ? (redactor.json(answer) as Result) : answer;
    };
    if (!inResults) return next(sent, copyContext(context, { ask }));
    const notify: Context["notify"] = (notification) => context.notify(redactor.notification(notification));
    return next(sent, copyContext(context, { notify, ask })).then(
      (result) => redactor.protocol(result),
      (error: unknown) => {
        throw redactor.error(error);
      },
    );
  });
}

function choices(read: OptionReader, name: string, known: readonly string[]): readonly string[] | undefined {
  const given = read.strings(name);
  if (given === undefined || (given.length > 0 && given.every((one) => known.includes(one)))) return given;
  throw read.error(name, `must be an array of ${known.map((one) => JSON.stringify(one)).join(", ")}`);
}
