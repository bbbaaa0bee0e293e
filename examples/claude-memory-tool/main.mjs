// @ts-check
// Claude's memory tool with its files kept by Cairn. Claude is a stand-in that needs no key and follows a script: leave
// `fetch` out for the real one.
//
//   CAIRN_URL=http://127.0.0.1:8080 CAIRN_KEY=… npm start
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import { betaMemoryTool } from '@anthropic-ai/sdk/helpers/beta/memory';
import { BetaLocalFilesystemMemoryTool } from '@anthropic-ai/sdk/tools/memory/node';
import { cairnMemoryFiles } from 'cairn-memory/claude-memory-tool';
import { createClient } from 'cairn-memory/client';

const key = process.env.CAIRN_KEY;
const client = createClient({ url: process.env.CAIRN_URL ?? 'http://127.0.0.1:8080', ...(key && { key }) });
const say = (/** @type {string} */ what) => console.log(`ok: ${what}`);
const files = cairnMemoryFiles({ client, userId: 'ana' });

// ── A run of the tool ─────────────────────────────────────────────────────────────────────────────────────────────────

/** @typedef {import('@anthropic-ai/sdk/resources/beta').BetaMemoryTool20250818Command} Command */

/** @type {any[]} */
const requests = [];
/** @type {Command[]} */
const script = [
  { command: 'view', path: '/memories' },
  { command: 'create', path: '/memories/people/ana.md', file_text: 'Ana waters the ferns.\nShe plays the cello.' },
  { command: 'create', path: '/memories/people/ana.md', file_text: 'Again.' },
  { command: 'view', path: '/memories/people/ana.md' },
];
const claude = new Anthropic({
  apiKey: 'none',
  fetch: async (_, init) => {
    requests.push(JSON.parse(String(init?.body)));
    const input = script.shift();
    const content = input
      ? [{ type: 'tool_use', id: `toolu_${requests.length}`, name: 'memory', input }]
      : [{ type: 'text', text: 'She does.' }];
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: 'msg', type: 'message', role: 'assistant', model: 'script', content, usage };
    return Response.json({ ...message, stop_reason: input ? 'tool_use' : 'end_turn', stop_sequence: null });
  },
});
await claude.beta.messages.toolRunner({
  model: 'script',
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Who plays the cello?' }],
  tools: [betaMemoryTool(files)],
});
assert.deepEqual(requests[0].tools, [{ type: 'memory_20250818', name: 'memory' }]);
const results = requests.slice(1).map(({ messages }) => messages.at(-1).content[0]);
assert.deepEqual(
  results.map(({ is_error = false }) => is_error),
  [false, false, true, false],
);
assert.match(JSON.stringify(results[2].content), /File \/memories\/people\/ana\.md already exists/);
assert.match(JSON.stringify(results[3].content), /1\\tAna waters the ferns\.\\n {5}2\\tShe plays the cello\./);
const { matches } = await client.queryMemories({ query: 'Who plays the cello?', user_id: 'ana' });
assert.match(matches[0]?.content ?? '', /She plays the cello/);
say('a run of the tool');

// ── The same commands give the same answers as files on a disk ────────────────────────────────────────────────────────

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memory-tool-'));
const disk = await BetaLocalFilesystemMemoryTool.init(folder);
const cairn = cairnMemoryFiles({ client, userId: 'ben' });
/** @type {(handlers: typeof disk | typeof cairn, command: Command) => Promise<string>} */
const answer = async (handlers, command) => {
  try {
    const run = /** @type {(command: any) => Promise<string>} */ (handlers[command.command].bind(handlers));
    return await run(command);
  } catch (error) {
    return `error: ${error instanceof Error ? error.message : String(error)}`;
  }
};
const [note, other] = ['/memories/a.b/n*te.txt', '/memories/a.b/other.txt'];
/** @type {Command[]} */
const commands = [
  { command: 'view', path: note },
  { command: 'create', path: note, file_text: 'one\ntwo\nthree\ntwo\nfive\n' },
  { command: 'create', path: note, file_text: 'again' },
  { command: 'view', path: note },
  { command: 'view', path: note, view_range: [2, 3] },
  { command: 'view', path: note, view_range: [4, -1] },
  { command: 'str_replace', path: note, old_str: 'two', new_str: '2' },
  { command: 'str_replace', path: note, old_str: 'four', new_str: '4' },
  { command: 'str_replace', path: note, old_str: 'three', new_str: '$& 3' },
  { command: 'str_replace', path: '/memories/a.b', old_str: 'three', new_str: '3' },
  { command: 'str_replace', path: '/memories/none', old_str: 'three', new_str: '3' },
  { command: 'insert', path: note, insert_line: 0, insert_text: 'zero\n' },
  { command: 'insert', path: note, insert_line: 7, insert_text: 'last' },
  { command: 'insert', path: note, insert_line: 9, insert_text: 'too far' },
  { command: 'insert', path: '/memories/none', insert_line: 0, insert_text: 'x' },
  { command: 'view', path: note },
  { command: 'create', path: other, file_text: '' },
  { command: 'view', path: other },
  { command: 'rename', old_path: note, new_path: other },
  { command: 'rename', old_path: note, new_path: '/memories/moved.txt' },
  { command: 'view', path: '/memories/moved.txt' },
  { command: 'view', path: note },
  { command: 'rename', old_path: '/memories/a.b', new_path: '/memories/c' },
  { command: 'view', path: '/memories/c/other.txt' },
  { command: 'rename', old_path: '/memories/none', new_path: '/memories/d' },
  { command: 'rename', old_path: '/memories', new_path: '/memories/d' },
  { command: 'delete', path: '/memories/c' },
  { command: 'delete', path: '/memories/c' },
  { command: 'delete', path: '/memories/moved.txt' },
  { command: 'delete', path: '/memories' },
  { command: 'view', path: '/memories/../etc/passwd' },
  { command: 'view', path: '/etc/passwd' },
];
for (const command of commands) {
  assert.equal(await answer(cairn, command), await answer(disk, command), JSON.stringify(command));
}
fs.rmSync(folder, { recursive: true });
say('the same answers as files on a disk');

await cairn.create({ path: '/memories/a/b/c/deep.txt', file_text: 'x'.repeat(2_048) });
await cairn.create({ path: '/memories/top.txt', file_text: 'four' });
await cairn.create({ path: '/memories/.hidden', file_text: 'h' });
assert.deepEqual((await cairn.view({ path: '/memories' })).split('\n').slice(1), [
  '2.0K\t/memories',
  '2.0K\t/memories/a',
  '2.0K\t/memories/a/b',
  '4B\t/memories/top.txt',
]);
assert.match(await cairn.view({ path: '/memories/a/b/c' }), /2\.0K\t\/memories\/a\/b\/c\/deep\.txt$/);
assert.match(await files.view({ path: '/memories' }), /\/memories\/people\/ana\.md$/);
say('folders');
