import fs from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import { sweepUploads, uploadsFolder } from '../../src/engine/documents/uploads.ts';
import { createRandom } from '../../src/engine/random.ts';
import { listUploads } from '../../src/engine/store/uploads.ts';
import { withStore } from './add-checker.ts';
import { expectNoOrphans } from './engine-fixture.ts';
import { databaseFile, spawnService, type ServiceProcess } from './running-service.ts';
import { tempFolder } from './temp-folder.ts';

export interface DocumentKillPlan {
  readonly seed: number;
  readonly kills: number;
  /** Number of sections of the document's text. Three sections make two chunks. */
  readonly sections: number;
}

const EXTERNAL_ID = 'the handbook';
/**
 * Longest time between two kills (ms). In this time the service may start, read, write, show the new version, embed or
 * be idle.
 */
const LIFE_MS = 5_000;
/**
 * Share of the service's starts after which a new version is sent at once. Otherwise the interrupted job runs again by
 * itself after a pause.
 */
const ANEW_SHARE = 0.6;
const SETTINGS = { OM_CHUNK_TOKENS: '64', OM_CHUNK_OVERLAP_TOKENS: '8' };

/**
 * Sends a document of many chunks, and a changed version whenever the last one is finished, while the service is killed
 * with SIGKILL at random times (from the seed). After each kill, the stored document must be one version as a whole.
 * @returns a line that sums up the run
 */
export async function ingestUnderKills({ seed, kills, sections }: DocumentKillPlan): Promise<string> {
  const random = createRandom(seed);
  const folder = tempFolder();
  const versions: string[] = [];
  const seen = { midway: 0, finished: 0 };
  for (let life = 0; life < kills; life++) {
    const service = spawnService({ folder, settings: SETTINGS });
    const killed = pause(random() * LIFE_MS).then(() => service.end('SIGKILL'));
    const isAnew = random() < ANEW_SHARE;
    await service.ready.then(() => liveOn(service, versions, { sections, seen, isAnew })).catch(() => undefined);
    await killed;
    if (service.obituary?.startsWith('the service ended: SIGKILL') !== true) throw new Error(service.obituary);
    expectWhole(folder, versions);
  }

  const service = spawnService({ folder, settings: SETTINGS });
  // Killed three times in a row while it ran alone, a document is a dead letter; handed in again it is read.
  await handIn(service, versions, sections);
  await service.idle();
  const document = await readDocument(service);
  expect(document).toMatchObject({ state: 'ready', error: null, progress: { failed: 0 } });
  expect(await readContent(service, document!.id)).toBe(versions.at(-1));
  // What was replaced is erased after it was hidden.
  await expect.poll(() => countMemories(service)).toBe(document!.chunks + 1);
  await service.end('SIGTERM');
  const stored = expectWhole(folder, versions);
  expect(stored).toBe(document!.chunks + 1);
  withStore(folder, expectNoOrphans);
  expectNoUploads(folder);
  const line = `seed ${seed}: ${kills} kills over ${versions.length} versions of ${document!.chunks} chunks, ${seen.midway} lives began in the middle of a reading, ${seen.finished} readings were finished in between`;
  console.log(line);
  return line;
}

/** Checks that the uploads folder is empty after the cleanup that removes the remains of interrupted uploads. */
function expectNoUploads(folder: string): void {
  const file = databaseFile(folder);
  const named = withStore(folder, listUploads);
  expect([...named]).toEqual([]);
  sweepUploads(file, named, Date.now() + 3_600_000);
  expect(fs.readdirSync(uploadsFolder(file))).toEqual([]);
}

interface Life {
  readonly sections: number;
  readonly seen: { midway: number; finished: number };
  readonly isAnew: boolean;
}

/** Sends versions of the document one after another until the service is killed, which makes it throw. */
async function liveOn(service: ServiceProcess, versions: string[], { sections, seen, isAnew }: Life): Promise<void> {
  const first = await readDocument(service);
  if (first?.state === 'processing') seen.midway++;
  if (isAnew) await handIn(service, versions, sections);
  for (;;) {
    const document = await readDocument(service);
    if (document?.state === 'ready') seen.finished++;
    if (document === undefined || !['queued', 'processing'].includes(document.state))
      await handIn(service, versions, sections);
    await pause(20);
  }
}

async function handIn(service: ServiceProcess, versions: string[], count: number): Promise<void> {
  const text = makeText(versions.length, count);
  // What is attempted may arrive, whatever becomes of the answer.
  versions.push(text);
  const body = { text, content_type: 'text/markdown', external_id: EXTERNAL_ID };
  const reply = await service.request('POST', '/memory/ingest', { body });
  expect([200, 202], reply.text).toContain(reply.status);
}

/**
 * Makes the text of a version. Two thirds of the sections are the same in each version and the next; each section says
 * whether it stays or belongs to which version.
 */
function makeText(version: number, count: number): string {
  const sections = Array.from({ length: count }, (_, at) => {
    const stays = at % 3 !== version % 3;
    const words = stays ? 'and is the same in every version of this handbook' : `and is new in version ${version}`;
    return `## Section ${at}\n\nWhat section ${at} has to say about number ${at * 7} is of interest to few ${words}.\n`;
  });
  return `# Handbook ${version}\n\n${sections.join('\n')}`;
}

interface SeenDocument {
  readonly id: string;
  readonly state: string;
  readonly chunks: number;
}

async function readDocument(service: ServiceProcess): Promise<SeenDocument | undefined> {
  const { body } = await service.request('GET', `/documents?external_id=${encodeURIComponent(EXTERNAL_ID)}`);
  return (body.items as unknown as SeenDocument[])[0];
}

async function countMemories(service: ServiceProcess): Promise<unknown> {
  return (await service.request('GET', '/stats')).body['memories'];
}

async function readContent(service: ServiceProcess, id: string): Promise<string> {
  return (await service.request('GET', `/documents/${id}/content`)).text;
}

/**
 * Reads the file of a service that was killed, and checks that a query could find either one version as a whole, or
 * nothing.
 * @returns the number of all memories
 */
function expectWhole(folder: string, versions: readonly string[]): number {
  if (!fs.existsSync(databaseFile(folder))) return 0;
  return withStore(folder, (store) => {
    const shown = store.db
      .prepare(
        `SELECT c.start_offset AS start, c.end_offset AS "end", m.content FROM documents o
           JOIN memory_dynamics d ON d.generation_no = o.live_no JOIN memories m ON m.seq = d.seq
           JOIN chunks c ON c.memory = m.seq AND c.generation_no = d.generation_no
         WHERE c.chunk_index >= 0 ORDER BY c.chunk_index`,
      )
      .all() as { start: number; end: number; content: string }[];
    let text = '';
    for (const { start, end, content } of shown) {
      expect(start, 'a gap between chunks').toBeLessThanOrEqual(text.length);
      text += content.slice(text.length - start);
      expect(text.length).toBe(end);
    }
    if (shown.length > 0) expect(versions.includes(text), 'what is shown is no version that was handed in').toBe(true);
    const visible = store.db
      .prepare(
        `SELECT count(*) FROM memory_dynamics d WHERE d.generation_no NOT IN (SELECT generation_no FROM document_generations WHERE hidden > 0)`,
      )
      .pluck()
      .get() as number;
    expect(visible).toBe(shown.length === 0 ? 0 : shown.length + 1);
    return store.db.prepare('SELECT count(*) FROM memories').pluck().get() as number;
  });
}
