import { expect, test } from 'vitest';
import { cairnMemory } from '../../src/clients/langgraph/index.ts';

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
