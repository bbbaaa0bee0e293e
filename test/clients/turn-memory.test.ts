import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { createClient } from '../../src/client/index.ts';
import { cairnMemory } from '../../src/clients/langgraph/index.ts';
import { cairnProcessor } from '../../src/clients/mastra/index.ts';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const saying = (text: string) => [{ role: 'user', content: [{ type: 'text', text }] }];

test('a function for the user that throws stops no agent of Mastra, and stores nothing', async () => {
  await using api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  const errors: unknown[] = [];
  const processor = cairnProcessor({
    client: createClient({ url: api.url, key: ADMIN_KEY }),
    userId: () => {
      throw new Error('nobody is signed in');
    },
    onError: (error) => void errors.push(error),
  });
  const state = {};
  const prompt = saying('Where do I live?');
  expect(await processor.processLLMRequest({ prompt, state })).toEqual({ prompt });
  const result = { text: 'I do not know.', finishReason: 'stop' };
  const messages = [{ id: '1' }];
  expect(processor.processOutputResult({ messages, state, result })).toBe(messages);
  expect(errors.map(String)).toEqual(['Error: nobody is signed in', 'Error: nobody is signed in']);
  expect((await api.request('GET', '/memory/all')).body.items).toEqual([]);
});

test('nor does it stop an agent of LangChain after its run', async () => {
  const errors: unknown[] = [];
  const memory = cairnMemory({
    url: 'http://127.0.0.1:1',
    userId: () => {
      throw new Error('nobody is signed in');
    },
    onError: (error) => void errors.push(error),
  });
  await memory.afterAgent({ messages: [] }, {});
  expect(errors.map(String)).toEqual(['Error: nobody is signed in']);
});

test('a message that is too long for a query is cut between two characters', async () => {
  await using api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  await api.add({ content: 'The gull sleeps on the pier.', user_id: 'ana' });
  const errors: unknown[] = [];
  const sent: string[] = [];
  const processor = cairnProcessor({
    client: createClient({
      ...{ url: api.url, key: ADMIN_KEY },
      fetch: (url, init) => {
        sent.push((JSON.parse(init.body as string) as { query: string }).query);
        return fetch(url, init);
      },
    }),
    userId: 'ana',
    onError: (error) => void errors.push(error),
  });
  const asked = `Where does the gull sleep? ${'.'.repeat(8_192 - 28)}🪿 and more`;
  const { prompt } = await processor.processLLMRequest({ prompt: saying(asked), state: {} });
  expect([errors, prompt.length, sent.map((query) => [query.length, query.isWellFormed()])]).toEqual([
    [],
    2,
    [[8_191, true]],
  ]);
});

test.each([
  ['without a process', 'undefined'],
  ['whose process cannot warn', '{ env: {} }'],
])('a failure in a runtime %s is told on the console', async (_name, process) => {
  const module = path.resolve(import.meta.dirname, '../../src/clients/mastra/index.ts');
  const program = `
    const { cairnProcessor } = await import(${JSON.stringify(module)});
    const { log } = console;
    console.warn = (error) => log('warned: ' + error.message);
    globalThis.process = ${process};
    const client = { queryMemories: () => Promise.reject(new Error('no server')) };
    const processor = cairnProcessor({ client, userId: 'ana' });
    const prompt = [{ role: 'user', content: 'Hello' }];
    await processor.processLLMRequest({ prompt, state: {} });`;
  const args = ['--input-type=module', '--eval', program];
  const { stdout } = await promisify(execFile)(globalThis.process.execPath, args);
  expect(stdout).toBe('warned: no server\n');
});
