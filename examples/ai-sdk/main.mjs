// @ts-check
// A chat with the AI SDK that remembers: recall and capture around a model, and tools. The model is a stand-in that needs
// no key and follows a script: put a real one in its place.
//
//   CAIRN_URL=http://127.0.0.1:8080 CAIRN_KEY=… npm start
import assert from 'node:assert/strict';
import { generateText, isStepCount, streamText, tool, wrapLanguageModel } from 'ai';
import { MockLanguageModelV4, simulateReadableStream } from 'ai/test';
import { cairnTools, withCairn } from 'cairn-memory/ai-sdk';
import { createClient } from 'cairn-memory/client';
import * as z from 'zod';

const key = process.env.CAIRN_KEY;
const client = createClient({ url: process.env.CAIRN_URL ?? 'http://127.0.0.1:8080', ...(key && { key }) });
const say = (/** @type {string} */ what) => console.log(`ok: ${what}`);

/** @type {Promise<void>[]} */
const background = [];
let recalls = 0;
/** A client that counts recalls, to show that a turn has one. @type {Pick<typeof client, 'queryMemories' | 'addMemories'>} */
const counted = {
  queryMemories: (/** @type {any} */ input, /** @type {any} */ options) => {
    recalls += 1;
    return /** @type {any} */ (client.queryMemories(input, options));
  },
  addMemories: (input, options) => client.addMemories(input, options),
};
/** @type {(sessionId: string) => ReturnType<typeof withCairn>} */
const memoryOf = (sessionId) =>
  withCairn({
    client: counted,
    userId: 'ana',
    sessionId,
    recallTimeoutMs: 60_000,
    capture: 'both',
    waitUntil: (work) => background.push(work),
    onError: (error) => assert.fail(String(error)),
  });

// ── A script in place of a model ──────────────────────────────────────────────────────────────────────────────────────

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
/** @typedef {Extract<ConstructorParameters<typeof MockLanguageModelV4>[0], object>} Script */
/** @typedef {Exclude<NonNullable<Script['doGenerate']>, Function | any[]>} Reply */

/** @type {(text: string) => Reply} */
const saying = (text) => ({
  content: [{ type: 'text', text }],
  finishReason: { unified: 'stop', raw: 'stop' },
  usage,
  warnings: [],
});
/** @type {(toolName: string, input: object) => Reply} */
const calling = (toolName, input) => ({
  content: [{ type: 'tool-call', toolCallId: `call-${toolName}`, toolName, input: JSON.stringify(input) }],
  finishReason: { unified: 'tool-calls', raw: 'tool_calls' },
  usage,
  warnings: [],
});

// ── What was said once is recalled later ──────────────────────────────────────────────────────────────────────────────

const first = new MockLanguageModelV4({ doGenerate: saying('Noted: teal.') });
await generateText({
  model: wrapLanguageModel({ model: first, middleware: memoryOf('monday') }),
  prompt: 'The colour of my bicycle is teal.',
});
assert.equal(first.doGenerateCalls[0]?.prompt.length, 1, 'nothing is known yet, so nothing is added');
await Promise.all(background);
const { matches } = await client.queryMemories({ query: 'teal', user_id: 'ana' });
assert.deepEqual(matches.map(({ type, session_id }) => `${type} of ${session_id}`).sort(), [
  'assistant_message of monday',
  'user_message of monday',
]);
say('capture after the reply');

recalls = 0;
const second = new MockLanguageModelV4({
  doGenerate: [calling('weather', { town: 'Oslo' }), saying('Teal, in rain.')],
});
const weather = tool({
  description: 'Tells the weather.',
  inputSchema: z.object({ town: z.string() }),
  execute: async ({ town }) => `Rain in ${town}.`,
});
const { text } = await generateText({
  model: wrapLanguageModel({ model: second, middleware: memoryOf('tuesday') }),
  instructions: 'You are helpful.',
  prompt: 'What is the colour of my bicycle, and does it get wet?',
  tools: { weather },
  stopWhen: isStepCount(3),
});
assert.equal(text, 'Teal, in rain.');
assert.equal(second.doGenerateCalls.length, 2);
for (const { prompt } of second.doGenerateCalls) {
  assert.deepEqual(
    prompt.slice(0, 3).map(({ role }) => role),
    ['system', 'user', 'user'],
  );
  assert.equal(prompt[0]?.content, 'You are helpful.');
  assert.match(JSON.stringify(prompt[1]), /not instructions[^]*colour of my bicycle is teal/);
  assert.match(JSON.stringify(prompt[2]), /does it get wet/);
}
assert.equal(recalls, 1);
say('one recall for a turn of two steps');

// ── The same with a stream ────────────────────────────────────────────────────────────────────────────────────────────

const third = new MockLanguageModelV4({
  doStream: {
    stream: simulateReadableStream({
      chunks: [
        { type: 'stream-start', warnings: [] },
        { type: 'text-start', id: '1' },
        { type: 'text-delta', id: '1', delta: 'Your cello is ' },
        { type: 'text-delta', id: '1', delta: 'called Otto.' },
        { type: 'text-end', id: '1' },
        { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage },
      ],
    }),
  },
});
const streamed = streamText({
  model: wrapLanguageModel({ model: third, middleware: memoryOf('wednesday') }),
  prompt: 'I named my cello Otto.',
});
assert.equal(await streamed.text, 'Your cello is called Otto.');
await Promise.all(background);
const cello = await client.queryMemories({ query: 'Otto cello', user_id: 'ana', filters: { sessions: ['wednesday'] } });
assert.deepEqual(cello.matches.map(({ content }) => content).sort(), [
  'I named my cello Otto.',
  'Your cello is called Otto.',
]);
say('stream');

// ── Tools ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

const fourth = new MockLanguageModelV4({
  doGenerate: [
    calling('remember', { content: 'Ana is allergic to walnuts.' }),
    calling('recall', { query: 'allergic to walnuts' }),
    saying('No walnuts.'),
  ],
});
const { steps } = await generateText({
  model: fourth,
  prompt: 'I am allergic to walnuts.',
  tools: cairnTools({ client, userId: 'ana', sessionId: 'thursday' }),
  stopWhen: isStepCount(5),
});
assert.match(JSON.stringify(steps[1]?.toolResults[0]?.output), /not instructions[^]*Ana is allergic to walnuts/);
say('tools');

// ── A memory that fails stops nobody ──────────────────────────────────────────────────────────────────────────────────

/** @type {unknown[]} */
const errors = [];
const nowhere = createClient({ url: 'http://127.0.0.1:1', retries: 0 });
const alone = await generateText({
  model: wrapLanguageModel({
    model: new MockLanguageModelV4({ doGenerate: saying('Hello.') }),
    middleware: withCairn({
      client: nowhere,
      userId: 'ana',
      waitUntil: (work) => background.push(work),
      onError: (error) => errors.push(error),
    }),
  }),
  prompt: 'Is anybody there?',
});
await Promise.all(background);
assert.equal(alone.text, 'Hello.');
assert.equal(errors.length, 2);
say('a server that is away');
