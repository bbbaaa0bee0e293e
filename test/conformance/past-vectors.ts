import { expect } from 'vitest';
import type { TestEngine } from '../support/engine-fixture.ts';
import { jsonLines } from '../support/portable.ts';

/** Checks that an export has no vectors of a text that was written after it began, and those of all other texts. */
export async function pastVectors({ tenant, clock, add, drain }: TestEngine): Promise<void> {
  const [changed, titled, labelled] = [
    await add({ content: 'The ferry to Bergen sails at nine.' }),
    await add({ content: 'The boat is called Petrel.' }),
    await add({ content: 'Tulips bloom in April.' }),
  ];
  await drain();
  clock.advance(1_000);
  const pieces: string[] = [];
  for await (const piece of tenant.exportLines({ vectors: true })) {
    pieces.push(piece);
    if (pieces.length > 1) continue;
    clock.advance(1_000);
    await tenant.patchMemory(changed.id, { content: 'Carrots grow beside the wall of the old garden.' });
    await tenant.patchMemory(titled.id, { title: 'Carrots' });
    await tenant.patchMemory(labelled.id, { tags: ['garden'] });
    await drain();
  }
  const lines = jsonLines(pieces.join('')).filter(({ type }) => type === 'memory');
  const told = lines.map(({ content, version, vectors }) => [content, version, (vectors as unknown[]).length]);
  expect(told).toEqual([
    ['The ferry to Bergen sails at nine.', 1, 0],
    ['The boat is called Petrel.', 1, 0],
    ['Tulips bloom in April.', 1, 1],
  ]);
}
