// Every client reads the list of tools before its first call, so the list must stay small.

import { expect, it } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { javascript, lisp } from "../../../src/live/index.ts";

it("the lists of tools of JavaScript and Common Lisp have less than 20 kB together", async () => {
  const sizes = await Promise.all(
    [javascript(), lisp()].map(async (server) => {
      const client = await connect(server);
      const { tools } = await client.listTools();
      await client.close();
      await server.close();
      return JSON.stringify({ tools }).length;
    }),
  );
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(20_000);
});
