// Starts visits through a loopback redirect, sends arbitrary requests to its listener, and checks that it is closed.

import { request } from "node:http";
import { connect } from "node:net";
import { expect } from "vitest";
import { loopbackRedirect, type LoopbackRedirectOptions } from "../../../src/auth/oauth/loopback-redirect.ts";
import type { Redirect } from "../../../src/auth/oauth/types.ts";

export const never = new AbortController().signal;
export const authorize = (state = "s1"): URL => new URL(`https://login.example/authorize?client_id=c&state=${state}`);

export interface RawResponse {
  readonly status: number | undefined;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

/** Sends a request with any headers and method. */
export function send(
  address: string,
  options: { method?: string; headers?: Record<string, string>; path?: string } = {},
): Promise<RawResponse> {
  return new Promise((resolve, reject) => {
    const sent = request(address, { agent: false, ...options }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text: string) => (body += text));
      response.once("end", () => resolve({ status: response.statusCode, headers: response.headers, body }));
    });
    sent.once("error", reject).end();
  });
}

/** Starts a visit; the browser has been opened. */
export async function startVisit(
  options: LoopbackRedirectOptions = {},
  url = authorize(),
  signal = never,
): Promise<{ redirect: Redirect; uri: string; callback: Promise<URL> }> {
  let opened!: () => void;
  const isOpen = new Promise<void>((resolve) => (opened = resolve));
  const redirect = loopbackRedirect({ open: () => opened(), ...options });
  const uri = await redirect.uri;
  const callback = redirect.visit(url, { signal });
  callback.catch(() => undefined);
  await isOpen;
  return { redirect, uri, callback };
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
