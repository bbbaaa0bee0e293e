// @ts-check
// An agent of Mastra that remembers: a processor recalls and captures, and tools. The model is a stand-in that needs no
// key and follows a script: put a real one in its place.
//
//   CAIRN_URL=http://127.0.0.1:8080 CAIRN_KEY=… npm start
import assert from 'node:assert/strict';
import { Agent } from '@mastra/core/agent';
import { RequestContext } from '@mastra/core/request-context';
import { createTool } from '@mastra/core/tools';
import { createClient } from 'cairn-memory/client';
import { cairnProcessor, cairnTools } from 'cairn-memory/mastra';
import * as z from 'zod';

const key = process.env.CAIRN_KEY;
const client = createClient({ url: process.env.CAIRN_URL ?? 'http://127.0.0.1:8080', ...(key && { key }) });
const say = (/** @type {string} */ what) => console.log(`ok: ${what}`);

// ── A script in place of a model ──────────────────────────────────────────────────────────────────────────────────────

/** @typedef {{ text: string } | { call: string, input: object }} Step */

/** Makes a model that follows a script and keeps the prompts that it was given. @param {Step[]} steps */
function script(...steps) {
  /** @type {any[]} */
  const prompts = [];
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
  const next = (/** @type {any} */ { prompt }) => {
    prompts.push(structuredClone(prompt));
    const step = steps.shift();
    assert.ok(step, 'the script is at its end');
    return step;
  };
  const model = {
    specificationVersion: /** @type {const} */ ('v2'),
    provider: 'script',
    modelId: 'script',
    supportedUrls: {},
    doGenerate: async (/** @type {any} */ options) => {
      const step = next(options);
      const content =
        'text' in step
          ? [{ type: 'text', text: step.text }]
          : [{ type: 'tool-call', toolCallId: 'call', toolName: step.call, input: JSON.stringify(step.input) }];
      return { content, finishReason: 'text' in step ? 'stop' : 'tool-calls', usage, warnings: [] };
    },
    doStream: async (/** @type {any} */ options) => {
      const step = next(options);
      const parts =
        'text' in step
          ? [
              { type: 'text-start', id: '1' },
              { type: 'text-delta', id: '1', delta: step.text },
              { type: 'text-end', id: '1' },
            ]
          : [{ type: 'tool-call', toolCallId: 'call', toolName: step.call, input: JSON.stringify(step.input) }];
      const finish = { type: 'finish', finishReason: 'text' in step ? 'stop' : 'tool-calls', usage };
      return { stream: ReadableStream.from([{ type: 'stream-start', warnings: [] }, ...parts, finish]) };
    },
  };
  return { model: /** @type {any} */ (model), prompts };
}

// ── What was said once is recalled later ──────────────────────────────────────────────────────────────────────────────

/** @type {Promise<void>[]} */
const background = [];
let recalls = 0;
const memory = cairnProcessor({
  client: {
    queryMemories: (/** @type {any} */ input, /** @type {any} */ options) => {
      recalls += 1;
      return /** @type {any} */ (client.queryMemories(input, options));
    },
    addMemories: (input, options) => client.addMemories(input, options),
  },
  userId: (context) => String(context.get('user')),
  sessionId: 'monday',
  recallTimeoutMs: 60_000,
  capture: 'both',
  waitUntil: (work) => background.push(work),
  onError: (error) => assert.fail(String(error)),
});
const processors = { inputProcessors: [memory], outputProcessors: [memory] };
const requestContext = new RequestContext([['user', 'ana']]);
const about = { id: 'helper', name: 'Helper', instructions: 'You are helpful.' };

const first = script({ text: 'Noted: teal.' });
await new Agent({ ...about, model: first.model, ...processors }).generate('The colour of my bicycle is teal.', {
  requestContext,
});
await Promise.all(background);
const { matches } = await client.queryMemories({ query: 'teal', user_id: 'ana' });
assert.deepEqual(matches.map(({ type, session_id, content }) => `${type} of ${session_id}: ${content}`).sort(), [
  'assistant_message of monday: Noted: teal.',
  'user_message of monday: The colour of my bicycle is teal.',
]);
say('capture after the reply');

recalls = 0;
const weather = createTool({
  id: 'weather',
  description: 'Tells the weather.',
  inputSchema: z.object({ town: z.string() }),
  execute: async ({ town }) => `Rain in ${town}.`,
});
const second = script({ call: 'weather', input: { town: 'Oslo' } }, { text: 'Teal, in rain.' });
const agent = new Agent({ ...about, model: second.model, tools: { weather }, ...processors });
const stream = await agent.stream('What is the colour of my bicycle, and does it get wet?', { requestContext });
assert.equal(await stream.text, 'Teal, in rain.');
assert.equal(second.prompts.length, 2);
for (const prompt of second.prompts) {
  assert.deepEqual(
    prompt.slice(0, 3).map((/** @type {any} */ { role }) => role),
    ['system', 'user', 'user'],
  );
  assert.equal(prompt[0].content, 'You are helpful.');
  assert.match(JSON.stringify(prompt[1]), /not instructions[^]*colour of my bicycle is teal/);
  assert.match(JSON.stringify(prompt[2]), /does it get wet/);
}
assert.equal(recalls, 1);
say('one recall for a turn of two steps');

// ── Tools ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

const third = script(
  { call: 'remember', input: { content: 'Ana is allergic to walnuts.' } },
  { call: 'recall', input: { query: 'allergic to walnuts' } },
  { text: 'No walnuts.' },
);
const tools = cairnTools({ client, userId: 'ana', sessionId: 'tuesday' });
await new Agent({ ...about, model: third.model, tools }).generate('I am allergic to walnuts.', { maxSteps: 5 });
assert.match(JSON.stringify(third.prompts[2]), /not instructions[^]*Ana is allergic to walnuts/);
say('tools');
