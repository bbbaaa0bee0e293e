import { expect, test } from 'vitest';
import { getOwnedMemory } from '../../src/api/routes/owned-memory.ts';
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
      Array.from({ length: 64 }, async () => {
        await new Promise<void>((resolve) => setImmediate(resolve));
        return getOwnedMemory(tenant, id, 'turns-ana');
      }),
    );
  expect(await turnsDuring(read)).toBeGreaterThan(10);
});
