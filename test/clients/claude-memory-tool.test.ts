/** Two agents that change the files of Claude's memory tool at once lose nothing that was acknowledged. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient, type Client } from '../../src/client/index.ts';
import { cairnMemoryFiles } from '../../src/clients/claude-memory-tool/index.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
let client: Client;
beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  client = createClient({ url: api.url, key: ADMIN_KEY });
});
afterAll(() => api.stop());

const filesOf = (userId: string) => cairnMemoryFiles({ client, userId });

/** Files of the same user, for which another agent does `meanwhile` right before the first put. */
function filesBehind(userId: string, meanwhile: () => Promise<unknown>) {
  let isFirst = true;
  const putItem: Client['putItem'] = (...given) => {
    if (!isFirst) return client.putItem(...given);
    isFirst = false;
    const put = meanwhile().then(() => client.putItem(...given));
    return put as ReturnType<Client['putItem']>;
  };
  const { getItem, deleteItem, listItems, moveNamespace, deleteNamespace } = client;
  return cairnMemoryFiles({
    client: { getItem, deleteItem, listItems, moveNamespace, deleteNamespace, putItem },
    userId,
  });
}

test('a rename does not erase what another agent has written since', async () => {
  const files = filesOf('ana');
  await files.create({ path: '/memories/a', file_text: 'one' });
  const slow = filesBehind('ana', () => files.str_replace({ path: '/memories/a', old_str: 'one', new_str: 'two' }));
  await expect(slow.rename({ old_path: '/memories/a', new_path: '/memories/b' })).rejects.toMatchObject({
    code: 'conflict',
  });
  expect(await files.view({ path: '/memories/a' })).toContain('two');
  await expect(files.view({ path: '/memories/b' })).rejects.toThrow('does not exist');
  await files.rename({ old_path: '/memories/a', new_path: '/memories/b' });
  expect(await files.view({ path: '/memories/b' })).toContain('two');
  await expect(files.view({ path: '/memories/a' })).rejects.toThrow('does not exist');
});

test('a file that is gone when its rename deletes it keeps its text under the new name', async () => {
  const files = filesOf('bob');
  await files.create({ path: '/memories/a', file_text: 'one' });
  // As if the answer to an earlier try of the delete were lost.
  const slow = filesBehind('bob', () => files.delete({ path: '/memories/a' }));
  await slow.rename({ old_path: '/memories/a', new_path: '/memories/b' });
  expect(await files.view({ path: '/memories/b' })).toContain('one');
  await expect(files.view({ path: '/memories/a' })).rejects.toThrow('does not exist');
});

test('a create or a rename does not replace a file that another agent has made since', async () => {
  const files = filesOf('eve');
  const slowly = (path: string) => filesBehind('eve', () => files.create({ path, file_text: 'first' }));
  await expect(slowly('/memories/a').create({ path: '/memories/a', file_text: 'second' })).rejects.toThrow(
    'File /memories/a already exists',
  );
  const rename = { old_path: '/memories/a', new_path: '/memories/b' };
  await expect(slowly('/memories/b').rename(rename)).rejects.toThrow('The destination /memories/b already exists');
  expect(await files.view({ path: '/memories/a' })).toContain('first');
  expect(await files.view({ path: '/memories/b' })).toContain('first');
});

test('a folder whose namespace another program has named is listed', async () => {
  await client.putItem({ user_id: 'zoe', namespace: 'memories.100%', key: 'notes', value: 'full' });
  expect(await filesOf('zoe').view({ path: '/memories' })).toContain('4B\t/memories/100%/notes');
});
