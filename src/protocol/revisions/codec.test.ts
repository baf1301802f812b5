// A message that is encoded and decoded is unchanged, with unknown fields, `_meta`, and ids that JavaScript would write
// differently. Messages are generated from the official schemas, so the test is here and not in jsonrpc/.

import fc from "fast-check";
import { describe } from "vitest";
import { messagesOf } from "../../../test/support/spec/generators.ts";
import { itWithSpec } from "../../../test/support/spec/official-schema.ts";
import { expectSame } from "../../../test/support/spec/codec-walk.ts";
import { decode, encode } from "../../jsonrpc/codec.ts";
import { REVISIONS } from "./index.ts";
import { runs } from "../../../test/support/thoroughness.ts";

const RUNS = runs(20_000);

describe("the codec", () => {
  for (const { name } of REVISIONS) {
    itWithSpec(`the codec writes and reads every message of ${name} back as it was`, () => {
      fc.assert(
        fc.property(messagesOf(name, false), ({ message }) => {
          expectSame(decode(encode(message)), { kind: "message", message });
        }),
        { numRuns: RUNS },
      );
    });
  }
});
