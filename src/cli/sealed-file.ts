/**
 * Encrypts files with a passphrase. The header names the version of the format, which fixes the parameters of scrypt,
 * and has a salt. Chunks follow, each encrypted with AES-256-GCM. The nonce of a chunk is its number and whether it is
 * the last, so that a file that was cut, or whose chunks were swapped, is not accepted.
 */
import { createCipheriv, createDecipheriv, randomBytes, scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import { CliError } from './cli-error.ts';

const MAGIC = Buffer.from('cairn sealed 1\n');
const SALT_BYTES = 16;
const TAG_BYTES = 16;
/** Size of a chunk before it is encrypted, in bytes. */
const CHUNK_BYTES = 64 * 1024;
const HEADER_BYTES = MAGIC.length + SALT_BYTES;
/** Parameters of scrypt: each guess of a passphrase takes 128 MB of memory and half a second. */
const SCRYPT = { N: 2 ** 17, r: 8, p: 1, maxmem: 256 * 1024 * 1024 };

const derive = promisify<string, Buffer, number, typeof SCRYPT, Buffer>(scrypt);

/** Number of first bytes of a file by which `isSealed` recognises it. */
export const SEAL_BYTES = MAGIC.length;

/** Tells by the first bytes of a file whether it was encrypted with a passphrase. */
export function isSealed(start: Uint8Array): boolean {
  return MAGIC.equals(start.subarray(0, MAGIC.length));
}

/** Encrypts bytes with a passphrase. Each file has a new salt, so no key is used twice. */
export async function* seal(bytes: AsyncIterable<Uint8Array>, passphrase: string): AsyncGenerator<Buffer> {
  const header = Buffer.concat([MAGIC, randomBytes(SALT_BYTES)]);
  const key = await keyOf(header, passphrase);
  yield header;
  let number = 0;
  for await (const [chunk, isLast] of chunksOf(bytes, CHUNK_BYTES)) {
    const cipher = createCipheriv('aes-256-gcm', key, nonceOf(number, isLast)).setAAD(header);
    yield Buffer.concat([cipher.update(chunk), cipher.final(), cipher.getAuthTag()]);
    number += 1;
  }
}

/**
 * Decrypts what `seal` made. A chunk is yielded only if it is unchanged.
 * @throws CliError for a wrong passphrase, and for a file that was cut or changed
 */
export async function* unseal(bytes: AsyncIterable<Uint8Array>, passphrase: string): AsyncGenerator<Buffer> {
  const sealed = chunksOf(withoutHeader(), CHUNK_BYTES + TAG_BYTES);
  let header = Buffer.alloc(0);
  let key: Buffer | undefined;
  let number = 0;
  for await (const [chunk, isLast] of sealed) {
    key ??= await keyOf(header, passphrase);
    const at = chunk.length - TAG_BYTES;
    try {
      if (at < 0) throw new Error('cut');
      const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(number, isLast)).setAAD(header);
      decipher.setAuthTag(chunk.subarray(at));
      yield Buffer.concat([decipher.update(chunk.subarray(0, at)), decipher.final()]);
    } catch (cause) {
      const why = number === 0 ? 'the passphrase is another one, or the file was changed' : 'it was cut or changed';
      throw new CliError(`the encrypted file does not open: ${why}`, { cause });
    }
    number += 1;
  }

  async function* withoutHeader(): AsyncGenerator<Uint8Array> {
    for await (const piece of bytes) {
      if (header.length === HEADER_BYTES) {
        yield piece;
        continue;
      }
      const start = Buffer.concat([header, piece]);
      header = start.subarray(0, HEADER_BYTES);
      if (start.length > HEADER_BYTES) yield start.subarray(HEADER_BYTES);
    }
  }
}

function keyOf(header: Buffer, passphrase: string): Promise<Buffer> {
  return derive(passphrase.normalize('NFC'), header.subarray(MAGIC.length), 32, SCRYPT);
}

function nonceOf(number: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeUIntBE(number, 5, 6);
  nonce[11] = isLast ? 1 : 0;
  return nonce;
}

/** Divides bytes into chunks of `size`. The last one may be shorter, and is empty if there are no bytes at all. */
async function* chunksOf(bytes: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<[Buffer, isLast: boolean]> {
  let held = Buffer.alloc(0);
  for await (const piece of bytes) {
    held = Buffer.concat([held, piece]);
    let at = 0;
    // A chunk is held back until more bytes show that it is not the last.
    for (; held.length - at > size; at += size) yield [held.subarray(at, at + size), false];
    held = held.subarray(at);
  }
  yield [held, true];
}
