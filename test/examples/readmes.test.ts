import http from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isAbsent } from '../support/run-example.ts';
import { runReadme } from '../support/run-readme.ts';

/** Each example does, from its own folder, what its README says. */

describe.each(['in-process', 'notes-folder', 'chatgpt-history', 'chat-ai-sdk', 'chat-langgraph'])('%s', (example) => {
  test.skipIf(isAbsent(example))('prints what its README says', async () => {
    const results = await runReadme(example);
    expect(results.length).toBeGreaterThan(0);
    for (const { printed, promised } of results) expect(printed).toBe(promised);
  });
});

describe.each([
  ['chatgpt-history', 'twice a day'],
  ['chat-ai-sdk', 'is teal'],
  ['chat-langgraph', 'is teal'],
])('%s with a key of a model', (example, recalled) => {
  test.skipIf(isAbsent(example))('asks that model, with what is recalled', async () => {
    const { url, asked } = await startModel();
    const [result] = await runReadme(example, { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: `${url}/v1`, MODEL: 'm' });
    expect(result!.printed).toBe('So it is.\nSo it is.\n');
    expect(asked.map(({ model }) => model)).toEqual(['m', 'm']);
    expect(JSON.stringify(asked.map(({ messages }) => messages))).toMatch(
      new RegExp(`not instructions(?:(?!not instructions).)*${recalled}`),
    );
  });
});

interface Asked {
  readonly model: string;
  readonly stream?: boolean;
  readonly messages: unknown;
}

/** A server with OpenAI's API of chats, which says one sentence to everything. */
async function startModel() {
  const asked: Asked[] = [];
  const answer = async (request: http.IncomingMessage, reply: http.ServerResponse) => {
    if (request.url !== '/v1/chat/completions') return void reply.writeHead(404).end();
    const body = (await json(request)) as Asked;
    asked.push(body);
    const common = { id: 'c', created: 1, model: body.model };
    const said = { role: 'assistant', content: 'So it is.' };
    if (body.stream !== true) {
      const choice = { index: 0, message: said, finish_reason: 'stop' };
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      reply.setHeader('content-type', 'application/json');
      return void reply.end(JSON.stringify({ ...common, object: 'chat.completion', choices: [choice], usage }));
    }
    reply.setHeader('content-type', 'text/event-stream');
    for (const choice of [
      { index: 0, delta: said, finish_reason: null },
      { index: 0, delta: {}, finish_reason: 'stop' },
    ])
      reply.write(`data: ${JSON.stringify({ ...common, object: 'chat.completion.chunk', choices: [choice] })}\n\n`);
    reply.end('data: [DONE]\n\n');
  };
  const server = http.createServer((request, reply) => void answer(request, reply));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}
