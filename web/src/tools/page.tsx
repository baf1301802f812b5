// The page Tools: all tools, resources and prompts of all servers, and one of them to be called.

import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Catalogue } from "../../../src/console/types.ts";
import { Button } from "../kit/button.tsx";
import { count } from "../kit/format.ts";
import { InertText } from "../kit/inert-text.tsx";
import { inertString } from "../kit/inert.ts";
import { Empty } from "../kit/marks.tsx";
import { hrefOf, place } from "../router.ts";
import { asked } from "./call.ts";
import {
  catalogue,
  counts,
  failure,
  findItem,
  followCatalogue,
  kind,
  kindOf,
  lines,
  query,
  readCatalogue,
  setHidden,
  type Kind,
} from "./catalogue.ts";
import { Detail, keyOf } from "./detail.tsx";
import type { Values } from "./form.tsx";
import { List } from "./list.tsx";
import { QuestionDialog } from "./question.tsx";
import { isObject } from "./schema.ts";
import "./tools.css";

const KINDS: readonly (readonly [Kind, string])[] = [
  ["tools", "Tools"],
  ["resources", "Resources"],
  ["prompts", "Prompts"],
];

export function Page(): JSX.Element {
  useEffect(followCatalogue, []);
  const { path, query: params } = place.value;
  const [server = "", name] = path.length === 1 ? ["", path[0]] : path;
  const wanted = KINDS.find(([one]) => one === params.get("kind"))?.[0];
  const item = name === undefined ? undefined : findItem(server, name, wanted);
  // The item is another object each time that the catalogue is read, which must not change what a person has chosen.
  useEffect(() => {
    if (item !== undefined) kind.value = kindOf(item);
  }, [item === undefined, server, name, wanted]);
  const linked = useMemo(() => argumentsIn(params), [params]);
  const [question] = asked.value;
  return (
    <>
      <div class="page-head">
        <h1>Tools</h1>
        <input
          class="grow search"
          type="search"
          aria-label="Search tools"
          placeholder="Search tools"
          autocomplete="off"
          spellcheck={false}
          value={query.value}
          onInput={(event) => (query.value = event.currentTarget.value)}
        />
        <Sum />
      </div>
      <div class={name === undefined ? "tools-page" : "tools-page has-item"}>
        <div class="panel tools-list">
          <div class="row kinds" role="group" aria-label="Kind">
            {KINDS.map(([one, label]) => (
              <Button small key={one} pressed={kind.value === one} onClick={() => (kind.value = one)}>
                {label} <span class="faint">{catalogue.value === undefined ? "" : count(counts.value[one])}</span>
              </Button>
            ))}
          </div>
          <Items chosen={item} />
          <Problems />
        </div>
        <div class="tools-detail">
          {name === undefined ? null : (
            <a class="link back" href={hrefOf("tools")}>
              ‹ All
            </a>
          )}
          {item === undefined ? (
            <NoItem name={name} />
          ) : (
            <div class="panel">
              <Detail key={`${keyOf(item)} ${params.toString()}`} item={item} linked={linked} />
            </div>
          )}
        </div>
      </div>
      {question === undefined ? null : <QuestionDialog key={question.id} question={question} />}
    </>
  );
}

/** The arguments in a link. Traffic and people write them. */
function argumentsIn(params: URLSearchParams): Values | undefined {
  const text = params.get("args") ?? params.get("arguments");
  if (text === null) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function Sum(): JSX.Element | null {
  const known = catalogue.value;
  if (known === undefined) return null;
  return (
    <span class="soft" title="What the definitions of all tools cost that clients get">
      {known.isEstimated ? "about " : ""}
      {count(known.tokens)} tokens shown to clients
    </span>
  );
}

function Items({ chosen }: { readonly chosen: ReturnType<typeof findItem> }): JSX.Element {
  const known = catalogue.value;
  if (known === undefined) {
    if (failure.value === undefined) return <p class="soft pad">Reading the lists of all servers…</p>;
    return (
      <Empty title="The lists could not be read" action={<Button onClick={readCatalogue}>Try again</Button>}>
        {failure.value}
      </Empty>
    );
  }
  const [, label = ""] = KINDS.find(([one]) => one === kind.value) ?? [];
  if (lines.value.length > 0) return <List chosen={chosen} label={label} />;
  if (query.value.trim() !== "") {
    return (
      <Empty title="Nothing fits" action={<Button onClick={() => (query.value = "")}>Clear the search</Button>}>
        No {label.toLowerCase()} with these words in their name, server or description.
      </Empty>
    );
  }
  return <Empty title={`No ${label.toLowerCase()}`}>{whyNone(known, label.toLowerCase())}</Empty>;
}

function whyNone({ problems, disabled }: Catalogue, what: string): string {
  if (Object.keys(problems).length > 0) return "Some servers could not be asked; see below.";
  return disabled.length > 0 ? "Some servers are hidden; see below." : `None of the servers has ${what}.`;
}

/** Servers whose items are missing: why, and what to do. */
function Problems(): JSX.Element | null {
  const { problems = {}, disabled = [] } = catalogue.value ?? {};
  const entries = Object.entries(problems);
  if (entries.length === 0 && disabled.length === 0) return null;
  return (
    <ul class="problems">
      {entries.map(([server, message]) => (
        <li key={server} class="row">
          <span class="grow cut" title={inertString(message.slice(0, 600))}>
            <b>
              <InertText text={server} max={60} />
            </b>
            : <InertText text={message} max={200} />
          </span>
          <a
            class="link"
            aria-label={`Why ${inertString(server)} is missing`}
            href={hrefOf("home", [], { why: server })}
          >
            Why?
          </a>
        </li>
      ))}
      {disabled.map((server) => (
        <li key={server} class="row">
          <span class="grow">
            <b>
              <InertText text={server} max={100} />
            </b>{" "}
            is hidden from clients, and does not run
          </span>
          <Button small label={`Show ${server} to clients`} onClick={() => setHidden(false, server)}>
            Show to clients
          </Button>
        </li>
      ))}
    </ul>
  );
}

function NoItem({ name }: { readonly name: string | undefined }): JSX.Element {
  if (name !== undefined && catalogue.value !== undefined) {
    return (
      <Empty title="There is no such item">
        No server has <InertText text={name} max={200} />. It may be gone, or its server may be hidden or down.
      </Empty>
    );
  }
  return <Empty title="Choose one in the list">Its form, and what it returns, are shown here.</Empty>;
}
