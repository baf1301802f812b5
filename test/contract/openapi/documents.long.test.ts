// OpenAPI documents of real APIs, with more than 100 operations each, from packages of npm: every operation becomes a
// tool whose schema can be checked, and every tool can be called.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect, type Client } from "catenary";
import { openapi } from "catenary/openapi";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { installPackages } from "../../support/install-packages.ts";

const FOLDER = fileURLToPath(new URL("documents", import.meta.url));
const reason = await installPackages(FOLDER);
if (reason !== undefined && process.env["CI"] === "true") throw new Error(reason);

type Schema = { readonly [key: string]: unknown };

/** A value that fits a simple schema. */
function sample(schema: Schema, root: Schema, depth = 0): unknown {
  const { type, enum: choices, $ref, properties = {}, required = [], items, anyOf, oneOf, allOf, minItems } = schema;
  if (typeof $ref === "string") {
    return sample((root["$defs"] as Record<string, Schema>)[$ref.replace("#/$defs/", "")] ?? {}, root, depth + 1);
  }
  if (Array.isArray(choices)) return choices[0];
  const [first] = [anyOf, oneOf, allOf].flatMap((list) => (Array.isArray(list) ? (list as Schema[]) : []));
  if (first !== undefined && type === undefined) return sample(first, root, depth + 1);
  switch (Array.isArray(type) ? type[0] : type) {
    case "integer":
    case "number":
      return Math.max(1, Number(schema["minimum"] ?? 1));
    case "boolean":
      return true;
    case "array":
      return Array.from({ length: Number(minItems ?? 0) }, () => sample(items as Schema, root, depth + 1));
    case "object":
      return Object.fromEntries(
        (required as string[]).map((name) => [name, sample((properties as Record<string, Schema>)[name] ?? {}, root)]),
      );
    default:
      return schema["format"] === "uuid"
        ? "8cbb43fe-4cdf-4991-8352-c461779cec02"
        : "x".repeat(Number(schema["minLength"] ?? 1));
  }
}

describe.skipIf(reason !== undefined).each([
  { name: "Directus", file: "@directus/specs/dist/openapi.json", count: 134 },
  { name: "STAPI", file: "@readme/oas-examples/3.0/yaml/star-trek.yaml", count: 120 },
])("$name", ({ file, count }) => {
  const got: string[] = [];
  let http: Server;
  let server: ReturnType<typeof openapi>;
  let client: Client;

  beforeAll(async () => {
    http = createServer((request, response) => {
      got.push(`${request.method} ${request.url?.split("?")[0]}`);
      response.setHeader("content-type", "application/json").end("{}");
    });
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    const baseUrl = `http://127.0.0.1:${(http.address() as AddressInfo).port}/api`;
    server = openapi({ document: join(FOLDER, "node_modules", file), baseUrl });
    client = await connect(server);
  });

  afterAll(async () => {
    await client.close();
    await server.close();
    http.closeAllConnections();
    http.close();
  });

  it("a published OpenAPI document has a tool for each operation, with a name that models accept, and can call each", async () => {
    const names = new Set<string>();
    for await (const { name, inputSchema } of client.tools()) {
      expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      names.add(name);
      const args = sample(inputSchema, inputSchema) as Record<string, unknown>;
      const { content, isError } = await client.callTool(name, args);
      expect([name, isError, isError === true ? content : []]).toEqual([name, false, []]);
    }
    expect(names.size).toBe(count);
    expect(got).toHaveLength(count);
    expect(got.every((line) => /^[A-Z]+ \/api\//.test(line))).toBe(true);
  });
});
