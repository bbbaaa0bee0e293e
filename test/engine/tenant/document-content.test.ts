import { randomUUID } from 'node:crypto';
import { text as textOf } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { LINE_SCHEMAS } from '../../../src/api/schemas/portable.ts';
import { createInlineReaders, type Readers } from '../../../src/engine/readers/readers.ts';
import { createDocumentMethods } from '../../../src/engine/tenant/tenant-documents.ts';
import type { Erasure } from '../../../src/engine/tenant/tenant-erasure.ts';
import type { TenantOptions } from '../../../src/engine/tenant/tenant-options.ts';
import type { TenantPool } from '../../../src/engine/tenant-file/tenant-pool.ts';
import { openTestEngine, START, type TestEngine } from '../../support/engine-fixture.ts';

const KIB = 1024;

/** Imports a document whose chunks have these texts. @returns the id of the document */
async function importDocument({ tenant }: TestEngine, texts: readonly string[]): Promise<string> {
  const [id, at] = [randomUUID(), new Date(START).toISOString()];
  const times = { created_at: at, updated_at: at, read_at: at };
  let end = 0;
  const parts = ['A document', ...texts].map((content, no) => {
    const start_offset = end;
    if (no > 0) end += content.length;
    const document = { id, index: no - 1, start_offset, end_offset: end };
    return LINE_SCHEMAS.memory.parse({ type: 'memory', id: randomUUID(), content, document });
  });
  const line = { type: 'document', id, source: 'upload', chunks: texts.length, ...times };
  const outcomes = await tenant.importLines([LINE_SCHEMAS.document.parse(line), ...parts]);
  expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['stored']));
  return id;
}

/** The methods of documents as the API has them, which opens no file itself, and the sizes of what its reads return. */
function readOffThread({ batch, file }: TestEngine) {
  const { config, clock, logger } = batch;
  const parts = { config, clock, logger, tracing: null, threads: 1, querySourceOf: () => null, languageModel: null };
  const inline = createInlineReaders({ get: () => batch.open() } as unknown as TenantPool, parts);
  const sizes: number[] = [];
  const read: Readers['read'] = (...asked) => {
    const reading = inline.read(...asked);
    void reading.then((result) => sizes.push(JSON.stringify(result).length)).catch(() => {});
    return reading;
  };
  const open = () => {
    throw new Error('the file was read where requests are served');
  };
  const options = { path: file, clock, readers: { ...inline, read }, open } as unknown as TenantOptions;
  return { methods: createDocumentMethods(options, {} as Erasure), sizes };
}

test('the text of a document is read by reader threads, in slices of some chunks and of 256 KiB', async () => {
  const fixture = await openTestEngine();
  onTestFinished(() => fixture.close());
  const large = Array.from({ length: 12 }, (_, no) => `${no} `.repeat(50 * KIB));
  const texts = [...Array.from({ length: 40 }, (_, no) => `Short part ${no}. `), 'x '.repeat(300 * KIB), ...large];
  const id = await importDocument(fixture, texts);
  const { methods, sizes } = readOffThread(fixture);
  const text = await textOf(await methods.documentContent(id));
  expect(text === texts.join('')).toBe(true);
  const most = Math.max(...sizes);
  expect(most).toBeGreaterThan(600 * KIB);
  expect(most).toBeLessThan(601 * KIB);
  expect(sizes.filter((size) => size > 257 * KIB)).toEqual([most]);
  expect(sizes.length).toBeLessThan(15);
});

test('an unknown document and one that was not read yet have no text', async () => {
  const fixture = await openTestEngine();
  onTestFinished(() => fixture.close());
  const { document } = await fixture.tenant.addDocument({
    ...{ userId: '', sessionId: '', externalId: null, title: 'A page', type: null, tags: [], metadata: {} },
    ...{ eventTime: null, expiresAt: null, source: { kind: 'url', url: 'https://example.com/a' } },
  });
  const { methods } = readOffThread(fixture);
  await expect(methods.documentContent(document.id)).rejects.toMatchObject({ code: 'conflict' });
  await expect(methods.documentContent(randomUUID())).rejects.toMatchObject({ code: 'not_found' });
});
