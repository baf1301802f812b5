// What a visit must be before its message counts: a body of JSON, an answer that the caller can take, a caller who is
// somebody. Each thing that is not so is refused with a status and one sentence.

import { AuthRefusal, type Authenticator, type Credentials, type Identity } from "../../core/authenticator.ts";
import type { Caller } from "../../core/context.ts";
import { textOf } from "../../core/text.ts";
import { decode } from "../../jsonrpc/codec.ts";
import type { ErrorKind } from "../../protocol/errors.ts";
import { isRequest } from "../../jsonrpc/message.ts";
import { Refusal, type RequestHeaders, type Visit } from "./visit.ts";
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

// Every runtime has this one, and it never is stdout.
// oxlint-disable-next-line no-console
const onStderr: Report = (error, doing) => console.error(`catenary: ${doing}: ${textOf(error)}`);

/** A report that fails is itself not worth an answer that is never given. */
export function reporter(report: Report = onStderr): Report {
  return (error, doing) => {
    try {
      report(error, doing);
    } catch {
      // Whoever wanted to know has had the chance.
    }
  };
}

/** How long an authenticator may take. */
const AUTH_MS = 10_000;

/** An identity, or an error; whatever else an authenticator may give. */
export async function identify(auth: Authenticator, credentials: Credentials, report: Report): Promise<Identity> {
  let identity: Identity | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${AUTH_MS} ms`)), AUTH_MS);
  });
  try {
    identity = checked(await Promise.race([auth.authenticate(credentials), late]));
  } catch (error) {
    if (error instanceof AuthRefusal) throw error;
    report(error, "authentication is out of order");
    throw new Refusal(503, "Authentication is out of order; try again later", { "retry-after": "5" });
  } finally {
    clearTimeout(timer);
  }
  if (identity !== undefined) return identity;
  throw new AuthRefusal(401, "The caller has not proved who it is", "Bearer");
}

/** Programs without types may give anything. Nothing is nobody; scopes in one text would be found by their parts. */
function checked(identity: Partial<Identity> | undefined | null): Identity | undefined {
  const { principal, scopes } = identity ?? {};
  if (typeof principal !== "string" || principal === "") return undefined;
  if (scopes !== undefined && !(Array.isArray(scopes) && scopes.every((scope) => typeof scope === "string"))) {
    throw new TypeError("the scopes of an identity must be a list of strings");
  }
  return identity as Identity;
}

/** The headers of a refusal by an authenticator, whose texts are a user's own. */
export function challengeHeaders(challenge: unknown): Readonly<Record<string, string>> {
  const sayable = typeof challenge === "string" && /^[\t\x20-\x7e]+$/.test(challenge);
  return { "www-authenticate": sayable ? challenge : "Bearer" };
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
export function refuse(way: WayBack, error: unknown, report: Report): void {
  if (error instanceof Refusal) {
    answer(way, error.status, error.message, error.headers, error.kind);
  } else if (error instanceof AuthRefusal) {
    const status = [400, 401, 403].includes(error.status) ? error.status : 401;
    answer(way, status, error.message, challengeHeaders(error.challenge));
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
