import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

/** A random master key as settings take it. */
export function newKey(): string {
  return randomBytes(32).toString('hex');
}

/** All files of a folder with their bytes, by path in the folder. */
export function filesOf(folder: string): { readonly name: string; readonly bytes: Buffer }[] {
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .sort()
    .map((file) => ({ name: path.relative(folder, file), bytes: fs.readFileSync(file) }));
}
