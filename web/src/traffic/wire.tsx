// The messages of a call as they were sent: between the client and the gateway in the client's revision, and between the
// gateway and the upstream in the upstream's; heads of HTTP; what the upstream wrote to stderr at that time.

import type { JSX } from "preact";
import type { CallDetail, HttpHead, WireMessage } from "../../../src/console/types.ts";
import { clock, duration } from "../kit/format.ts";
import { InertText } from "../kit/inert-text.tsx";
import { Json } from "../kit/json.tsx";
import { Empty, Tag } from "../kit/marks.tsx";

export function Wire({ detail }: { readonly detail: CallDetail }): JSX.Element {
  const { wire, stderr, row, dropped } = detail;
  if (wire.length === 0 && stderr.length === 0) {
    return <Empty title="No messages">They are kept while the console is on, for the last calls.</Empty>;
  }
  return (
    <div class="wire">
      {dropped.includes("wire") ? <p class="soft">Some messages are no longer kept, or are too long.</p> : null}
      <ul>
        {wire.map((message, index) => (
          <Message key={index} message={message} start={row.at} />
        ))}
      </ul>
      {stderr.length > 0 ? (
        <>
          <h2>What it wrote to stderr around that time</h2>
          <ul class="stderr mono">
            {stderr.map((line, index) => (
              <li key={index}>
                <span class="faint">{clock(Date.parse(line.time))}</span> <InertText text={line.message} max={500} />
              </li>
            ))}
          </ul>
        </>
      ) : null}
    </div>
  );
}

function Message({ message, start }: { readonly message: WireMessage; readonly start: number }): JSX.Element {
  const { side, server, sender, at, revision, http } = message;
  const other = side === "client" ? "client" : (server ?? "server");
  const isToGateway = (side === "client") === (sender === "client");
  return (
    <li class={`message is-${side}`}>
      <div class="row message-head">
        <b class="grow">{isToGateway ? `${other} → gateway` : `gateway → ${other}`}</b>
        {revision === undefined ? null : <Tag>{revision}</Tag>}
        <span class="num faint">+{duration(Math.max(0, at - start))}</span>
      </div>
      {http === undefined ? null : <Head http={http} />}
      {message.message === undefined ? null : <Json value={message.message} open={1} />}
    </li>
  );
}

function Head({ http }: { readonly http: HttpHead }): JSX.Element {
  return (
    <details class="http mono">
      <summary>
        <InertText text={http.line} max={300} />
      </summary>
      {Object.entries(http.headers).map(([name, value]) => (
        <div key={name}>
          <span class="json-key">
            <InertText text={name} max={100} />
          </span>
          : <InertText text={value} max={500} />
        </div>
      ))}
    </details>
  );
}
