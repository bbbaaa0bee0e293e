import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { leftovers } from './leftovers.ts';

/** Makes a new, empty folder that is removed after the test file. */
export function tempFolder(): string {
  const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'cairn-'));
  leftovers.folders.add(folder);
  return folder;
}
