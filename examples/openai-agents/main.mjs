// @ts-check
// Agents of the OpenAI Agents SDK whose sessions are kept by Cairn. The model is a stand-in that needs no key and follows
// a script: put a real one in its place.
//
//   CAIRN_URL=http://127.0.0.1:8080 CAIRN_KEY=… npm start
import assert from 'node:assert/strict';
import { Agent, MemorySession, Runner, tool, Usage } from '@openai/agents-core';
import { createClient, isCairnError } from 'cairn-memory/client';
import { CairnSession } from 'cairn-memory/openai-agents';
import * as z from 'zod';

/** @import { AgentInputItem, AgentOutputItem, Model, ModelRequest, SessionHistoryTransactionAwareSession } from '@openai/agents-core' */

const key = process.env.CAIRN_KEY;
const client = createClient({ url: process.env.CAIRN_URL ?? 'http://127.0.0.1:8080', ...(key && { key }) });
const say = (/** @type {string} */ what) => console.log(`ok: ${what}`);
const runner = new Runner({ tracingDisabled: true });

// ── A script in place of a model ──────────────────────────────────────────────────────────────────────────────────────

/** @type {(text: string) => AgentOutputItem} */
const saying = (text) => ({
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text }],
});

/** @implements {Model} */
class Script {
  /** @type {ModelRequest[]} */
  requests = [];
  /** @param {AgentOutputItem[]} outputs */
  constructor(...outputs) {
    this.outputs = outputs;
  }
  /** @param {ModelRequest} request */
  async getResponse(request) {
    this.requests.push(structuredClone({ ...request, signal: undefined }));
    const output = this.outputs.shift();
    assert.ok(output, 'the script is at its end');
    return { usage: new Usage(), output: [output] };
  }
  /** @returns {AsyncIterable<never>} */
  getStreamedResponse() {
    throw new Error('this script does not stream');
  }
}

/** @type {(input: readonly AgentInputItem[]) => string[]} */
const textsOf = (input) => input.map((item) => ('role' in item ? item.role : item.type));

// ── A conversation goes on in another process ─────────────────────────────────────────────────────────────────────────

const where = { client, userId: 'ana', sessionId: 'chat:7' };
await new CairnSession(where).clearSession();
const first = new Agent({ name: 'Helper', model: new Script(saying('Noon it is.')) });
await runner.run(first, 'Is noon fine?', { session: new CairnSession(where) });

const model = new Script(saying('At noon.'));
await runner.run(new Agent({ name: 'Helper', model }), 'When do we meet?', { session: new CairnSession(where) });
assert.deepEqual(textsOf(/** @type {AgentInputItem[]} */ (model.requests[0]?.input)), ['user', 'assistant', 'user']);
assert.match(JSON.stringify(model.requests[0]?.input), /Is noon fine[^]*Noon it is[^]*When do we meet/);
const session = new CairnSession(where);
assert.equal(await session.getSessionId(), 'chat:7');
assert.deepEqual(textsOf(await session.getItems()), ['user', 'assistant', 'user', 'assistant']);
assert.deepEqual(await session.getItems(1), (await session.getItems()).slice(-1));
assert.deepEqual(await session.getItems(0), []);
say('a conversation over two runs');

// ── A run that waits for a person, and goes on ────────────────────────────────────────────────────────────────────────

const ring = tool({
  name: 'ring',
  description: 'Rings the bell.',
  parameters: z.object({ times: z.number() }),
  needsApproval: true,
  execute: async ({ times }) => `It rang ${times} times.`,
});
const asked = new Script(
  { type: 'function_call', callId: 'call-1', name: 'ring', status: 'completed', arguments: '{"times":3}' },
  saying('Done.'),
);
const bell = new Agent({ name: 'Bell', model: asked, tools: [ring] });
const tower = new CairnSession({ client, userId: 'ana', sessionId: 'tower' });
await tower.clearSession();
const paused = await runner.run(bell, 'Ring three times.', { session: tower });
assert.equal(paused.interruptions.length, 1);
for (const interruption of paused.interruptions) paused.state.approve(interruption);
const { finalOutput } = await runner.run(bell, paused.state, { session: tower });
assert.equal(finalOutput, 'Done.');
assert.deepEqual(textsOf(await tower.getItems()), ['user', 'function_call', 'function_call_result', 'assistant']);
say('a run with an approval');

// ── The same calls give the same history as the SDK's own session ─────────────────────────────────────────────────────

/** @type {(content: string) => AgentInputItem} */
const user = (content) => ({ type: 'message', role: 'user', content });
const many = Array.from({ length: 250 }, (_, at) => user(`item ${at % 7}`));
/** @type {[SessionHistoryTransactionAwareSession, SessionHistoryTransactionAwareSession]} */
const both = [new MemorySession(), new CairnSession({ client })];
const [expected, found] = await Promise.all(
  both.map(async (one) => {
    /** @type {unknown[]} */
    const seen = [];
    /** @type {(call: () => unknown) => Promise<void>} */
    const attempt = async (call) => {
      try {
        await call();
        seen.push('done');
      } catch (error) {
        seen.push(isCairnError(error) && error.code !== 'conflict' ? error : 'refused');
      }
    };
    const append = {
      operationId: 'a',
      transaction: { type: /** @type {const} */ ('append_items'), items: [user('x')] },
    };
    const suffix = { type: /** @type {const} */ ('replace_suffix'), expectedSuffix: [user('x')] };
    const replace = { operationId: 'b', transaction: { ...suffix, replacement: [user('y'), user('y')] } };
    seen.push(await one.popItem());
    await one.addItems([]);
    await one.addItems(many);
    await attempt(() => one.applyHistoryTransaction(append));
    await attempt(() => one.applyHistoryTransaction(append));
    await attempt(() => one.applyHistoryTransaction({ ...replace, operationId: 'a' }));
    await attempt(() => one.applyHistoryTransaction(replace));
    await attempt(() => one.applyHistoryTransaction(replace));
    await attempt(() => one.applyHistoryTransaction({ ...replace, operationId: 'c' }));
    await attempt(() =>
      one.applyHistoryTransaction({
        operationId: 'd',
        transaction: { type: 'replace_suffix', expectedSuffix: [user('y')], replacement: [] },
      }),
    );
    await attempt(() =>
      one.applyHistoryTransaction({ operationId: 'e', transaction: { type: 'append_items', items: [] } }),
    );
    await attempt(() =>
      one.applyHistoryTransaction({
        operationId: 'f',
        transaction: { type: 'replace_suffix', expectedSuffix: [], replacement: [user('z')] },
      }),
    );
    seen.push(await one.getItems(3), await one.popItem(), await one.getItems());
    await one.clearSession();
    seen.push(await one.getItems());
    return seen;
  }),
);
assert.deepEqual(found, expected);
assert.ok(expected?.includes('refused') && expected.includes('done'));
say('transactions');
