// What a program spoke is asked for again, and found out anew where it no longer speaks it.

import { describe, expect, it } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import { NEWEST, NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { Spoken } from "./spoken.ts";
import type { Life } from "./supervisor.ts";

const OLD = NEWEST_SESSION.name;
const NEW = NEWEST.name;

const life = (name: string): Life => ({ opened: { revision: { name } } }) as unknown as Life;

/** Opens an end that speaks just this; `asked` are the revisions that were asked for. */
function endOf(name: string): { asked: (string | undefined)[]; open: (revision: string | undefined) => Promise<Life> } {
  const asked: (string | undefined)[] = [];
  const open = async (revision: string | undefined): Promise<Life> => {
    asked.push(revision);
    if (revision !== undefined && revision !== name) throw new ConnectionError("protocol", `speaks ${name}`);
    return life(name);
  };
  return { asked, open };
}

describe("what a program spoke", () => {
  it("is remembered for each style that callers prefer", async () => {
    const spoken = new Spoken(undefined, true);
    const first = endOf(OLD);
    await spoken.opening("session", first.open);
    await spoken.opening("session", first.open);
    await spoken.opening("stateless", first.open);
    expect(first.asked).toEqual([undefined, OLD, undefined]);
  });

  it("is found out anew where it is no longer true, and not where the program only died", async () => {
    const spoken = new Spoken(undefined, true);
    await spoken.opening("session", endOf(OLD).open);
    const other = endOf(NEW);
    expect((await spoken.opening("session", other.open)).opened.revision.name).toBe(NEW);
    expect(other.asked).toEqual([OLD, undefined]);
    const dying = async (): Promise<Life> => {
      throw new ConnectionError("closed", "was ended");
    };
    await expect(spoken.opening("session", dying)).rejects.toThrow("was ended");
  });

  it("is what a person has said, and nothing else; addresses are not remembered here", async () => {
    const named = endOf(NEW);
    await expect(new Spoken("another", true).opening("session", named.open)).rejects.toThrow(`speaks ${NEW}`);
    const address = endOf(NEW);
    const spoken = new Spoken(undefined, false);
    await spoken.opening("session", address.open);
    await spoken.opening("session", address.open);
    expect(address.asked).toEqual([undefined, undefined]);
  });
});
