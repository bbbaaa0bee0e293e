import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PARSE_LIMITS } from '../../../src/engine/documents/parsed-document.ts';
import { openZip } from '../../../src/engine/documents/zip.ts';
import { packZip } from '../../support/make-office.ts';

const LOCAL_HEADER = 0x04034b50;
const DIRECTORY_ENTRY = 0x02014b50;
const MIB = 1024 * 1024;

test('files come out as they were packed', () =>
  fc.assert(
    fc.asyncProperty(fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.uint8Array()), async (files) => {
      const entries = Object.entries(files).map(([name, bytes]) => [name, Buffer.from(bytes)] as const);
      const archive = await openZip(await packZip(Object.fromEntries(entries)));
      expect(archive.names).toEqual(entries.map(([name]) => name));
      for (const [name, bytes] of entries) expect(bytes.equals((await archive.read(name))!)).toBe(true);
      expect(await archive.read('NOT THERE')).toBeUndefined();
    }),
    { numRuns: 30 },
  ));

test('an archive that unpacks to too much is refused by its directory', async () => {
  const bomb = await packZip({ 'word/document.xml': Buffer.alloc(PARSE_LIMITS.inflatedBytes + 1) });
  await expect(openZip(bomb)).rejects.toMatchObject({ code: 'document_too_large' });
  const dense = await packZip({ a: Buffer.alloc(PARSE_LIMITS.ratioFreeBytes + 1) });
  await expect(openZip(dense)).rejects.toMatchObject({ code: 'document_too_large' });
  const many = await packZip(
    Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`${at}`, Buffer.alloc(2 * MIB)])),
  );
  await expect(openZip(many)).rejects.toMatchObject({ code: 'document_too_large' });
  const small = await packZip({ a: Buffer.alloc(PARSE_LIMITS.ratioFreeBytes) });
  expect((await (await openZip(small)).read('a'))!.length).toBe(PARSE_LIMITS.ratioFreeBytes);
});

test('the number of files is limited', async () => {
  const pack = (count: number) =>
    packZip(Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, 'x'])));
  expect((await openZip(await pack(PARSE_LIMITS.zipEntries))).names.length).toBe(PARSE_LIMITS.zipEntries);
  await expect(openZip(await pack(PARSE_LIMITS.zipEntries + 1))).rejects.toMatchObject({
    code: 'document_too_complex',
  });
});

test('a file that is longer or shorter than the directory states, or another, is not handed out', async () => {
  const content = Buffer.alloc(10_000, 'abcdefghij');
  for (const stated of [100, 20_000]) {
    const bytes = await packZip({ a: content });
    bytes.writeUInt32LE(stated, directoryEntry(bytes) + 24);
    const archive = await openZip(bytes);
    await expect(archive.read('a')).rejects.toMatchObject({ code: 'corrupt_document' });
  }
  const changed = await packZip({ a: content });
  changed.writeUInt32LE(12345, directoryEntry(changed) + 16);
  await expect((await openZip(changed)).read('a')).rejects.toMatchObject({ code: 'corrupt_document' });
});

test('files that share their bytes are refused', async () => {
  const bytes = await packZip({ a: 'one and the same', b: 'one and the same' });
  const second = directoryEntry(bytes, 1);
  bytes.writeUInt32LE(0, second + 42);
  await expect(openZip(bytes)).rejects.toMatchObject({ code: 'corrupt_document' });
});

test('an encrypted archive says so', async () => {
  for (const flag of [0x1, 0x41]) {
    const bytes = await packZip({ a: 'secret' });
    const at = directoryEntry(bytes);
    bytes.writeUInt16LE(bytes.readUInt16LE(at + 8) | flag, at + 8);
    await expect(openZip(bytes)).rejects.toMatchObject({ code: 'encrypted_document' });
  }
});

test('names that lead out of the archive are left out', async () => {
  for (const name of ['../abc', '/a/bcd', 'a/../b']) {
    const bytes = await packZip({ ['x'.repeat(name.length)]: 'outside', fine: 'inside' });
    // yazl would refuse to write such a name itself.
    for (const signature of [LOCAL_HEADER, DIRECTORY_ENTRY]) {
      bytes.write(name, find(bytes, signature) + (signature === LOCAL_HEADER ? 30 : 46));
    }
    const archive = await openZip(bytes);
    expect(archive.names).toEqual(['fine']);
    expect(await archive.read(name)).toBeUndefined();
  }
});

test('an archive cut off anywhere, and anything else, is corrupt and nothing worse', async () => {
  const whole = await packZip({ a: 'some text', b: Buffer.alloc(5_000, 'xyz') });
  for (let length = 0; length < whole.length; length += 7) {
    await expect(openZip(whole.subarray(0, length))).rejects.toMatchObject({ code: 'corrupt_document' });
  }
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
      await expect(openZip(bytes)).rejects.toMatchObject({ code: 'corrupt_document' });
    }),
  );
});

test('bytes changed at random end in text or in an error with a reason', async () => {
  const whole = await packZip({ 'a.xml': Buffer.alloc(2_000, 'abc def'), b: 'x' });
  await fc.assert(
    fc.asyncProperty(fc.nat(whole.length - 1), fc.integer({ min: 0, max: 255 }), async (at, value) => {
      const changed = Buffer.from(whole);
      changed[at] = value;
      try {
        const archive = await openZip(changed);
        for (const name of archive.names) expect((await archive.read(name))!.length).toBeLessThanOrEqual(2_000);
      } catch (error) {
        expect(error).toHaveProperty(
          'code',
          expect.stringMatching(/^(?:corrupt_document|encrypted_document|document_too_)/),
        );
      }
    }),
    { numRuns: 500 },
  );
});

function directoryEntry(archive: Buffer, index = 0): number {
  let at = find(archive, DIRECTORY_ENTRY);
  for (let passed = 0; passed < index; passed++) at = find(archive, DIRECTORY_ENTRY, at + 4);
  return at;
}

function find(archive: Buffer, signature: number, from = 0): number {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(signature);
  return archive.indexOf(bytes, from);
}
