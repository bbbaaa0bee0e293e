import path from 'node:path';
import type Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { changeDataKeys, decryptFolder, encryptFolder } from '../../../src/engine/admin/encryption.ts';
import { resealFile } from '../../../src/engine/admin/reseal.ts';
import { readConfig } from '../../../src/engine/config.ts';
import { CIPHERS, type FileKey } from '../../../src/engine/find-file-key.ts';
import { openEngine } from '../../../src/engine/open-engine.ts';
import { createDatabaseFile, openDatabase } from '../../../src/engine/store/open-database.ts';
import { newMemory } from '../../support/new-memory.ts';
import { filesOf, newKey } from '../../support/sealed-folder.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const keyOf = (byte: number, cipher: FileKey['cipher'] = 'aegis'): FileKey => ({
  cipher,
  bytes: new Uint8Array(32).fill(byte),
});
const KEYS: readonly (readonly [string, FileKey | null])[] = [
  ['in clear', null],
  ...CIPHERS.map((cipher) => [`sealed by ${cipher}`, keyOf(1, cipher)] as const),
];

function makeFile(key: FileKey | null): string {
  const file = path.join(tempFolder(), 'one.sqlite');
  createDatabaseFile(file, key);
  const db = openDatabase(file, { key });
  db.exec(`CREATE TABLE texts (text); INSERT INTO texts VALUES ('before')`);
  db.close();
  return file;
}

/** Writes to a file as a program does that embeds the engine. */
function writeTo(file: string, key: FileKey | null): Database.Database {
  const db = openDatabase(file, { key });
  db.pragma('journal_mode = WAL');
  db.exec(`UPDATE texts SET text = 'acknowledged'`);
  return db;
}

function textIn(file: string, key: FileKey | null): unknown {
  const db = openDatabase(file, { key });
  try {
    return db.prepare('SELECT text FROM texts').pluck().get();
  } finally {
    db.close();
  }
}

test.each(KEYS)('what a program writes while a file %s is copied is not replaced', async (_, key) => {
  const file = makeFile(key);
  const reseal = (change?: () => void) => resealFile(file, key, keyOf(2), change);
  const conflict = { code: 'conflict' };
  let program: Database.Database | undefined;
  await expect(reseal(() => void (program = writeTo(file, key)))).rejects.toMatchObject(conflict);
  program!.close();
  await expect(reseal(() => void writeTo(file, key).close())).rejects.toMatchObject(conflict);
  expect(textIn(file, key)).toBe('acknowledged');
  await reseal();
  expect(textIn(file, keyOf(2))).toBe('acknowledged');
});

test.each([
  ['encrypt', encryptFolder, false],
  ['decrypt', decryptFolder, true],
  ['rekey', changeDataKeys, true],
] as const)('%s changes no file while a program has the folder open', async (_, change, isSealed) => {
  const folder = tempFolder();
  const settings = { OM_DB_PATH: path.join(folder, 'cairn.sqlite'), OM_LOG_LEVEL: 'silent', OM_QUERY_THREADS: '1' };
  const keyed = readConfig({ ...settings, OM_ENCRYPTION_KEY: newKey() });
  const open = () => openEngine({ config: isSealed ? keyed : readConfig(settings), writer: 'thread' });
  const former = await open();
  await (await former.tenant('default')).addMemories([newMemory({ content: 'It is idle.' })]);
  await former.close();
  const tenantFile = () => filesOf(folder).find(({ name }) => name === 'cairn.sqlite')!.bytes;
  const before = tenantFile();

  const engine = await open();
  onTestFinished(() => engine.close());
  const told: string[] = [];
  await expect(change(keyed, (name) => told.push(name))).rejects.toMatchObject({ code: 'conflict' });
  expect([told, tenantFile().equals(before)]).toEqual([[], true]);
});
