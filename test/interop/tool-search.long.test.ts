// How well words find tools: 42 queries as a model writes them, over the definitions of eight published servers. A query
// is right if one of its tools comes first, and good enough if one is among the first three.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "catenary";
import { afterAll, expect, it } from "vitest";
import { ToolIndex, type ListedTool } from "../../src/tools/search.ts";
import { installPublishedServers, publishedServers } from "./published-servers.ts";

/** A query, and the tools that do what it says. */
const QUERIES: readonly (readonly [query: string, ...tools: string[]])[] = [
  ["read a file", "files.read_text_file"],
  ["open a document", "files.read_text_file", "files.read_file"],
  ["read several files", "files.read_multiple_files"],
  ["find files by name", "files.search_files"],
  ["list a folder", "files.list_directory", "files.list_directory_with_sizes"],
  ["folder sizes", "files.list_directory_with_sizes"],
  ["make a new folder", "files.create_directory"],
  ["rename a file", "files.move_file"],
  ["save text to a file", "files.write_file"],
  ["change lines of a file", "files.edit_file"],
  ["file metadata", "files.get_file_info"],
  ["when was the file modified", "files.get_file_info"],
  ["folder structure as a tree", "files.directory_tree"],
  ["load an image file", "files.read_media_file"],
  ["remember a fact about a person", "memory.add_observations", "memory.create_entities"],
  ["remove entities", "memory.delete_entities"],
  ["link two entities", "memory.create_relations"],
  ["search my knowledge graph", "memory.search_nodes"],
  ["show the whole graph", "memory.read_graph"],
  ["think step by step", "thinking.sequentialthinking"],
  ["add two numbers", "everything.get-sum"],
  ["environment variables", "everything.get-env"],
  ["compress a file", "everything.gzip-file-as-resource"],
  ["go to a website", "browser.browser_navigate", "devtools.navigate_page"],
  ["capture the screen", "browser.browser_take_screenshot", "devtools.take_screenshot"],
  ["press a button on the page", "browser.browser_click", "devtools.click"],
  ["fill in a form", "browser.browser_fill_form", "devtools.fill_form"],
  ["run javascript in the page", "browser.browser_evaluate", "devtools.evaluate_script"],
  ["console logs", "browser.browser_console_messages", "devtools.list_console_messages"],
  ["http requests of the page", "browser.browser_network_requests", "devtools.list_network_requests"],
  ["record a video", "devtools.screencast_start"],
  ["page speed", "devtools.performance_start_trace", "devtools.lighthouse_audit"],
  ["open a bug", "github.create_issue"],
  ["open a pr", "github.create_pull_request"],
  ["comment on an issue", "github.add_issue_comment"],
  ["find repos", "github.search_repositories"],
  ["copy a repository to my account", "github.fork_repository"],
  ["commit history", "github.list_commits"],
  ["did the checks of the pull request pass", "github.get_pull_request_status"],
  ["find people on github", "github.search_users"],
  ["erase a block", "notion.API-delete-a-block"],
  ["create a notion page", "notion.API-post-page"],
];

const folder = mkdtempSync(join(tmpdir(), "search-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function listAll(): Promise<ListedTool[]> {
  const lists = Object.entries(publishedServers(folder)).map(async ([name, { command }]) => {
    const client = await connect(command);
    const { tools } = await client.listTools();
    await client.close();
    return tools.map((tool) => ({ ...tool, name: `${name}.${tool.name}` }));
  });
  return (await Promise.all(lists)).flat();
}

const missing = await installPublishedServers();

it.skipIf(missing !== undefined)(`finds the tool that is meant${missing ?? ""}`, { timeout: 300_000 }, async () => {
  const index = await ToolIndex.of(await listAll());
  const places = QUERIES.map(([query, ...tools]) => {
    const { found } = index.search(query, 50);
    return { query, place: found.findIndex(({ tool }) => tools.includes(tool.name)), first: found[0]?.tool.name };
  });
  const wrong = places.filter(({ place }) => place !== 0);
  const shown = wrong.map(({ query, place, first }) => `${query}: ${place + 1} after ${first}`).join("\n");
  expect(places.length - wrong.length, shown).toBeGreaterThanOrEqual(35);
  expect(places.filter(({ place }) => place >= 0 && place < 3).length, shown).toBe(42);
});
