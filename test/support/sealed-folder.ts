import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

/** Makes a random master key in the form that settings take. */
export function newKey(): string {
  return randomBytes(32).toString('hex');
}

/** Returns all files of a folder with their bytes. `name` is the path within the folder. */
export function filesOf(folder: string): { readonly name: string; readonly bytes: Buffer }[] {
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .sort()
    .map((file) => ({ name: path.relative(folder, file), bytes: fs.readFileSync(file) }));
}
