// The page Home: what needs a person, how busy the gateway is, its servers and its clients.

import type { JSX } from "preact";
import type { ServerCard } from "../../../src/console/types.ts";
import "./home.css";
import { CopyButton } from "../kit/copy.tsx";
import { CONSOLE_CLIENT } from "../kit/format.ts";
import { info, overview, typed, typedLine } from "../state.ts";
import { CallsChart } from "./chart.tsx";
import { Clients } from "./clients.tsx";
import { Needs } from "./needs.tsx";
import { Servers } from "./servers.tsx";

export function Page(): JSX.Element {
  const known = overview.value;
  return (
    <>
      <div class="page-head">
        <h1>Home</h1>
      </div>
      {known === undefined ? (
        <p class="soft" role="status">
          Asking the gateway…
        </p>
      ) : (
        <>
          <div class="home-top">
            <div class="panel">
              <CallsChart minutes={known.minutes} />
            </div>
            <Needs />
          </div>
          {known.servers.length > 0 ? (
            <Servers servers={known.servers} minutes={known.minutes} />
          ) : (
            <>
              <h2 class="home-head">Servers</h2>
              <AddServers title="No servers yet" />
            </>
          )}
          {isGuideOnly(known.servers) ? <AddServers title="Add your servers" /> : null}
          {known.clients.length > 0 ? <Clients clients={known.clients} /> : <h2 class="home-head">Clients</h2>}
          {known.clients.some(({ name }) => name !== CONSOLE_CLIENT) ? null : <NoClients />}
        </>
      )}
    </>
  );
}

/** Whether the gateway serves only what it has without a config: a session and the guide. */
function isGuideOnly(servers: readonly ServerCard[]): boolean {
  const isGuide = ({ name }: ServerCard): boolean => name === "js" || name === "catenary";
  return info.value !== undefined && info.value.config === undefined && servers.length > 0 && servers.every(isGuide);
}

function AddServers({ title }: { readonly title: string }): JSX.Element {
  return (
    <ToDo
      title={title}
      commands={["catenary import", "catenary add files npx -y @modelcontextprotocol/server-filesystem ."]}
    >
      The first command copies the servers that your clients have already, the second adds one. Then start the gateway
      again; if it was started with <code>--reload</code>, it takes them over by itself.
    </ToDo>
  );
}

function NoClients(): JSX.Element {
  const url = info.value?.url ?? "";
  return (
    <ToDo
      title="No client has called yet"
      commands={["claude-code", "cursor"].map((client) => `catenary install ${client} --url ${url}`)}
    >
      Connect the agent that you use. The command writes this gateway into its config;{" "}
      <code>{typed("catenary install --help")}</code> lists the clients that it knows. For any other client, copy the
      entry that the gateway printed at its start: it has the address <code>{url}</code> and the token.
    </ToDo>
  );
}

function ToDo(props: {
  readonly title: string;
  readonly commands: readonly string[];
  readonly children: unknown;
}): JSX.Element {
  return (
    <div class="panel todo">
      <b>{props.title}</b>
      <p class="soft">{props.children as JSX.Element}</p>
      {props.commands.map(typedLine).map((command) => (
        <div key={command} class="row">
          <pre class="grow">{command}</pre>
          <CopyButton text={command} />
        </div>
      ))}
    </div>
  );
}
