// The table Clients.

import type { JSX } from "preact";
import type { ClientCard } from "../../../src/console/types.ts";
import { ago, count, minute, whoText } from "../kit/format.ts";
import { InertText } from "../kit/inert-text.tsx";
import { Dot } from "../kit/marks.tsx";
import { hrefOf } from "../router.ts";
import { now } from "../state.ts";

export function Clients({ clients }: { readonly clients: readonly ClientCard[] }): JSX.Element {
  return (
    <>
      <h2 class="home-head" id="clients-head">
        Clients
      </h2>
      <div class="panel clients">
        <table aria-labelledby="clients-head">
          <thead>
            <tr>
              <th scope="col">Client</th>
              <th scope="col" class="wide-only">
                Revision
              </th>
              <th scope="col" class="wide-only">
                Since
              </th>
              <th scope="col" class="num">
                Calls
              </th>
              <th scope="col" class="num">
                Errors
              </th>
              <th scope="col">Last</th>
            </tr>
          </thead>
          <tbody>
            {clients.map((client) => (
              <Line key={client.key} client={client} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Line({ client }: { readonly client: ClientCard }): JSX.Element {
  const { name, version, principal, revision, since, calls, errors, last, lastAt, isConnected } = client;
  const who = whoText(name, principal ?? "");
  const parts = who === name ? [name, version, principal === undefined ? "" : `(${principal})`] : [who];
  const shown = parts.filter(Boolean).join(" ");
  return (
    <tr>
      <td>
        <a class="row client-name" href={hrefOf("traffic", [], { filter: `client:${JSON.stringify(name)}` })}>
          <Dot tone={isConnected ? "ok" : "idle"} shape={isConnected ? "full" : "hollow"} />
          <span class="cut">
            <InertText text={shown} max={80} />
            <span class="unseen">{isConnected ? ", connected" : ", not connected"}</span>
          </span>
        </a>
      </td>
      <td class="wide-only mono">{revision}</td>
      <td class="wide-only num-left">{minute(since)}</td>
      <td class="num">{count(calls)}</td>
      <td class={errors > 0 ? "num bad" : "num"}>{count(errors)}</td>
      <td class="mono last">
        <InertText text={last} max={80} />
        <span class="faint">, {ago(lastAt, now.value)}</span>
      </td>
    </tr>
  );
}
