// An end that is an address over HTTP: `url` and `headers`. Which of the dialects it speaks is found out when it is
// first asked something.

import { anyText, recordOf, textThat, type Fields } from "../shape.ts";
import { kindOf, type Kind } from "./kind.ts";
import { wireOf } from "./wire.ts";

const FIELDS = {
  url: textThat(
    isAddress,
    " is no address over HTTP",
    "write one that begins with https:// or http://, without a name or password in it",
  ),
  headers: recordOf(anyText, 'an object of texts, such as {"Authorization": "Bearer ${TOKEN}"}'),
  type: wireOf("http"),
  transport: wireOf("http"),
} as const satisfies Fields;

function isAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return (protocol === "http:" || protocol === "https:") && username === "" && password === "";
}

export const address: Kind = kindOf(FIELDS, {
  key: "url",
  purpose: "an address over HTTP",
  found({ url, headers }) {
    if (url === undefined) return undefined;
    const options = headers === undefined ? {} : { headers };
    return { kind: "url", about: { url, ...options }, reach: async () => ({ target: url, options }) };
  },
});
