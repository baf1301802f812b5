// The list Servers: a card for each, which says how it is in a word, a shape and a colour.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Minutes, ServerCard, ServerHealth } from "../../../src/console/types.ts";
import { Button } from "../kit/button.tsx";
import { count, duration, plural, shortSpan } from "../kit/format.ts";
import { InertText } from "../kit/inert-text.tsx";
import { Dot, Tag } from "../kit/marks.tsx";
import { Sparkline } from "../kit/sparkline.tsx";
import { restart } from "../palette.tsx";
import { hrefOf } from "../router.ts";
import { colorOf } from "../state.ts";
import { LogDialog } from "./log.tsx";
import { signIn } from "./needs.tsx";

export function Servers(props: { readonly servers: readonly ServerCard[]; readonly minutes: Minutes }): JSX.Element {
  return (
    <>
      <h2 class="home-head" id="servers-head">
        Servers
      </h2>
      <ul class="cards" role="list" aria-labelledby="servers-head">
        {props.servers.map((server) => (
          <Card key={server.name} server={server} calls={props.minutes.calls[server.name] ?? []} />
        ))}
      </ul>
    </>
  );
}

/** How many of the last minutes are counted for "calls/min". */
const RECENT = 5;

function Card({ server, calls }: { readonly server: ServerCard; readonly calls: readonly number[] }): JSX.Element {
  const [hasLog, setHasLog] = useState(false);
  const { name, health, status, live } = server;
  const isDown = health === "failing" || health === "incomplete";
  return (
    <li class={`panel card is-${health}`}>
      <div class="row">
        <HealthDot health={health} />
        <b class="grow cut">
          <a href={hrefOf("traffic", [], { filter: `server:${/[\s",]/.test(name) ? JSON.stringify(name) : name}` })}>
            <InertText text={name} max={60} />
          </a>
        </b>
        {live === undefined ? <Revision revision={status?.revision} /> : <Tag title="A live session">live</Tag>}
      </div>
      <Middle server={server} calls={calls} />
      <div class="soft">{factsOf(server)}</div>
      <div class="row card-foot">
        <span class="soft grow">{timesOf(server)}</span>
        <span class="card-actions">
          <button type="button" class="link" aria-label={`Log of ${name}`} onClick={() => setHasLog(true)}>
            log
          </button>
          {health === "sign-in" || health === "disabled" ? null : (
            <button type="button" class="link" aria-label={`Restart ${name}`} onClick={() => void restart(name)}>
              restart
            </button>
          )}
        </span>
      </div>
      {hasLog ? (
        <LogDialog
          server={name}
          label={`Log of ${name}`}
          text={isDown ? status?.problem : undefined}
          hint={isDown ? status?.hint : undefined}
          onClose={() => setHasLog(false)}
        />
      ) : null}
    </li>
  );
}

/** Unknown until the server has answered, and of one inside this process. */
function Revision({ revision }: { readonly revision: string | undefined }): JSX.Element | null {
  return revision === undefined ? null : <Tag title="The MCP revision that it speaks">{revision}</Tag>;
}

/** A shape for each state, so that they differ without colours. */
function HealthDot({ health }: { readonly health: ServerHealth }): JSX.Element {
  switch (health) {
    case "running":
      return <Dot tone="ok" />;
    case "starting":
      return <Dot tone="accent" shape="pulse" />;
    case "sign-in":
      return <Dot tone="warn" shape="hollow" />;
    case "failing":
    case "incomplete":
      return <Dot tone="bad" shape="bar" />;
    case "idle":
    case "disabled":
      return <Dot tone="idle" shape="hollow" />;
  }
}

function Middle({ server, calls }: { readonly server: ServerCard; readonly calls: readonly number[] }): JSX.Element {
  const { name, health, status } = server;
  switch (health) {
    case "running":
    case "starting": {
      const recent = calls.slice(-RECENT);
      const rate = recent.length === 0 ? 0 : recent.reduce((sum, value) => sum + value, 0) / recent.length;
      return (
        <div class="row card-middle">
          <span class="big">
            {health === "starting" ? "starting" : rate < 10 ? Number(rate.toFixed(1)) : count(Math.round(rate))}
          </span>
          <span class="soft grow">
            {health === "starting" ? "" : "calls/min"}
            {server.calls > 0 ? `, ${count(server.calls)} in all` : ""}
          </span>
          <Sparkline values={calls.slice(-30)} class={colorOf(name)} />
        </div>
      );
    }
    case "sign-in":
      return (
        <div class="row card-middle">
          <span class="grow warn-text">waits for a sign-in</span>
          <Button small kind="go" label={`Sign in to ${name} here`} onClick={() => signIn(name)}>
            Sign in
          </Button>
        </div>
      );
    case "failing":
    case "incomplete":
      return (
        <div class="row card-middle">
          <span class="grow bad two-lines">
            <b>{health === "failing" ? "down" : "incomplete"}</b>{" "}
            <InertText text={status?.reason ?? status?.problem ?? ""} max={200} />
          </span>
        </div>
      );
    case "idle":
      return (
        <div class="row card-middle">
          <span class="big soft">idle</span>
          <span class="soft grow">starts with the first call</span>
        </div>
      );
    case "disabled":
      return (
        <div class="row card-middle">
          <span class="big soft">disabled</span>
          <span class="soft grow">clients do not see it</span>
        </div>
      );
  }
}

/** What it has, and what went wrong. */
function factsOf({ health, status, tools, tokens, isEstimated, errors }: ServerCard): string {
  const isUp = isRunning(health);
  return join([
    tools === undefined ? "" : `${plural(tools, "tool")}${isUp ? "" : ", as last seen"}`,
    tokens === undefined || !isUp ? "" : `${isEstimated === true ? "~" : ""}${thousands(tokens)} tokens`,
    errors > 0 ? plural(errors, "error") : "",
    (status?.restarts ?? 0) > 0 ? plural(status?.restarts ?? 0, "restart") : "",
  ]);
}

function timesOf({ health, status, p50, p95 }: ServerCard): string {
  if (status?.restartInMs !== undefined) return `next try in ${shortSpan(status.restartInMs)}`;
  if (!isRunning(health)) return "";
  return join([p50 === undefined ? "" : `p50 ${duration(p50)}`, p95 === undefined ? "" : `p95 ${duration(p95)}`]);
}

function isRunning(health: ServerHealth): boolean {
  return health === "running" || health === "starting";
}

function join(parts: readonly string[]): string {
  return parts.filter(Boolean).join(" · ");
}

/** 1.8k. */
function thousands(value: number): string {
  return value < 1000 ? String(value) : `${Number((value / 1000).toFixed(1))}k`;
}
