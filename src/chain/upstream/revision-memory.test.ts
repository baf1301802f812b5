// The revision of a program is used again after a restart, and negotiated again if it is no longer right.

import { expect, it } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import { NEWEST, NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { RevisionMemory } from "./create-pool.ts";
import type { UpstreamConnection } from "./supervisor.ts";

const OLD = NEWEST_SESSION.name;
const NEW = NEWEST.name;

const connectionOf = (name: string): UpstreamConnection =>
  ({ connection: { revision: { name } } }) as unknown as UpstreamConnection;

/** A program that speaks this revision only; `requested` are the revisions that were requested. */
function programWith(name: string): {
  requested: (string | undefined)[];
  open: (revision: string | undefined) => Promise<UpstreamConnection>;
} {
  const requested: (string | undefined)[] = [];
  const open = async (revision: string | undefined): Promise<UpstreamConnection> => {
    requested.push(revision);
    if (revision !== undefined && revision !== name) throw new ConnectionError("protocol", `speaks ${name}`);
    return connectionOf(name);
  };
  return { requested, open };
}

it("the revision of a program is remembered for each style that callers prefer", async () => {
  const memory = new RevisionMemory(undefined, true);
  const first = programWith(OLD);
  await memory.open("session", first.open);
  await memory.open("session", first.open);
  await memory.open("stateless", first.open);
  expect(first.requested).toEqual([undefined, OLD, undefined]);
});

it("the revision of a program is negotiated again if the program no longer speaks it, but not if it only died", async () => {
  const memory = new RevisionMemory(undefined, true);
  await memory.open("session", programWith(OLD).open);
  const other = programWith(NEW);
  expect((await memory.open("session", other.open)).connection.revision.name).toBe(NEW);
  expect(other.requested).toEqual([OLD, undefined]);
  const dying = async (): Promise<UpstreamConnection> => {
    throw new ConnectionError("closed", "was ended");
  };
  await expect(memory.open("session", dying)).rejects.toThrow("was ended");
});

it("the revision of a program is that of the options if there is one, and is not remembered for addresses", async () => {
  const named = programWith(NEW);
  await expect(new RevisionMemory("another", true).open("session", named.open)).rejects.toThrow(`speaks ${NEW}`);
  const address = programWith(NEW);
  const memory = new RevisionMemory(undefined, false);
  await memory.open("session", address.open);
  await memory.open("session", address.open);
  expect(address.requested).toEqual([undefined, undefined]);
});
