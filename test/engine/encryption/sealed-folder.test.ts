import fs from 'node:fs';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { changeDataKeys } from '../../../src/engine/admin/encryption.ts';
import { readConfig } from '../../../src/engine/config.ts';
import { openControlFile } from '../../../src/engine/control/control-file.ts';
import { controlKeyOf, putNextKey } from '../../../src/engine/control/data-keys.ts';
import { newDataKey } from '../../../src/engine/control/wrapped-key.ts';
import { createSealer, unseal, unsealPart } from '../../../src/engine/documents/sealed-bytes.ts';
import { openEngine } from '../../../src/engine/open-engine.ts';
import { checkDatabase } from '../../../src/engine/store/check-database.ts';
import { createDatabaseFile, openDatabase } from '../../../src/engine/store/open-database.ts';
import { newMemory } from '../../support/new-memory.ts';
import { filesOf, newKey } from '../../support/sealed-folder.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const CANARY = 'zanzibarcanary';

function settingsOf(folder: string, settings: Record<string, string> = {}) {
  return { OM_DB_PATH: path.join(folder, 'cairn.sqlite'), OM_LOG_LEVEL: 'silent', ...settings };
}

async function open(folder: string, settings: Record<string, string> = {}) {
  return openEngine({ config: readConfig(settingsOf(folder, settings)), writer: 'thread' });
}

describe.each(['aegis', 'sqlcipher'])('with a key and the cipher %s', (cipher) => {
  test('an empty folder gets sealed files only, whose text no file shows', async () => {
    const folder = tempFolder();
    const settings = { OM_ENCRYPTION_KEY: newKey(), OM_ENCRYPTION_CIPHER: cipher, OM_QUERY_THREADS: '1' };
    const engine = await open(folder, settings);
    engine.control.createTenant('acme');
    for (const id of ['default', 'acme']) {
      const tenant = await engine.tenant(id);
      await tenant.addMemories([newMemory({ content: `${CANARY} of ${id}` })]);
      const { hits } = await tenant.query({ query: CANARY, k: 5, filter: {}, minScore: 0 });
      expect(hits.map(({ memory }) => memory.content)).toEqual([`${CANARY} of ${id}`]);
    }
    const databases = filesOf(folder).filter(({ name }) => name.endsWith('.sqlite'));
    expect(databases.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['cairn.control.sqlite', 'cairn.sqlite', 'cairn.tenants/acme.sqlite']),
    );
    for (const { name, bytes } of filesOf(folder)) {
      expect(bytes.includes(CANARY), name).toBe(false);
      expect(bytes.includes('SQLite format 3'), name).toBe(false);
    }
    await engine.close();
    for (const { name, bytes } of filesOf(folder)) expect(bytes.includes(CANARY), name).toBe(false);

    const again = await open(folder, settings);
    const { hits } = await (await again.tenant('acme')).query({ query: CANARY, k: 5, filter: {}, minScore: 0 });
    expect(hits).toHaveLength(1);
    await again.close();
  });
});

describe('is refused, and left as it is', () => {
  const refusal = (folder: string, settings: Record<string, string>) =>
    open(folder, settings).then(
      () => 'opened',
      (error: Error) => error.message,
    );

  test('a sealed folder without its key, or with another key', async () => {
    const folder = tempFolder();
    const key = newKey();
    await (await open(folder, { OM_ENCRYPTION_KEY: key })).close();
    const before = filesOf(folder);
    expect(await refusal(folder, {})).toMatch(/cairn.control.sqlite is encrypted: set OM_ENCRYPTION_KEY_FILE/);
    const other = newKey();
    const message = await refusal(folder, { OM_ENCRYPTION_KEY: other });
    expect(message).toMatch(/cairn.control.sqlite cannot be opened with this encryption key/);
    expect(message).not.toContain(other);
    expect(filesOf(folder)).toEqual(before);
  });

  test('a folder in which a change of any data key was interrupted', async () => {
    const folder = tempFolder();
    const settings = { OM_ENCRYPTION_KEY: newKey() };
    const engine = await open(folder, settings);
    engine.control.createTenant('zeta');
    await engine.close();
    const config = readConfig(settingsOf(folder, settings));
    const control = openControlFile(config.paths.control, controlKeyOf(config));
    const [master, next] = [config.masterKey!, newDataKey('aegis')];
    putNextKey(control.db, master, 'zeta', next);
    control.close();
    expect(await refusal(folder, settings)).toMatch(/data key of tenant zeta was broken off.*cairn rekey --data-keys/);
    await changeDataKeys(config, () => {});
    await (await open(folder, settings)).close();
  });

  test('a folder in clear with a key', async () => {
    const folder = tempFolder();
    await (await open(folder)).close();
    expect(await refusal(folder, { OM_ENCRYPTION_KEY: newKey() })).toMatch(/stored in clear.*run `cairn encrypt`/);
    await (await open(folder)).close();
  });
});

