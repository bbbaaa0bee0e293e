import { expect, test } from 'vitest';
import { openTestEngine } from '../../support/engine-fixture.ts';

test('a log of removals that lost its last entry ends a query in an error, and not in an endless read', async () => {
  await using fixture = await openTestEngine({ settings: { OM_VECTOR_INDEX: 'js' } });
  for (let n = 0; n < 5; n++) await fixture.add({ content: `The heron number ${n} stands still.` });
  await fixture.drain();
  fixture.store.db.exec('DELETE FROM vector_removals');
  await expect(fixture.tenant.query({ query: 'heron', k: 3, filter: {} })).rejects.toThrow('cairn.sqlite is damaged');
});
