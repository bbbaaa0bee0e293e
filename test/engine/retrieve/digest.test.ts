import { expect, test } from 'vitest';
import { renderDigest } from '../../../src/engine/retrieve/digest.ts';
import { MAX_RENDERED_CHARACTERS } from '../../../src/engine/retrieve/prompt.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

test('an entry that has no room leaves its room to the next ones', async () => {
  await using fixture = await openTestEngine();
  const { id } = await fixture.add({ content: 'a memory' });
  const memory = await fixture.tenant.getMemory(id);
  const contents = ['x'.repeat(0.6 * MAX_RENDERED_CHARACTERS), 'y'.repeat(0.6 * MAX_RENDERED_CHARACTERS), 'short'];
  const diff = await fixture.tenant.diff({
    ...{ from: 0, to: fixture.clock.now() + 1, axis: 'recorded', filter: {}, fadedBelow: 0.1, limit: 10 },
  });
  const added = contents.map((content) => ({ memory: { ...memory, content }, at: 0 }));
  const { text } = renderDigest({ ...diff, added, counts: { ...diff.counts, added: 3 } });
  expect([text.includes('xxx'), text.includes('yyy'), text.includes('short')]).toEqual([true, false, true]);
});

test('changes that do not fit into the budget are not told as none', async () => {
  await using fixture = await openTestEngine();
  const { id } = await fixture.add({ content: 'a memory' });
  const memory = await fixture.tenant.getMemory(id);
  const diff = await fixture.tenant.diff({
    ...{ from: 0, to: fixture.clock.now() + 1, axis: 'recorded', filter: {}, fadedBelow: 0.1, limit: 10 },
  });
  const none = { ...diff, added: [], counts: { ...diff.counts, added: 0 } };
  const some = { ...diff, added: [{ memory, at: 0 }], counts: { ...diff.counts, added: 1 } };
  expect(renderDigest(none, 1).text).toContain('Nothing changed.');
  expect(renderDigest(some, 1).text).not.toContain('Nothing changed.');
  expect(renderDigest(some).text).toContain('a memory');
});

test('erased memories are counted in a sentence', async () => {
  await using fixture = await openTestEngine();
  const diff = await fixture.tenant.diff({
    ...{ from: 0, to: fixture.clock.now() + 1, axis: 'recorded', filter: {}, fadedBelow: 0.1, limit: 10 },
  });
  const textOf = (deleted: number, expired: number) => renderDigest({ ...diff, erased: { deleted, expired } }).text;
  expect(textOf(1, 2)).toContain('1 memory was deleted and 2 expired.');
  expect(textOf(2, 0)).toContain('2 memories were deleted and 0 expired.');
});