test('what is left of an erased tenant cannot be opened, not even with the master key', async () => {
  const folder = tempFolder();
  const file = path.join(folder, 'cairn.tenants/acme.sqlite');
  const engine = await open(folder, { OM_ENCRYPTION_KEY: newKey() });
  engine.control.createTenant('acme');
  const tenant = await engine.tenant('acme');
  await tenant.addMemories([newMemory({ content: CANARY })]);
  await tenant.query({ query: CANARY, k: 5, filter: {} });
  const kept = fs.readFileSync(file);
  engine.control.eraseTenant('acme');
  fs.writeFileSync(file, kept);
  expect(() => checkDatabase(file)).toThrow('no data key of tenant acme');
  fs.rmSync(file);
  engine.control.createTenant('acme');
  fs.writeFileSync(file, kept);
  expect(() => checkDatabase(file)).toThrow('cannot be opened with this encryption key');
  await engine.close();
});

test('SQLite is in defensive mode and trusts no schema, with and without a key', () => {
  for (const key of [null, { cipher: 'aegis', bytes: new Uint8Array(32) } as const]) {
    const file = path.join(tempFolder(), 'one.sqlite');
    createDatabaseFile(file, key);
    const db = openDatabase(file, { key });
    db.exec('CREATE TABLE t (a); CREATE VIRTUAL TABLE f USING fts5 (a)');
    expect(db.pragma('trusted_schema', { simple: true })).toBe(0);
    expect(() => db.exec('DELETE FROM f_data')).toThrow('may not be modified');
    db.pragma('writable_schema = ON');
    expect(() => db.exec(`UPDATE sqlite_schema SET sql = 'x'`)).toThrow('may not be modified');
    db.close();
  }
});

