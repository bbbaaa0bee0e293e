import fs from 'node:fs';
import { createRandom } from '../../src/engine/random.ts';

const PAGE_BYTES = 4_096;
const KINDS = ['bytes', 'pages zeroed', 'cut off', 'pages swapped'] as const;

/**
 * Damages a database file as a failing disk or a wrong copy would. The same seed does the same damage.
 * @returns a description of the damage, for the message of a test
 */
export function damageFile(file: string, seed: number): string {
  const random = createRandom(seed);
  const upTo = (n: number) => Math.floor(random() * n);
  const kind = KINDS[upTo(KINDS.length)]!;
  let bytes = fs.readFileSync(file);
  const pages = Math.floor(bytes.length / PAGE_BYTES);
  const page = (no: number) => bytes.subarray(no * PAGE_BYTES, (no + 1) * PAGE_BYTES);
  const times = 2 ** upTo(7);
  switch (kind) {
    case 'bytes':
      for (let n = 0; n < times; n++) bytes[upTo(bytes.length)] = upTo(256);
      break;
    case 'pages zeroed':
      for (let n = 0; n < Math.min(times, pages / 4); n++) page(upTo(pages)).fill(0);
      break;
    case 'cut off':
      bytes = bytes.subarray(0, upTo(bytes.length));
      break;
    case 'pages swapped':
      for (let n = 0; n < Math.min(times, pages / 4); n++) {
        const [one, other] = [page(upTo(pages)), page(upTo(pages))];
        const kept = Buffer.from(one);
        other.copy(one);
        kept.copy(other);
      }
  }
  fs.writeFileSync(file, bytes);
  return `seed ${seed}: ${kind}, ${times}`;
}
