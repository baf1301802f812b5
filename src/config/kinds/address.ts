// An end that is an address over HTTP: `url` and `headers`. Which of the dialects it speaks is found out when it is
// first asked something.

import { recordOf, textThat, type Fields } from "../readers.ts";
import { kindOf, type Kind } from "../upstream-kind.ts";
import { wireOf } from "./wire.ts";

const texts = recordOf(
  textThat(
    (given) => /^[\t\x20-\x7e\x80-\xff]*$/.test(given),
    " cannot stand in a header",
    "write it on one line, in Latin letters",
  ),
  'an object of texts, such as {"Authorization": "Bearer ${TOKEN}"}',
);

const headers: typeof texts = (spot) => {
  for (const { name, offset } of spot.members()) {
    if (/^[!#$%&'*+.^_`|~\w-]+$/.test(name)) continue;
    const { problems } = spot.reading;
    problems.error(
      offset,
      `${JSON.stringify(name)} is no name of a header`,
      "it has letters, digits and -, and no spaces",
    );
  }
  return texts(spot);
};

const FIELDS = {
  url: textThat(
    isAddress,
    " is no address over HTTP",
    "write one that begins with https:// or http://, without a name or password in it",
  ),
  headers,
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
