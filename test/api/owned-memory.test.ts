import { expect, test } from 'vitest';
import { getOwnedMemory } from '../../src/api/routes/owned-memory.ts';
import { noteConnection, runInShare } from '../../src/engine/index.ts';
import { newMemory, openTestEngine } from '../support/engine-fixture.ts';
import { turnsDuring } from '../support/turns-during.ts';

test('long memories for which many requests ask at once are read in turns', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  const { id } = await fixture.add(
    newMemory({ content: 'The ferry leaves at noon. '.repeat(9_000), userId: 'turns-ana' }),
  );
  // As requests do, they come one after the other in one turn of the event loop.
  const read = () =>
    Promise.all(
      Array.from({ length: 192 }, async () => {
        await new Promise<void>((resolve) => setImmediate(resolve));
        return getOwnedMemory(tenant, id, 'turns-ana');
      }),
    );
  expect(await turnsDuring(read)).toBeGreaterThan(10);
});

test('reads of memories go on while connections arrive, a few in each turn, and keys take turns', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  const { id } = await fixture.add(newMemory({ content: 'The ferry leaves at noon.', userId: 'turns-ben' }));
  const read: string[] = [];
  const readAs = (keyId: string) =>
    runInShare({ tenantId: 'turns-ben', keyId }, async () => {
      await new Promise<void>((resolve) => setImmediate(resolve));
      await getOwnedMemory(tenant, id, 'turns-ben');
      read.push(keyId);
    });
  const keys = [...Array<string>(60).fill('many'), 'few', 'few', 'few'];
  let isDone = false;
  const arrive = () => {
    noteConnection();
    if (!isDone) setImmediate(arrive);
  };
  arrive();
  const turns = await turnsDuring(() => Promise.all(keys.map(readAs)));
  isDone = true;
  expect(turns).toBeGreaterThan(10);
  expect(turns).toBeLessThan(100);
  expect(read.lastIndexOf('few')).toBeLessThan(20);
});
