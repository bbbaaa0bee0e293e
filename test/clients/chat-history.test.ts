import { HumanMessage } from '@langchain/core/messages';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CairnChatHistory } from '../../src/clients/langgraph/index.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
beforeAll(async () => void (api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } })));
afterAll(() => api.stop());

const open = (sessionId: string) => new CairnChatHistory({ url: api.url, apiKey: ADMIN_KEY, userId: 'ana', sessionId });

test('every id of a session works, however long and of whatever characters, and each is another session', async () => {
  const long = 'x'.repeat(128);
  const ids = [
    'a',
    'a.b:c/d',
    '*',
    long,
    `${long}x`,
    `${long}y`,
    '会'.repeat(100),
    '\ud800',
    '\ud801',
    ' ',
    'sha256=a',
  ];
  for (const [place, id] of ids.entries()) await open(id).addMessage(new HumanMessage(`message ${place}`));
  for (const [place, id] of ids.entries()) {
    const said = await open(id).getMessages();
    expect(
      said.map(({ text }) => text),
      JSON.stringify(id),
    ).toEqual([`message ${place}`]);
  }
  await open(`${long}x`).clear();
  expect(await open(`${long}x`).getMessages()).toEqual([]);
  expect(await open(`${long}y`).getMessages()).toHaveLength(1);
});

test('a session has the namespace that earlier versions gave it, where they gave it one', async () => {
  await open('support:7.1').addMessage(new HumanMessage('Where is my parcel?'));
  const { body } = await api.request('GET', '/namespaces?user_id=ana&prefix=chat.support%253A7%252E1');
  expect(body['items']).toMatchObject([{ items: 1 }]);
});
