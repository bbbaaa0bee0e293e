import { afterAll, beforeAll, expect, test } from 'vitest';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

let api: TestApi;
let ids: readonly string[];
const cairn = (...args: string[]) =>
  runCairn(['explain', ...args], { settings: { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY } });

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true });
  const added: string[] = [];
  for (const content of ['The attic key is under the mat.', 'Nobody has found a key that opens the old piano yet.']) {
    const reply = await api.request('POST', '/memory/add?wait=60000', { body: { content, user_id: 'kim' } });
    added.push(reply.body.id);
  }
  ids = added;
});
afterAll(() => api.stop());

test('says that a memory comes back, at which place and why', async () => {
  const { code, stdout } = await cairn('attic key', ids[0]!, '--user', 'kim');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^It comes back {2}place 1, score [01]\.\d{3}\n/);
  expect(stdout).toMatch(/^ {2}matched +attic, key$/m);
  expect(stdout).toMatch(/^ {2}lexical +2 +2 +[\d.]+ ms/m);
  expect(stdout).not.toContain('What would bring it back');
});

test('says what would bring back one that does not, and that this works', async () => {
  const { stdout } = await cairn('attic key', ids[1]!, '--user', 'kim', '-k', '1', '--min-score', '0');
  expect(stdout).toMatch(/^Others fill all places {2}place 2/);
  expect(stdout).toContain('What would bring it back\n  raise k to 2\n');
  expect((await cairn('attic key', ids[1]!, '--user', 'kim', '-k', '2', '--min-score', '0')).stdout).toMatch(
    /^It comes back/,
  );
});

test('--json is what the server sends', async () => {
  const { stdout } = await cairn('attic key', ids[1]!, '--user', 'kim', '-k', '1', '--min-score', '0', '--json');
  expect(JSON.parse(stdout)).toMatchObject({
    memory_id: ids[1],
    outcome: 'beyond_k',
    failed_filters: [],
    changes: { k: 2 },
  });
});

test('a memory that is not there is one line', async () => {
  const absent = { code: 1, stderr: 'cairn: no memory with this id\n' };
  expect(await cairn('attic key', 'no-such-id')).toMatchObject(absent);
  expect(await cairn('attic key', ids[0]!, '--user', 'somebody else')).toMatchObject(absent);
});
