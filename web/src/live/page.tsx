// The page Live: the sessions of all languages, and of one of them the transcript, the textbox, what is defined, its
// checkpoints, and the inspector. What an agent evaluates appears while it runs.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { LiveSession } from "../../../src/console/types.ts";
import { Button } from "../kit/button.tsx";
import { CopyButton } from "../kit/copy.tsx";
import { ago, plural, shortSpan, whoText } from "../kit/format.ts";
import { InertText } from "../kit/inert-text.tsx";
import { inertString } from "../kit/inert.ts";
import { Dot, Empty, Tag } from "../kit/marks.tsx";
import { hrefOf } from "../router.ts";
import { live, now, typed } from "../state.ts";
import { AskName, AskReset } from "./ask.tsx";
import { Inspector } from "./inspector.tsx";
import { Prompt } from "./prompt.tsx";
import { Checkpoints, Definitions } from "./side.tsx";
import { can, chosen, followLive, interrupt, problem, server, servers, session } from "./store.ts";
import { Transcript } from "./transcript.tsx";
import "./live.css";

export function Page(): JSX.Element | null {
  useEffect(followLive, []);
  if (servers.value === undefined && live.value.length === 0) {
    return problem.value === undefined ? null : <Empty title="The sessions cannot be read">{problem.value}</Empty>;
  }
  if (servers.value?.length === 0) return <NoServers />;
  return (
    <div class="live">
      <Head />
      <Sessions />
      {problem.value === undefined ? (
        <div class="split">
          <div class="panel session">
            {session.value === undefined ? <NotStarted /> : <Transcript />}
            <Prompt />
          </div>
          <div class="panel side">
            <Inspector />
            <Definitions />
            <Checkpoints />
          </div>
        </div>
      ) : (
        <Empty
          title="This session cannot be shown"
          action={
            <a class="link" href={hrefOf("live")}>
              Show the sessions there are
            </a>
          }
        >
          <InertText text={problem.value} />
        </Empty>
      )}
    </div>
  );
}

function Head(): JSX.Element {
  const shown = session.value;
  const [asks, setAsks] = useState<"reset" | "save">();
  const close = (): void => setAsks(undefined);
  return (
    <div class="page-head">
      <h1>Live</h1>
      {shown === undefined ? null : <Tag>{titleOf(shown)}</Tag>}
      <span class="soft grow">{shown === undefined ? null : stateOf(shown)}</span>
      {shown !== undefined && can("interrupt") ? (
        <Button small disabled={shown.state !== "busy" && shown.state !== "starting"} onClick={interrupt}>
          Interrupt
        </Button>
      ) : null}
      {shown !== undefined && can("save") ? (
        <Button small disabled={shown.state === "stopped"} onClick={() => setAsks("save")}>
          Checkpoint
        </Button>
      ) : null}
      {shown !== undefined && can("reset") ? (
        <Button small disabled={shown.state === "stopped"} onClick={() => setAsks("reset")}>
          Reset
        </Button>
      ) : null}
      {shown !== undefined && asks === "reset" ? <AskReset title={titleOf(shown)} onClose={close} /> : null}
      {shown !== undefined && asks === "save" ? <AskName name={shown.name} onClose={close} /> : null}
    </div>
  );
}

function titleOf({ server: name, name: own, owner }: LiveSession): string {
  return inertString(
    [name, own, ...(owner === undefined || owner === "bearer of the token" ? [] : [owner])].join(" · "),
  );
}

function stateOf({ state, busy, version, waiting }: LiveSession): string {
  const queue = waiting === 0 ? "" : `, ${waiting} waiting`;
  const client = inertString(whoText(busy?.client ?? ""));
  const since = busy === undefined ? "" : `, ${shortSpan(now.value - busy.since)}`;
  const doing =
    client === ""
      ? `busy${busy === undefined ? "" : ` with ${busy.op}`}${since}`
      : `${client} ${client === "you" ? "are" : "is"} evaluating${since}`;
  const text = {
    stopped: "no process; the next evaluation starts one",
    idle: "idle",
    starting: "starting",
    busy: doing,
  };
  return [version, `${text[state]}${queue}`].filter(Boolean).join(" · ");
}

const DOTS = {
  stopped: { tone: "idle", shape: "hollow" },
  idle: { tone: "ok", shape: "full" },
  starting: { tone: "accent", shape: "pulse" },
  busy: { tone: "accent", shape: "pulse" },
} as const;

/** The sessions, and a link to start another. */
function Sessions(): JSX.Element {
  const at = chosen.value;
  const unstarted = "server" in at;
  return (
    <ul class="sessions" aria-label="Sessions">
      {live.value.map((one) => {
        const { id, state, users, memoryMb, usedAt } = one;
        const isShown = "id" in at && at.id === id;
        return (
          <li key={id}>
            <a href={hrefOf("live", [id])} {...(isShown && { "aria-current": "true" as const })}>
              <span class="row">
                <Dot {...DOTS[state]} />
                <b class="cut">{titleOf(one)}</b>
                <span class="unseen">{state}</span>
              </span>
              <span class="soft cut">
                {[
                  usersOf(users),
                  memoryMb === undefined ? "" : `${memoryMb} MB`,
                  state === "busy" || state === "starting" ? state : ago(usedAt, now.value),
                ]
                  .filter(Boolean)
                  .join(" · ")}
              </span>
            </a>
          </li>
        );
      })}
      {(servers.value ?? []).map(({ name, title }) => (
        <li key={`new ${name}`}>
          <a
            class="new"
            href={hrefOf("live", ["new"], { server: name, name: freeName(name) })}
            {...(unstarted && at.server === name && { "aria-current": "true" as const })}
          >
            <span>+ New session</span>
            <span class="soft cut">{name === title ? title : `${title} · ${inertString(name)}`}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

function usersOf([first, ...others]: readonly string[]): string {
  if (first === undefined) return "no client yet";
  const name = inertString(whoText(first)).slice(0, 30);
  return others.length === 0 ? name : `${name} +${others.length}`;
}

/** `main`, or the first `session-2` that is free. */
function freeName(serverName: string): string {
  const taken = new Set(live.value.flatMap(({ server: of, name }) => (of === serverName ? [name] : [])));
  if (!taken.has("main")) return "main";
  let number = 2;
  while (taken.has(`session-${number}`)) number += 1;
  return `session-${number}`;
}

function NotStarted(): JSX.Element {
  const at = chosen.value;
  const { title = "" } = server.value ?? {};
  const count = live.value.length;
  return (
    <Empty title={count === 0 ? "No session was used so far" : "This session has not started"}>
      What you evaluate starts the {title} session <code>{"name" in at ? at.name : ""}</code>
      {count === 0
        ? ", and what agents evaluate appears here while it runs."
        : ` beside the ${plural(count, "session")} there are.`}
    </Empty>
  );
}

const CONFIG = `{ "mcpServers": { "js": { "live": "js" }, "lisp": { "live": "lisp" }, "st": { "live": "smalltalk" } } }`;

function NoServers(): JSX.Element {
  return (
    <>
      <div class="page-head">
        <h1>Live</h1>
      </div>
      <div class="panel">
        <Empty title="This gateway has no live sessions">
          <p>
            A live session is a process in which agents evaluate code, and you with them: JavaScript, Common Lisp or
            Smalltalk. Add one to the config, or start with <code>{typed("catenary up --live js")}</code>.
          </p>
          <pre class="config">{CONFIG}</pre>
          <CopyButton text={CONFIG} />
        </Empty>
      </div>
    </>
  );
}
