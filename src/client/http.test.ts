// Addresses that are none, and what an error shows of them.

import { expect, test } from "vitest";
import type { OpenOptions } from "../dialogue/connect.ts";
import { openAddress } from "./http.ts";

test.each([
  ["ftp://somebody:secret@end.test/mcp?token=secret", "ftp://...@end.test/mcp: it is neither http nor https"],
  ["http//somebody:secret@end.test", "http//...@end.test: it is no URL"],
  ["http://some body:secret@[bad/", "http://...@[bad/: it is no URL"],
  ["http://end.test:99999/mcp?token=secret", "http://end.test:99999/mcp: it is no URL"],
  ["http://somebody:secret@end.test/mcp", "end.test: a name and a password do not belong into an address"],
])("%s is refused, and nothing secret of it is shown", async (address, words) => {
  const error = await openAddress(address, {}, {} as OpenOptions).catch((failure: unknown) => failure as Error);
  expect(error).toMatchObject({ name: "ConnectionError", kind: "refused", mayHaveRun: false });
  expect((error as Error).message).toContain(`Cannot connect to ${words}`);
  expect((error as Error).message).not.toContain("secret");
});
