// Calls the chain of chain.js from the same process.

import { connect } from "catenary";
import { counts, gateway } from "./chain.js";

const client = await connect(gateway);
try {
  for await (const { name, description } of client.tools()) console.log(`Tool ${name}: ${description}`);
  const { content } = await client.callTool("compare", { words: ["tea", "coffee"] });
  for (const { text } of content) console.log(text);
  await client.callTool("erase").catch((error) => console.log(`Refused: ${error.message}`));
  for (const [method, count] of counts) console.log(`${method}: ${count}`);
} finally {
  await client.close();
  await gateway.close();
}
