// The secrets of a config, for what shows the messages of its callers and servers: `--trace` and the console. Apart from
// redaction.ts, which hides what one upstream knows, and is loaded with every config.

import { DEFAULT_SHAPES, Redactor } from "../core/redactor.ts";
import { REDACTED } from "../core/secret-shapes.ts";
import { isSecretField, type Secret } from "../core/secrets.ts";
import { isObject } from "../core/values.ts";
import type { Config } from "./load.ts";
import { withUrlParts } from "./redaction.ts";

/** Values of variables and inputs, the tokens of callers, and what the config has under the name of a secret. */
export function secretsOf({ upstreams, listen, callers }: Config): Secret[] {
  const tokens = [listen.token ?? [], ...[...callers.values()].map(({ token }) => token)].flat();
  const named = [...upstreams.values()].flatMap(({ settings }) => secretStrings(settings, false));
  return [
    ...[...upstreams.values()].flatMap(({ secrets }) => secrets),
    ...[...tokens, ...named].map((value) => ({ value, reference: REDACTED })),
  ];
}

/** The strings in a part of the config whose field, or a field around it, has the name of a secret. */
function secretStrings(value: unknown, isSecret: boolean): string[] {
  if (typeof value === "string") return isSecret ? [value] : [];
  if (Array.isArray(value)) return value.flatMap((item) => secretStrings(item, isSecret));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, inner]) => secretStrings(inner, isSecret || isSecretField(name, inner)));
}

/** Also hides the values of fields with the name of a secret, and codes of a sign-in, in the queries of URLs. */
class MessageRedactor extends Redactor {
  override text(text: string): string {
    return super
      .text(text)
      .replace(QUERY_FIELD, (whole, start: string, name: string, value: string) =>
        name === "code" || isSecretField(name, value) ? `${start}${REDACTED}` : whole,
      );
  }
}

const QUERY_FIELD = /([?&]([\w.-]{1,64})=)([^&#\s"'`\\]+)/g;

/** So many are remembered when a config is read again and again. Each takes time for each text. */
const MAX_SECRETS = 1_000;

/**
 * Returns what hides secrets in messages that a person looks at: the values of the config, fields with the name of a
 * secret, and well-known tokens. It is made anew when the config is another.
 */
export function messageRedactor(configOf: () => Config): () => Redactor {
  let made: { readonly config: Config; readonly redactor: Redactor } | undefined;
  // Messages that are kept may have secrets that the config no longer has.
  const all = new Map<string, Secret>();
  const remember = (config: Config): void => {
    const current = withUrlParts(secretsOf(config));
    for (const secret of current) {
      // What is in the config now stays longest.
      all.delete(secret.value);
      all.set(secret.value, secret);
    }
    for (const value of [...all.keys()].slice(0, -Math.max(MAX_SECRETS, current.length))) all.delete(value);
  };
  remember(configOf());
  return () => {
    const config = configOf();
    if (made?.config !== config) {
      remember(config);
      made = { config, redactor: new MessageRedactor(DEFAULT_SHAPES, [...all.values()], isSecretField, REDACTED) };
    }
    return made.redactor;
  };
}
