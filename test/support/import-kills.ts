import { createHash } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { v5 as uuidv5 } from 'uuid';
import { expect } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { runCairn, startCairn } from '../cli/run-cairn.ts';
import { expectFinished } from './add-checker.ts';
import { jsonLines } from './portable.ts';
import { databaseFile, spawnService, type ServiceProcess } from './running-service.ts';
import { tempFolder } from './temp-folder.ts';

export interface ImportKillPlan {
  readonly seed: number;
  readonly kills: number;
  readonly memories: number;
  readonly victim: 'command line' | 'server';
}

const MOMENT_MS = 40;
const POLL_MS = 5;

/**
 * Imports an export by the command line while the import, or the server, is killed with SIGKILL at random times (from
 * the seed). Then the import is run to its end, and the store must contain each line of the file exactly once.
 * @returns a line that sums up the run
 */
export async function importUnderKills({ seed, kills, memories, victim }: ImportKillPlan): Promise<string> {
  const random = createRandom(seed);
  const folder = tempFolder();
  const file = path.join(tempFolder(), 'all.jsonl');
  const lines = writeExport(file, memories);
  // The lines state the sector that patterns find, as a memory that comes without vectors is sorted anew.
  const settings = { OM_SECTOR_CLASSIFIER: 'patterns' };
  let service = spawnService({ folder, settings });
  let args = ['import', file];
  let resumed = 0;
  const storedAt: number[] = [];
  for (let life = 0; life < kills; life++) {
    const cli = startCairn(args, { settings: { CAIRN_URL: await service.ready } });
    const [said, ended] = [text(cli.stderr!), once(cli, 'close') as Promise<[number | null]>];
    const target = Math.floor((memories * (life + random())) / (kills + 1));
    let isOver = false;
    void ended.then(() => (isOver = true));
    while (!isOver && countStored(folder) < target) await pause(POLL_MS);
    await pause(random() * MOMENT_MS);
    storedAt.push(countStored(folder));
    args = ['import', file];
    if (victim === 'command line') {
      cli.kill('SIGKILL');
      await ended;
      continue;
    }
    await service.end('SIGKILL');
    await ended;
    // Every other time the import goes on where the command line says.
    const from = /--from-line (\d+)/.exec(await said)?.[1];
    if (from !== undefined && life % 2 === 0) {
      args.push('--from-line', from);
      resumed += 1;
    }
    service = spawnService({ folder, settings });
  }
  const last = await runCairn(args, { settings: { CAIRN_URL: await service.ready } });
  expect(last, last.stdout + last.stderr).toMatchObject({ code: 0 });
  await service.idle();
  await expectWhole(service, lines);
  await service.end('SIGTERM');
  expect(expectFinished(folder)).toBe(memories);
  const line =
    `seed ${seed}, ${kills} kills of the ${victim} at ${storedAt.join(', ')} of ${memories} memories, ` +
    `${resumed} resumed by line: nothing lost, nothing twice`;
  console.log(line);
  return line;
}

/** Returns the number of memories in the file of a running service; 0 if there is no file yet. */
function countStored(folder: string): number {
  if (!fs.existsSync(databaseFile(folder))) return 0;
  const db = new Database(databaseFile(folder), { readonly: true });
  try {
    return db.prepare('SELECT count(*) FROM memories').pluck().get() as number;
  } catch {
    return 0; // The file is being made.
  } finally {
    db.close();
  }
}

type Line = Readonly<Record<string, unknown>>;

/**
 * Writes an export with earlier versions, links and session logs.
 * @returns its lines without the first and the last
 */
function writeExport(file: string, memories: number): readonly Line[] {
  const idOf = (no: number) => uuidv5(String(no), '7c0d9a52-5a0a-4f0e-9a39-3a8a3f6f3d10');
  const timeOf = (no: number) => new Date(Date.UTC(2025, 0, 1) + no * 60_000).toISOString();
  const numbers = Array.from({ length: memories }, (_, no) => no);
  const ofMemories = numbers.flatMap((no): Line[] => {
    const isChanged = no % 10 === 3;
    const memory = {
      type: 'memory',
      id: idOf(no),
      user_id: `user-${no % 4}`,
      session_id: `session-${no % 50}`,
      content: `The keeper of lamp ${no % 97} wrote about the weather. Reference r${String(no).padStart(6, '0')}`,
      ...(no % 7 === 0 ? { tags: ['lamp'], metadata: { no }, external_id: `lamp-${no}` } : {}),
      created_at: timeOf(no),
      updated_at: timeOf(no + (isChanged ? 5 : 0)),
      version: isChanged ? 2 : 1,
      status: no % 20 === 4 ? 'superseded' : 'active',
      state: 'ready',
      sectors: ['episodic'],
      salience: { value: 0.5, at: timeOf(no) },
      decay_lambda: 0.015,
      strength: { value: 1, at: timeOf(no) },
      last_seen_at: timeOf(no),
    };
    const revision = {
      ...{ type: 'revision', memory: idOf(no), version: 1, replaced_at: timeOf(no + 5), status: 'active' },
      ...{ event_time: timeOf(no), replaced: { tags: ['before'] } },
    };
    return isChanged ? [memory, revision] : [memory];
  });
  const links = numbers.flatMap((no): Line[] => {
    const link = { type: 'link', dst: idOf(no), created_at: timeOf(no), updated_at: timeOf(no) };
    if (no % 20 === 4 && no + 4 < memories) return [{ ...link, src: idOf(no + 4), link_type: 'supersedes', weight: 1 }];
    return no % 20 === 6 ? [{ ...link, src: idOf(no - 1), link_type: 'supports', weight: 0.25 }] : [];
  });
  const items = numbers.flatMap((no): Line[] => {
    const place = { user_id: `user-${no % 4}`, session_id: `talk-${no % 8}`, position: Math.floor(no / 40) };
    const line = { type: 'session_item', ...place, item: { role: 'user', content: [no] }, created_at: timeOf(no) };
    return no % 40 < 8 ? [line] : [];
  });
  const lines = [...ofMemories, ...links, ...items];
  const before = [{ type: 'cairn.export', version: 1 }, ...lines].map((line) => `${JSON.stringify(line)}\n`).join('');
  const sha256 = createHash('sha256').update(before).digest('hex');
  fs.writeFileSync(file, `${before}${JSON.stringify({ type: 'end', sha256 })}\n`);
  return lines;
}

const NAMES: Readonly<Record<string, readonly string[]>> = {
  memory: ['type', 'id'],
  revision: ['type', 'memory', 'version'],
  link: ['type', 'src', 'dst', 'link_type'],
  session_item: ['type', 'user_id', 'session_id', 'position'],
};
const keyOf = (line: Line) => NAMES[String(line['type'])]!.map((name) => line[name]).join(' ');

/** Compares what the service exports with the lines: each is there once, with all of its fields. */
async function expectWhole(service: ServiceProcess, lines: readonly Line[]): Promise<void> {
  const exported = jsonLines(await (await fetch(`${await service.ready}/export`)).text()).slice(1, -1);
  // Memories bring links of their own only if they came without a state.
  expect(exported.map(keyOf).sort()).toEqual(lines.map(keyOf).sort());
  const stored = new Map(exported.map((line) => [keyOf(line), line]));
  const changed = lines.filter((line) => {
    const found = stored.get(keyOf(line))!;
    return Object.keys(line).some((name) => JSON.stringify(found[name]) !== JSON.stringify(line[name]));
  });
  expect(changed).toEqual([]);
}
