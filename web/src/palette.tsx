// The palette on Ctrl-K: pages, servers, tools, recent calls and actions, found by typing and chosen by keys.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { CallPage, Catalogue } from "../../src/console/types.ts";
import { get, isSignedOut, post, reasonOf } from "./api.ts";
import { Dialog } from "./kit/dialog.tsx";
import { InertText } from "./kit/inert-text.tsx";
import { areKeysShown } from "./keys.tsx";
import { go, hrefOf } from "./router.ts";
import { catalogueVersion, overview, say } from "./state.ts";
import { switchTheme } from "./theme.ts";

export const isPaletteOpen = signal(false);

interface Entry {
  readonly text: string;
  /** What it is. */
  readonly about: string;
  readonly run: () => void;
}

const PLACES: readonly Entry[] = (["home", "traffic", "tools", "live", "chain"] as const).map((page) => ({
  text: `${page.slice(0, 1).toUpperCase()}${page.slice(1)}`,
  about: "page",
  run: () => go(hrefOf(page)),
}));

const MAX_SHOWN = 30;

/** Opens the palette on Ctrl-K or Command-K, also from within a field. */
export function usePaletteKey(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey) return;
      event.preventDefault();
      isPaletteOpen.value = !isPaletteOpen.value;
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

export function Palette(): JSX.Element | null {
  return isPaletteOpen.value ? <OpenPalette /> : null;
}

function OpenPalette(): JSX.Element {
  const [query, setQuery] = useState("");
  const [chosen, setChosen] = useState(0);
  const { entries: late, isReading } = useLateEntries();
  const found = useMemo(() => search([...PLACES, ...actions(), ...late], query), [query, late]);
  const close = (): void => {
    isPaletteOpen.value = false;
  };
  const run = (entry: Entry | undefined): void => {
    if (entry === undefined) return;
    close();
    entry.run();
  };
  const onKey = (event: KeyboardEvent): void => {
    const moves: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
    const move = moves[event.key];
    if (move !== undefined) setChosen(Math.max(0, Math.min(found.length - 1, chosen + move)));
    else if (event.key === "Enter") run(found[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog class="palette" label="Go to anything" onClose={close}>
      <input
        type="text"
        role="combobox"
        aria-label="Go to anything"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found.length === 0 ? undefined : `palette-${chosen}`}
        placeholder="A page, server, tool, call or action"
        autocomplete="off"
        spellcheck={false}
        value={query}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={onKey}
      />
      <ul id="palette-list" role="listbox" aria-label="Found">
        {found.map((entry, index) => (
          <li
            key={`${entry.about} ${entry.text}`}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === chosen}
            ref={index === chosen ? (element) => element?.scrollIntoView({ block: "nearest" }) : null}
            onClick={() => run(entry)}
          >
            <span class="grow cut">
              <InertText text={entry.text} />
            </span>
            <span class="about">
              <InertText text={entry.about} />
            </span>
          </li>
        ))}
      </ul>
      {isReading || found.length === 0 ? (
        <p class="faint palette-none">{isReading ? "Reading the lists of all servers…" : "Nothing has that name."}</p>
      ) : null}
    </Dialog>
  );
}

function actions(): Entry[] {
  const servers = overview.value?.servers ?? [];
  return [
    { text: "Switch between light and dark", about: "action", run: switchTheme },
    { text: "Show the keys", about: "action", run: () => (areKeysShown.value = true) },
    { text: "Show errors", about: "action", run: () => go(hrefOf("traffic", [], { filter: "status:error" })) },
    ...servers.map(({ name }) => ({
      text: name,
      about: "server, its calls",
      run: () => go(hrefOf("traffic", [], { filter: `server:${name}` })),
    })),
    ...servers.map(({ name }) => ({ text: `Restart ${name}`, about: "action", run: () => void restart(name) })),
    { text: "Log out", about: "action", run: () => void logOut() },
  ];
}

/** The next request finds that there is no access. */
async function logOut(): Promise<void> {
  await post("logout").catch(() => undefined);
  isSignedOut.value = true;
}

/** Starts a server anew, and says how it went. */
export async function restart(server: string): Promise<void> {
  try {
    await post("restart", { server });
    say(`Restarting ${server}.`);
  } catch (error) {
    say(reasonOf(error), true);
  }
}

/** Tools and recent calls, read when the palette opens; tools again when servers that are slow have listed theirs. */
function useLateEntries(): { readonly entries: readonly Entry[]; readonly isReading: boolean } {
  const [tools, setTools] = useState<readonly Entry[]>();
  const [calls, setCalls] = useState<readonly Entry[]>([]);
  const version = catalogueVersion.value;
  useEffect(() => {
    const stop = new AbortController();
    get<Catalogue>("catalogue", {}, stop.signal).then(
      ({ items }) => {
        const found = items.filter(({ kind }) => kind === "tools");
        setTools(
          found.map(({ name, server = "" }) => ({
            text: name,
            about: server === "" ? "tool" : `tool of ${server}`,
            run: () => go(hrefOf("tools", [server, name])),
          })),
        );
      },
      () => stop.signal.aborted || setTools((known) => known ?? []),
    );
    return () => stop.abort();
  }, [version]);
  useEffect(() => {
    get<CallPage>("calls", { limit: 30 }).then(
      ({ calls }) =>
        setCalls(
          calls.map((row) => ({
            text: row.name ?? row.method,
            about: `call ${row.id}, ${row.status}`,
            run: () => go(hrefOf("traffic", [row.id])),
          })),
        ),
      () => undefined,
    );
  }, []);
  // Together, so that Enter does not take a call in the place of a tool that comes a moment later.
  const entries = useMemo(() => (tools === undefined ? [] : [...tools, ...calls]), [tools, calls]);
  return { entries, isReading: tools === undefined };
}

/** Those that contain all the words, with those whose text begins with the first word first. */
function search(entries: readonly Entry[], query: string): readonly Entry[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const scored = entries.flatMap((entry) => {
    const text = entry.text.toLowerCase();
    const all = `${text} ${entry.about.toLowerCase()}`;
    if (!words.every((word) => all.includes(word))) return [];
    const [first = ""] = words;
    return [{ entry, score: text.startsWith(first) ? 0 : text.includes(first) ? 1 : 2 }];
  });
  const sorted = scored.toSorted((a, b) => a.score - b.score);
  return sorted.slice(0, MAX_SHOWN).map(({ entry }) => entry);
}
