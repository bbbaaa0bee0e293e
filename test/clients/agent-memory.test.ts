import { HumanMessage, SystemMessage } from '@langchain/core/messages';
import { expect, test } from 'vitest';
import { cairnMemory } from '../../src/clients/langgraph/index.ts';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

test('an agent whose user is not known asks about nobody, rather than about everybody', async () => {
  const asked: string[] = [];
  const errors: unknown[] = [];
  const memory = cairnMemory({
    url: 'http://127.0.0.1:1',
    userId: () => undefined as unknown as string,
    onError: (error) => void errors.push(error),
    fetch: () => {
      asked.push('a request');
      return Promise.reject(new Error('nothing may be sent'));
    },
  });
  const call = memory.wrapModelCall as unknown as (request: object, handler: () => Promise<string>) => Promise<string>;
  const request = {
    messages: [{ type: 'human', text: 'Where do I live?', id: '1' }],
    runtime: {},
    systemMessage: null,
  };
  expect(await call(request, () => Promise.resolve('answered'))).toBe('answered');
  expect(errors.map(String)).toEqual([expect.stringContaining('userId')]);
  expect(asked).toEqual([]);
});

test('what one user was told reaches no other, nor a later run, and an edited message is another one', async () => {
  await using api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  await api.add({ content: 'The alarm code of the house is 4711.', user_id: 'alice' });
  const errors: unknown[] = [];
  const { wrapModelCall, afterAgent } = cairnMemory({
    url: api.url,
    apiKey: ADMIN_KEY,
    userId: ({ context }) => (context as { user: string }).user,
    onError: (error) => void errors.push(error),
  });
  /** Has an agent of a user answer a message. @returns the system message that its model was given */
  const say = async (user: string, text: string): Promise<string> => {
    const runtime = { context: { user } };
    const messages = [new HumanMessage({ id: '1', content: text })];
    let told = '';
    const request = { messages, runtime, systemMessage: new SystemMessage('You help.') };
    await wrapModelCall(request, ({ systemMessage }) => {
      told = systemMessage.text;
      return 'answered';
    });
    await afterAgent({ messages }, runtime);
    return told;
  };
  const question = 'What is the alarm code of the house?';
  expect(await say('alice', question)).toContain('4711');
  expect(await say('bob', question)).not.toContain('4711');
  await api.request('DELETE', '/users/alice/memories');
  expect(await say('alice', question)).not.toContain('4711');
  await say('bob', 'Bob edits his message: where is the key?');
  expect(errors).toEqual([]);
  const { items } = (await api.request('GET', '/users/bob/memories')).body;
  expect(items.map(({ content }) => content).sort()).toEqual(['Bob edits his message: where is the key?', question]);
});
