// A token issuer as a resource server sees it: documents on a local port, and keys to sign tokens with. Documents can be
// changed while it runs, and every request is recorded.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";

export type Page = string | ((request: IncomingMessage, response: ServerResponse) => void);

export interface Signer {
  readonly jwk: JWK;
  /** Signs a token with these claims. Undefined claims are left out. */
  sign(claims: Record<string, unknown>, header?: Record<string, unknown>): Promise<string>;
}

export interface Issuer {
  readonly url: string;
  /** By path: a JSON string, or a function that answers. */
  readonly pages: Map<string, Page>;
  /** The paths of all requests. */
  readonly requests: string[];
  close(): Promise<void>;
}

export async function openIssuer(): Promise<Issuer> {
  const pages = new Map<string, Page>();
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    requests.push(path);
    const page = pages.get(path);
    if (typeof page === "function") page(request, response);
    else response.writeHead(page === undefined ? 404 : 200, { "content-type": "application/json" }).end(page);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    pages,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export async function newSigner(alg = "ES256", kid: string | undefined = alg): Promise<Signer> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const named = kid === "" ? {} : { kid };
  return {
    jwk: { ...(await exportJWK(publicKey)), ...named },
    sign: (claims, header) => new SignJWT(claims).setProtectedHeader({ alg, ...named, ...header }).sign(privateKey),
  };
}
