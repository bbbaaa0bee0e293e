import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { cleanAfterErase } from '../../../src/engine/upkeep/clean-after-erase.ts';
import type { TestEngine } from '../engine-fixture.ts';
import { newMemory } from '../new-memory.ts';

/** What the search for traces of an add found: names of files of the tenant that hold a trace. */
export interface Traces {
  /** Files that hold the text of the Idempotency-Key. */
  readonly ofKey: readonly string[];
  /** Files that hold the SHA-256 of the body, as bytes or as hexadecimal digits; it confirms a guessed body. */
  readonly ofBody: readonly string[];
}

/**
 * Adds a memory under an Idempotency-Key that names a person, and searches the tenant's files byte by byte for the key
 * and for the hash of the body, first while the memory is there and then after it was erased.
 */
export async function searchIdempotencyTraces(
  fixture: TestEngine,
): Promise<{ readonly kept: Traces; readonly erased: Traces }> {
  const key = 'import-maria.qwortz@example.org';
  const bodyHash = createHash('sha256').update('{"content":"the vault opens at noon"}').digest();
  const idempotency = { key, route: '/memory/add', bodyHash };
  const search = (): Traces => ({
    ofKey: filesWith(fixture.file, [Buffer.from(key)]),
    ofBody: filesWith(fixture.file, [bodyHash, Buffer.from(bodyHash.toString('hex'))]),
  });
  const { outcomes } = await fixture.tenant.addMemories([newMemory({ content: 'the vault opens at noon' })], {
    idempotency,
  });
  const kept = search();
  await fixture.tenant.deleteMemory((outcomes[0] as { id: string }).id);
  await cleanAfterErase(fixture.maintenance);
  return { kept, erased: search() };
}

/** Lists the files of a database that contain one of the byte sequences. */
function filesWith(file: string, needles: readonly Buffer[]): string[] {
  return [file, `${file}-wal`, `${file}-shm`].filter((name) => {
    if (!fs.existsSync(name)) return false;
    const bytes = fs.readFileSync(name);
    return needles.some((needle) => bytes.includes(needle));
  });
}
