// What a visit must be before its message counts: a body of JSON, an answer that the caller can take, a caller who is
// somebody. Each thing that is not so is refused with a status and one sentence.

import { AuthRefusal, type Authenticator, type Credentials, type Identity } from "../../core/authenticator.ts";
import type { Caller } from "../../core/context.ts";
import { textOf } from "../../core/text.ts";
import { decode } from "../../jsonrpc/codec.ts";
import type { ErrorKind } from "../../protocol/errors.ts";
import { isRequest } from "../../jsonrpc/message.ts";
import { Refusal, type RequestHeaders, type Visit } from "../../transport/http/visit.ts";
import type { HttpLimits } from "./options.ts";
import { refusalBody } from "./status.ts";
import type { Taken } from "./taken.ts";
import type { WayBack } from "./way-back.ts";

/** Refuses what cannot be answered in one of these types. No header means that any will do. */
export function checkAccept({ headers }: Visit, ...types: readonly string[]): void {
  const { accept } = headers;
  if (accept === undefined || types.every((type) => accepts(accept, type))) return;
  throw new Refusal(406, `The header Accept must list ${types.join(" and ")}; it says ${JSON.stringify(accept)}`);
}

function accepts(accept: string, type: string): boolean {
  if (accept.includes(type) && !accept.includes(";")) return true;
  const family = `${type.slice(0, type.indexOf("/"))}/*`;
  return accept.split(",").some((range) => {
    const [name = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    return (name === type || name === family || name === "*/*") && !parameters.some((one) => /^q=0(\.0*)?$/.test(one));
  });
}

/** A body of another type could come from any web page, which may post plain text without asking first. */
function checkContentType({ headers }: Visit): void {
  const type = headers["content-type"];
  if (type === "application/json") return;
  if (type?.split(";", 1)[0]?.trim().toLowerCase() === "application/json") return;
  const said = type === undefined ? "is missing" : `says ${JSON.stringify(type)}`;
  throw new Refusal(415, `The header Content-Type must say application/json; it ${said}`);
}

/** Undefined where what came is no message, and has been answered so. */
export async function readMessage(way: WayBack, limits: HttpLimits): Promise<Taken | undefined> {
  const { visit } = way;
  checkContentType(visit);
  const decoded = decode(await visit.body(limits.messageBytes, limits.bodyMs), limits);
  if (decoded.kind === "message") {
    // Whatever is refused from here on is refused under its id.
    if (isRequest(decoded.message)) way.id = decoded.message.id;
    return decoded;
  }
  if (decoded.kind === "batch") {
    return { kind: "batch", items: decoded.items.filter((item) => !("fault" in item) || item.answerable) };
  }
  // Of a broken answer the id is one of ours: it must not come back as if it were the caller's.
  way.whole(decoded.answerable ? decoded.fault : { ...decoded.fault, id: null }, 400);
  return undefined;
}

/** Told of what no caller is shown. */
export type Report = (error: unknown, doing: string) => void;

export const onStderr: Report = (error, doing) => console.error(`catenary: ${doing}: ${textOf(error)}`);

/** An identity, or an error; whatever else an authenticator may give. */
export async function identify(auth: Authenticator, credentials: Credentials, report: Report): Promise<Identity> {
  let identity: Identity | undefined;
  try {
    identity = await auth.authenticate(credentials);
  } catch (error) {
    if (error instanceof AuthRefusal) throw error;
    report(error, "authentication is out of order");
    throw new Refusal(503, "Authentication is out of order; try again later", { "retry-after": "5" });
  }
  // Programs without types may give anything, and nothing is nobody.
  if (typeof identity?.principal === "string" && identity.principal !== "") return identity;
  throw new AuthRefusal(401, "The caller has not proved who it is", "Bearer");
}

const SECRETS = ["authorization", "proxy-authorization", "cookie"];

/** What a handler may know of the caller: never what it proved itself with. */
export function callerOf({ headers }: Visit, identity: Identity | undefined): Partial<Caller> {
  const shown = withoutSecrets(headers);
  if (identity === undefined) return { headers: shown };
  const { principal, scopes, claims } = identity;
  return {
    headers: shown,
    principal,
    ...(scopes === undefined ? undefined : { scopes }),
    ...(claims === undefined ? undefined : { claims }),
  };
}

function withoutSecrets(headers: RequestHeaders): Readonly<Record<string, string>> {
  const all = headers as Readonly<Record<string, string>>;
  if (!SECRETS.some((name) => name in all)) return all;
  return Object.fromEntries(Object.entries(all).filter(([name]) => !SECRETS.includes(name)));
}

/** Whatever ended a visit, as its answer. */
export function refuse(way: WayBack, error: unknown, report: Report = onStderr): void {
  if (error instanceof Refusal) {
    answer(way, error.status, error.message, error.headers, error.kind);
  } else if (error instanceof AuthRefusal) {
    answer(way, error.status, error.message, { "www-authenticate": error.challenge });
  } else {
    report(error, "a request could not be answered");
    answer(way, 500, "Internal error", {});
  }
}

function answer(
  way: WayBack,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>>,
  kind?: ErrorKind,
): void {
  way.headers = { ...way.headers, ...headers };
  way.whole({ ...refusalBody(status, message, kind), id: way.id }, status);
}
