import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { LINE_SCHEMAS } from '../../src/api/schemas/portable.ts';
import type { Tenant } from '../../src/engine/engine.ts';
import { START } from './engine-fixture.ts';

/**
 * Imports a document whose parts all have these tags.
 * @param count number of its chunks
 * @returns its id, and those of its chunks in the order of the text
 */
export async function importDocument(
  tenant: Tenant,
  tags: string[],
  count = 1,
): Promise<{ readonly id: string; readonly chunks: readonly string[] }> {
  const [id, at] = [randomUUID(), new Date(START).toISOString()];
  const line = { type: 'document', id, source: 'upload', chunks: count, created_at: at, updated_at: at, read_at: at };
  let end = 0;
  const parts = ['The root', ...Array.from({ length: count }, (_, no) => `Text ${no} of the team. `)].map(
    (content, no) => {
      const start = end;
      if (no > 0) end += content.length;
      const document = { id, index: no - 1, start_offset: start, end_offset: end };
      return { type: 'memory', id: randomUUID(), content, tags, document };
    },
  );
  const lines = [
    LINE_SCHEMAS.document.parse({ ...line, tags }),
    ...parts.map((part) => LINE_SCHEMAS.memory.parse(part)),
  ];
  const outcomes = await tenant.importLines(lines);
  expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['stored']));
  return { id, chunks: parts.slice(1).map((part) => part.id) };
}