describe('an uploaded file', () => {
  const key = new Uint8Array(32).fill(7);
  const sealed = (bytes: Buffer, name = 'a') => {
    const sealer = createSealer(key, name);
    const pieces = [];
    for (let at = 0; at < bytes.length; at += 50_000) pieces.push(sealer.update(bytes.subarray(at, at + 50_000)));
    return Buffer.concat([...pieces, sealer.end()]);
  };

  test.each([0, 1, 65_535, 65_536, 65_537, 131_072, 400_000])('of %i bytes is read back', (length) => {
    const bytes = Buffer.alloc(length, CANARY);
    expect(sealed(bytes).includes(CANARY)).toBe(false);
    expect(unseal(key, 'a', sealed(bytes))?.equals(bytes)).toBe(true);
  });

  /** Reads a part of a file, and the offsets in the file at which frames were read for it. */
  async function readPart(file: Buffer, start: number, end: number, name = 'a') {
    const frames: number[] = [];
    const read = async (at: number, bytes: number) => {
      if (at >= 48) frames.push((at - 48) / 65_552);
      return file.subarray(at, at + bytes);
    };
    const pieces: (Buffer | undefined)[] = [];
    for await (const piece of unsealPart(key, name, { file: { size: file.length, read }, start, end }))
      pieces.push(piece);
    return { bytes: pieces.includes(undefined) ? undefined : Buffer.concat(pieces as Buffer[]), frames };
  }

  test.each([
    [0, 1, [0]],
    [65_535, 65_536, [0]],
    [65_536, 65_537, [1]],
    [65_000, 200_000, [0, 1, 2, 3]],
    [399_000, 400_000, [6]],
  ])('is decrypted from byte %i to %i by the frames of this part alone', async (start, end, frames) => {
    const bytes = Buffer.from(Array.from({ length: 400_000 }, (_, at) => (at * 7 + (at >> 8)) & 255));
    const part = await readPart(sealed(bytes), start, end);
    expect(part.bytes?.equals(bytes.subarray(start, end))).toBe(true);
    expect(part.frames).toEqual(frames);
  });

  test('of a tenant is read in parts by the frames that each part touches', async () => {
    const engine = await open(tempFolder(), { OM_ENCRYPTION_KEY: newKey(), OM_QUERY_THREADS: '1' });
    const tenant = await engine.tenant('default');
    const upload = await tenant.createUpload(200_000);
    const encoder = upload.createEncoder();
    const file = Buffer.concat([encoder.update(Buffer.alloc(200_000, CANARY)), encoder.end()]);
    file[file.length - 1]! ^= 1;
    fs.writeFileSync(upload.path, file);
    const read = (start: number, end: number) => buffer(upload.readPart({ start, end }));
    expect((await read(65_000, 140_000)).equals(Buffer.alloc(200_000, CANARY).subarray(65_000, 140_000))).toBe(true);
    await expect(read(199_999, 200_000)).rejects.toMatchObject({ code: 'upload_missing' });
    await upload.discard();
    await expect(read(0, 1)).rejects.toMatchObject({ code: 'upload_missing' });
    await engine.close();
  });

  test('gives no part that was cut, changed or renamed, and parts beside a changed frame', async () => {
    const file = sealed(Buffer.alloc(200_000, CANARY));
    const changed = Buffer.from(file);
    changed[48 + 65_552 + 100]! ^= 1;
    expect((await readPart(changed, 65_536, 65_546)).bytes).toBeUndefined();
    expect((await readPart(changed, 65_530, 65_536)).bytes).toHaveLength(6);
    expect((await readPart(file, 0, 10, 'b')).bytes).toBeUndefined();
    expect((await readPart(file, 199_990, 200_001)).bytes).toBeUndefined();
    for (const length of [0, 20, 48, 48 + 65_552, file.length - 1])
      expect((await readPart(file.subarray(0, length), 199_990, 200_000)).bytes, `${length}`).toBeUndefined();
    // A cut between two frames: what is now the last frame does not say that it is.
    expect((await readPart(file.subarray(0, 48 + 65_552), 0, 10)).bytes).toBeUndefined();
  });

  test('that was cut, changed or renamed, or whose frames changed places, is not', () => {
    const file = sealed(Buffer.alloc(200_000, CANARY));
    const [start, frame] = [48, 65_552];
    const swapped = Buffer.concat([
      file.subarray(0, start),
      file.subarray(start + frame, start + 2 * frame),
      file.subarray(start, start + frame),
      file.subarray(start + 2 * frame),
    ]);
    expect(swapped).toHaveLength(file.length);
    expect(unseal(key, 'a', swapped)).toBeUndefined();
    for (const length of [0, 20, start, start + frame, start + 3 * frame, file.length - 1]) {
      expect(unseal(key, 'a', file.subarray(0, length)), `${length}`).toBeUndefined();
    }
    for (const at of [0, 20, 100, file.length - 1]) {
      const changed = Buffer.from(file);
      changed[at]! ^= 1;
      expect(unseal(key, 'a', changed), `${at}`).toBeUndefined();
    }
    expect(unseal(key, 'b', file)).toBeUndefined();
    expect(unseal(new Uint8Array(32), 'a', file)).toBeUndefined();
  });
});
