/** Settings that a role or a database gives to each session change nothing of what Cairn stores and reads. */
import { afterAll, expect, test } from 'vitest';
import { newMemory, openTestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

const SETTINGS = { bytea_output: 'escape', extra_float_digits: '-10', statement_timeout: '50' };

const server = await startPostgres();
afterAll(() => server?.stop());

test.skipIf(server === undefined)('a role with settings of its own reads what it has written', async () => {
  const url = await server!.createSchema();
  const options = Object.entries(SETTINGS).map(([name, value]) => `-c ${name}=${value}`);
  const settings = { OM_DATABASE_URL: `${url}?options=${encodeURIComponent(options.join(' '))}` };
  await using fixture = await openTestEngine({ settings });
  const { tenant, drain } = fixture;
  const { outcomes } = await tenant.addMemories([
    newMemory({ content: 'The ferry leaves at noon.', importance: 0.123456789 }),
  ]);
  const [outcome] = outcomes;
  expect(outcome).toMatchObject({ kind: 'accepted' });
  await drain();
  const { id } = outcome as { readonly id: string };
  expect(await tenant.getMemory(id)).toMatchObject({ importance: 0.123456789 });
  const { hits } = await tenant.query({ query: 'when does the ferry leave?', k: 5, filter: {} });
  expect(hits.map((hit) => hit.memory.id)).toEqual([id]);
});
