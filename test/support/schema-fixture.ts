import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import { backupDatabase } from '../../src/engine/admin/backup.ts';
import type { IdempotencyClaim } from '../../src/engine/types.ts';
import { modelNumber } from '../../src/engine/store/embeddings.ts';
import { insertCodes } from '../../src/engine/store/vector-codes.ts';
import { signBits } from '../../src/engine/store/vector-encoding.ts';
import { insertVector, type VectorSpace } from '../../src/engine/store/vectors.ts';
import { START, type TestEngine } from './engine-fixture.ts';
import { newDocument, upload } from './new-document.ts';
import { newMemory } from './new-memory.ts';
import { tempFolder } from './temp-folder.ts';

/**
 * Fixtures in `test/fixtures`: for each schema version a tenant's file, written by the code of that time. A fixture is
 * written once, when its migration is added, and never again after a release: `WRITE_FIXTURE=1 npx vitest run
 * test/engine/store/schema-fixture.test.ts`.
 */

const FOLDER = path.resolve(import.meta.dirname, '../fixtures');
const NAME = /^tenant-(\d{4})\.sqlite\.gz$/;

/** Returns the schema versions that have a fixture, in ascending order. */
export function listFixtures(): number[] {
  return fs
    .readdirSync(FOLDER)
    .flatMap((name) => NAME.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

/**
 * Unpacks the fixture of a schema version.
 * @returns the path of a copy that a test may change
 */
export function unpackFixture(version: number): string {
  const file = path.join(tempFolder(), 'cairn.sqlite');
  fs.writeFileSync(file, zlib.gunzipSync(fs.readFileSync(pathOf(version))));
  return file;
}

/**
 * Fills a new file with example data (`SAID` and others), and keeps a copy of it as the fixture of a schema version.
 */
export async function writeFixture(fixture: TestEngine, version: number): Promise<void> {
  await fill(fixture);
  await fixture.close();
  const copy = path.join(tempFolder(), 'copy.sqlite');
  await backupDatabase({ from: fixture.file, to: copy });
  fs.mkdirSync(FOLDER, { recursive: true });
  fs.writeFileSync(pathOf(version), zlib.gzipSync(fs.readFileSync(copy), { level: 9 }));
}

function pathOf(version: number): string {
  return path.join(FOLDER, `tenant-${String(version).padStart(4, '0')}.sqlite.gz`);
}

/** Texts of the memories in the fixture, by what each memory tests. */
export const SAID = {
  names: 'Ann Lee works at Acme in Oslo.',
  chinese: '我的生日是五月一日',
  code: 'The gateway calls parseHTTPRequest before it answers.',
  alike: 'The gateway calls parseHTTPRequest and then it answers.',
  superseded: 'Ann lives in Oslo near the harbour.',
  successor: 'Ann lives in Bergen near the harbour.',
  right: 'The office opens at nine.',
  wrong: 'The office opens at eight.',
  patched: 'The final text of the letter.',
  long: 'The orchard has apples, pears and plums, and somebody has to pick all of them by hand. '.repeat(60).trim(),
  once: 'This was sent under an idempotency key.',
  waiting: 'This waits to be encoded.',
} as const;

/** First text of the memory that was changed by a PATCH. */
export const DRAFT = 'A draft of the letter.';
export const DOCUMENT = '# Harbour\n\nThe ferry leaves at noon.\n\n## Winter\n\nThe ferry rests from November on.';
export const CLAIM: IdempotencyClaim = { key: 'once', route: '/memory/add', bodyHash: Buffer.alloc(32, 7) };

/** Writes one row of every kind that the engine writes without a provider, and a job that has not run yet. */
async function fill(fixture: TestEngine): Promise<void> {
  const { tenant, clock } = fixture;
  const add = async (content: string) => {
    clock.advance(60_000);
    return (await fixture.add({ content, userId: 'ann', sessionId: 'talk' })).id;
  };
  await fixture.add({ content: SAID.names, userId: 'ann', tags: ['work'], metadata: { team: 'core' }, title: 'Ann' });
  await add(SAID.chinese);
  const code = await add(SAID.code);
  const alike = await add(SAID.alike);
  const oldId = await add(SAID.superseded);
  const newId = await add(SAID.successor);
  const right = await add(SAID.right);
  const wrong = await add(SAID.wrong);
  const draft = await add(DRAFT);
  await add(SAID.long);
  await tenant.addMemories([newMemory({ content: SAID.once, userId: 'ann', expiresAt: START * 2 })], {
    idempotency: CLAIM,
  });
  await tenant.addDocument(newDocument(await upload(tenant, DOCUMENT), { userId: 'ann', externalId: 'harbour' }));
  await fixture.drain();
  await tenant.linkMemories({ src: alike, dst: code, type: 'supports' });
  await tenant.supersedeMemory({ oldId, newId });
  await tenant.contradictMemories({ a: right, b: wrong, winner: right });
  await tenant.patchMemory(draft, { content: SAID.patched });
  await tenant.reinforceMemory(code, 0.3);
  await fixture.drain();
  putExactVector(fixture, fixture.memoryNoOf(code));
  await add(SAID.waiting);
}

/** Writes a vector of float32 numbers, such as vectors of providers, whose code is in a table of its own. */
function putExactVector({ store }: TestEngine, memory: number): void {
  store.write(() => {
    const model = { provider: 'test', model: 'exact', dimensions: 16, encoding: 'float32' } as const;
    const space: VectorSpace = { ...model, modelNo: modelNumber(store, model, START) };
    const embedding = Float32Array.from({ length: 16 }, (_, i) => (i % 3) - 1 || 0.5);
    const userNo = store.prepare('SELECT user_no FROM memories WHERE seq = ?').pluck().get(memory) as number;
    const vector = { memory, userNo, role: 'whole' } as const;
    const vectorNo = insertVector(store, space, { ...vector, windowNo: 0, embedding, textHash: null });
    insertCodes(store, space, () => [{ ...vector, vectorNo, code: signBits(embedding) }]);
  });
}
