// The options of `openapi()`, for code and for configs. No error quotes a header or a credential.

import {
  boolean,
  count,
  expecting,
  field,
  msOrZero,
  required,
  secretMap,
  strings,
  text,
  type OptionsOf,
} from "../core/fields.ts";
import { isObject } from "../core/values.ts";

export const OPENAPI = {
  document: required(
    "",
    field(
      "The document: the path of a file, a URL, or an object. OpenAPI 3.0 or 3.1, JSON or YAML.",
      undefined,
      "the path of a file, a URL or an object",
      (value): value is string | Readonly<Record<string, unknown>> =>
        (typeof value === "string" && value !== "") || isObject(value),
    ),
  ),
  baseUrl: field(
    "Where the API is. Default: the first server of the document.",
    { type: "string" },
    "a URL that begins with https:// or http://, without a user name or a query",
    isBaseUrl,
  ),
  name: text("The name of the server. Default: the title of the document is its title."),
  include: expecting(
    'an array of patterns, such as ["GET /pets*"]',
    strings(
      "The operations that become tools: patterns of tool names (`list_*`), of a method and path (`GET /pets/*`), or of a tag (`tag:store`). Default: all.",
    ),
  ),
  exclude: expecting(
    'an array of patterns, such as ["DELETE *"]',
    strings("Operations that do not become tools, even if `include` has them."),
  ),
  headers: secretMap("Headers to send with every HTTP request. Callers cannot change them."),
  auth: secretMap(
    "The credentials by the names of the document's security schemes: a token, a key, or for basic authentication user:password. Sent only with operations that ask for them.",
  ),
  outputSchemas: boolean(
    "Whether tools have the schemas of responses. A response that does not fit is an error then.",
  ).or(false),
  timeoutMs: msOrZero("Milliseconds after which a request fails; 0: never.", "bounded").or(30_000),
  maxResponseBytes: count("How many bytes a response of the API may have.").or(1_000_000),
};

/** Options of `openapi()`. */
export type OpenApiOptions = OptionsOf<typeof OPENAPI>;

function isBaseUrl(text: unknown): text is string {
  if (typeof text !== "string" || !/^https?:\/\//i.test(text) || !URL.canParse(text)) return false;
  const { username, password, search, hash } = new URL(text);
  return `${username}${password}${search}${hash}` === "";
}
