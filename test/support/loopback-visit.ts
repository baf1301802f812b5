// Visits to an authorization server by way of a loopback redirect: one that is under way, requests that knock at its
// listener with whatever headers and method, and whether the listener is gone.

import { request } from "node:http";
import { connect } from "node:net";
import { expect } from "vitest";
import { loopbackRedirect, type LoopbackRedirectOptions } from "../../src/auth/oauth/loopback-redirect.ts";
import type { Redirect } from "../../src/auth/oauth/redirect.ts";

export const never = new AbortController().signal;
export const authorize = (state = "s1"): URL => new URL(`https://login.example/authorize?client_id=c&state=${state}`);

export interface Answer {
  readonly status: number | undefined;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

/** A request as it is, with whatever headers and method. */
export function send(
  address: string,
  options: { method?: string; headers?: Record<string, string>; path?: string } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(address, { agent: false, ...options }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text: string) => (body += text));
      response.once("end", () => resolve({ status: response.statusCode, headers: response.headers, body }));
    });
    sent.once("error", reject).end();
  });
}

/** A visit that is under way: the browser has been sent off. */
export async function sentOff(
  options: LoopbackRedirectOptions = {},
  url = authorize(),
  signal = never,
): Promise<{ redirect: Redirect; uri: string; back: Promise<URL> }> {
  let opened!: () => void;
  const away = new Promise<void>((resolve) => (opened = resolve));
  const redirect = loopbackRedirect({ open: () => opened(), ...options });
  const uri = await redirect.uri;
  const back = redirect.visit(url, { signal });
  back.catch(() => undefined);
  await away;
  return { redirect, uri, back };
}

export const isClosed = (uri: string): Promise<boolean> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(uri);
    const socket = connect(Number(port), hostname.replaceAll(/[[\]]/g, ""));
    socket.once("connect", () => {
      socket.destroy();
      resolve(false);
    });
    socket.once("error", () => resolve(true));
  });

export const closes = (uri: string): Promise<void> => expect.poll(() => isClosed(uri)).toBe(true);
